/*
 * The call store: the port behind which calls under way are kept, for all gateways alike.
 *
 * A call is between a caller and a callee, or declared by a caller alone (`call:start` of Socket.IO, whose
 * peer we do not know). A user is in at most one call at a time, whatever its state:
 *
 *   request() ──► RINGING ──answer(), or a request() the other way (glare)──► ACCEPTED ◄── declare()
 *                  │ reject(), end() by the callee      rejected                │
 *                  │ end() by the caller                cancelled               │ end()        hangup
 *                  │ ring time over                     timeout                 │ party lost   disconnected
 *                  │ caller lost                        disconnected            │
 *                  ▼                                                            ▼
 *                 ENDED   known for CALL_ENDED_KEPT_MS more, so that who is late hears "ended"
 *
 * Each operation is one atomic transition and answers what happened, so that of many devices and
 * gateways exactly one makes it, and that one tells the others.
 *
 * A party takes part with one device: the caller with the one that asked, the callee with the one that
 * answered. It is held by a connection of that device, which renew() keeps; detach() says that a
 * connection is gone, attach() that a device has a new one. A party whose device is detached for the
 * reconnect grace, or not renewed for the lease window (its gateway died), is lost, and the call ends.
 * Such ends, and rings that nobody answers, are found by reap(), which any gateway calls now and then.
 *
 * Who is no party of a call gets CALL_NOT_FOUND, as for a call that never was. An `id` of SLICE_NONE
 * means the one call the user is in.
 *
 * Contract of every call: asynchronous; the completion runs exactly once, on the calling worker's
 * thread, possibly before the call returns; it never blocks; arguments are borrowed for the call,
 * answers for the completion. One `struct call_store` per worker.
 *
 * The suite in tests/conformance/call_store_suite.c says all of this in code, for every backend.
 */
#ifndef ROLLCALL_STORE_CALL_STORE_H
#define ROLLCALL_STORE_CALL_STORE_H

#include "base/slice.h"
#include "base/ulid.h"
#include "protocol/presence.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CALL_ID_BYTES_MAX = 128,
    CALL_ENDED_KEPT_MS = 60000,
    CALL_RENEWALS_MAX = 64, /* devices of one renew() */
    CALL_REAP_MAX = 64,     /* ends of one reap() */
};

enum call_state { CALL_RINGING, CALL_ACCEPTED, CALL_ENDED };

enum call_reason {
    CALL_REASON_NONE, /* it has not ended */
    CALL_REASON_HANGUP,
    CALL_REASON_REJECTED,
    CALL_REASON_CANCELLED,
    CALL_REASON_TIMEOUT,
    CALL_REASON_BUSY,               /* of requests that never became a call */
    CALL_REASON_ANSWERED_ELSEWHERE, /* told to devices, never a call's own */
    CALL_REASON_DISCONNECTED,
    CALL_REASON_COUNT
};

/* A user's device and the connection it has. */
struct call_device {
    struct slice user_id;
    struct slice device_id; /* SLICE_NONE: of a callee who has not answered */
    struct ulid conn_id;
};

struct call {
    struct slice id;
    enum call_state state;
    enum call_reason reason;
    struct call_device caller;
    struct call_device callee; /* user_id is SLICE_NONE where the call was declared */
    int64_t started_at_ms;     /* wall clock, as all three */
    int64_t answered_at_ms;    /* 0: never */
    int64_t ended_at_ms;       /* 0: not yet */
};

enum call_result {
    CALL_DONE,        /* the transition was made; `call` is as it is now */
    CALL_REPEATED,    /* it was made before, by the same device */
    CALL_GLARE,       /* the request answered the call that rang the other way, which is `call` */
    CALL_RINGS,       /* of attach(): `call` rings for this device */
    CALL_ELSEWHERE,   /* of attach(): the user is in `call` with another device */
    CALL_NOT_FOUND,   /* no `call` */
    CALL_WRONG_STATE, /* `call` says which */
    CALL_WRONG_PARTY, /* only the callee may do this */
    CALL_CALLER_BUSY, /* `call` is the one the caller is in */
    CALL_CALLEE_BUSY, /* no `call`: it is other people's */
    CALL_ID_TAKEN,    /* no `call` */
    CALL_UNAVAILABLE, /* the store certainly did nothing, and nothing was learned. No `call` */
    CALL_UNKNOWN, /* the store did not answer: the change may have happened. Not of get(). No `call` */
};

struct call_answer {
    enum call_result result;
    const struct call *call; /* NULL where it says so above */
};

struct call_store;

typedef void (*call_answer_done)(void *arg, const struct call_answer *answer);
typedef void (*call_reap_done)(void *arg, const struct call *ended, size_t count);

/* Runs for a device that is not in a call, or whose user is in it with another device. */
typedef void (*call_device_lost)(void *arg, const struct ulid *conn_id);

struct call_store_operations {
    void (*request)(struct call_store *store, struct slice id, const struct call_device *caller,
                    struct slice callee, call_answer_done done, void *arg);
    void (*declare)(struct call_store *store, struct slice id, const struct call_device *caller,
                    call_answer_done done, void *arg);
    void (*answer)(struct call_store *store, struct slice id, const struct call_device *callee,
                   call_answer_done done, void *arg);
    void (*reject)(struct call_store *store, struct slice id, struct slice user_id,
                   call_answer_done done, void *arg);
    void (*end)(struct call_store *store, struct slice id, struct slice user_id,
                call_answer_done done, void *arg);
    void (*get)(struct call_store *store, struct slice id, struct slice user_id,
                call_answer_done done, void *arg);
    void (*attach)(struct call_store *store, const struct call_device *device,
                   call_answer_done done, void *arg);
    void (*detach)(struct call_store *store, struct slice user_id, const struct ulid *conn_id,
                   call_answer_done done, void *arg);
    void (*renew)(struct call_store *store, const struct call_device *devices, size_t count,
                  call_device_lost on_lost, void *arg);
    void (*reap)(struct call_store *store, size_t max, call_reap_done done, void *arg);
    void (*free)(struct call_store *store);
};

struct call_store {
    const struct call_store_operations *operations;
};

/* Makes a call ring: DONE, REPEATED (the same request while it rings), GLARE, CALLER_BUSY,
 * CALLEE_BUSY, ID_TAKEN. The two are never the same user. */
static inline void call_store_request(struct call_store *store, struct slice id,
                                      const struct call_device *caller, struct slice callee,
                                      call_answer_done done, void *arg)
{
    store->operations->request(store, id, caller, callee, done, arg);
}

/* A user is in a call of which we know no more: DONE, CALLER_BUSY, ID_TAKEN. */
static inline void call_store_declare(struct call_store *store, struct slice id,
                                      const struct call_device *caller, call_answer_done done,
                                      void *arg)
{
    store->operations->declare(store, id, caller, done, arg);
}

/* The first device of the callee to do so takes the call: DONE, REPEATED, NOT_FOUND, WRONG_STATE,
 * WRONG_PARTY. */
static inline void call_store_answer(struct call_store *store, struct slice id,
                                     const struct call_device *callee, call_answer_done done,
                                     void *arg)
{
    store->operations->answer(store, id, callee, done, arg);
}

/* The callee does not want it: DONE, NOT_FOUND, WRONG_STATE, WRONG_PARTY. */
static inline void call_store_reject(struct call_store *store, struct slice id,
                                     struct slice user_id, call_answer_done done, void *arg)
{
    store->operations->reject(store, id, user_id, done, arg);
}

/* Either side, from any of its devices, ends it; state and side make the reason: DONE, NOT_FOUND,
 * WRONG_STATE. */
static inline void call_store_end(struct call_store *store, struct slice id, struct slice user_id,
                                  call_answer_done done, void *arg)
{
    store->operations->end(store, id, user_id, done, arg);
}

/* The call as a party of it may know it: DONE, NOT_FOUND. */
static inline void call_store_get(struct call_store *store, struct slice id, struct slice user_id,
                                  call_answer_done done, void *arg)
{
    store->operations->get(store, id, user_id, done, arg);
}

/* A device has a new connection: DONE (it is in a call, which is now held by this connection), RINGS,
 * ELSEWHERE, NOT_FOUND (its user is in no call). */
static inline void call_store_attach(struct call_store *store, const struct call_device *device,
                                     call_answer_done done, void *arg)
{
    store->operations->attach(store, device, done, arg);
}

/* A connection is gone: DONE (it held a party; the grace runs), NOT_FOUND (it held none). */
static inline void call_store_detach(struct call_store *store, struct slice user_id,
                                     const struct ulid *conn_id, call_answer_done done, void *arg)
{
    store->operations->detach(store, user_id, conn_id, done, arg);
}

/* At most CALL_RENEWALS_MAX devices are still connected. `lost` runs for each that is in no call, or
 * whose user is in it with another device; not at all when the store is out of reach. */
static inline void call_store_renew(struct call_store *store, const struct call_device *devices,
                                    size_t count, call_device_lost on_lost, void *arg)
{
    store->operations->renew(store, devices, count, on_lost, arg);
}

/* Ends what is due, at most `max` calls (and CALL_REAP_MAX); answers with those it ended. */
static inline void call_store_reap(struct call_store *store, size_t max, call_reap_done done,
                                   void *arg)
{
    store->operations->reap(store, max, done, arg);
}

static inline void call_store_free(struct call_store **store)
{
    struct call_store *freed = *store;
    *store = NULL;
    if (freed)
        freed->operations->free(freed);
}

const char *call_state_name(enum call_state state);

/* As clients are told it. */
const char *call_reason_name(enum call_reason reason);

#endif
