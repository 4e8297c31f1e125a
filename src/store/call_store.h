/*
 * The call store: the port to the calls in progress of the whole fleet.
 *
 * A call is between a caller and a callee, or declared by a caller alone, when the
 * other party is not known. A user is in at most one call at a time, whatever its state:
 *
 *   request() ──► RINGING ──answer(), or a request() the other way (glare)──► ACCEPTED ◄── declare()
 *                  │ reject(), end() by the callee      rejected                │
 *                  │ end() by the caller                cancelled               │ end()        hangup
 *                  │ ring timeout                       timeout                 │ party lost   disconnected
 *                  │ caller lost                        disconnected            │
 *                  ▼                                                            ▼
 *                 ENDED   kept for CALL_ENDED_KEPT_MS more, so that late operations find it ended
 *
 * Each operation is one atomic transition and returns what happened. So of many devices and gateways exactly
 * one makes the transition, and its gateway notifies the others.
 *
 * A caller who may not know whether the callee is in a call gets a call that the callee does not hear (ring_unheard()):
 * it rings until its timeout. The callee is no party of it, and appears in the record for the history only.
 *
 * A party takes part with one device: the caller with the device that requested, the callee with the device
 * that answered. A connection of that device holds the party: renew() keeps it, detach() records that the
 * connection is gone, attach() that the device has a new one. A party is lost when its device stays detached
 * for the reconnect grace, or is not renewed for the lease window (its gateway died); then the call ends.
 * reap() finds lost parties and unanswered calls; any gateway calls it from time to time.
 *
 * A user who is no party of a call gets CALL_NOT_FOUND, as for a call that never was. An `id` of SLICE_NONE
 * means the one call the user is in.
 *
 * Contract of every operation: it is asynchronous and never blocks. The completion runs exactly once, on the
 * calling worker's thread, possibly before the operation returns. Arguments are borrowed until the operation
 * returns, answers until the completion returns. There is one `struct call_store` per worker.
 *
 * The suite in tests/conformance/call_store_suite.c tests all of this for every backend.
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
    CALL_RENEWALS_MAX = 64, /* devices per renew() */
    CALL_REAP_MAX = 64,     /* ended calls per reap() */
};

enum call_state { CALL_RINGING, CALL_ACCEPTED, CALL_ENDED };

enum call_reason {
    CALL_REASON_NONE, /* the call has not ended */
    CALL_REASON_HANGUP,
    CALL_REASON_REJECTED,
    CALL_REASON_CANCELLED,
    CALL_REASON_TIMEOUT,
    CALL_REASON_BUSY,               /* of a request that never became a call */
    CALL_REASON_ANSWERED_ELSEWHERE, /* sent to devices; never the reason of a call */
    CALL_REASON_DISCONNECTED,
    CALL_REASON_COUNT
};

/* A user's device and its connection. */
struct call_device {
    struct slice user_id;
    struct slice device_id; /* SLICE_NONE for a callee who has not answered */
    struct ulid conn_id;
};

struct call {
    struct slice id;
    enum call_state state;
    enum call_reason reason;
    struct call_device caller;
    struct call_device callee; /* user_id is SLICE_NONE if the call was declared */
    bool unheard;              /* the callee must not be told about this call */
    int64_t started_at_ms;     /* wall clock, like the next two */
    int64_t answered_at_ms;    /* 0: never */
    int64_t ended_at_ms;       /* 0: not yet */
};

enum call_result {
    CALL_DONE,        /* the transition was made; `call` is the call after it */
    CALL_REPEATED,    /* the same device made the transition before */
    CALL_GLARE,       /* the request answered `call`, which rang the other way */
    CALL_RINGS,       /* attach(): `call` rings for this device */
    CALL_ELSEWHERE,   /* attach(): the user is in `call` with another device */
    CALL_NOT_FOUND,   /* no `call` */
    CALL_WRONG_STATE, /* `call` has the state */
    CALL_WRONG_PARTY, /* only the callee may do this */
    CALL_CALLER_BUSY, /* the caller is in `call` */
    CALL_CALLEE_BUSY, /* no `call`: it belongs to other users */
    CALL_ID_TAKEN,    /* no `call` */
    CALL_UNAVAILABLE, /* the store certainly did nothing and read nothing. No `call` */
    CALL_UNKNOWN, /* no answer: the change may have happened. get() never returns it. No `call` */
};

struct call_answer {
    enum call_result result;
    const struct call *call; /* NULL where the comment of the result says "no `call`" */
};

struct call_store;

typedef void (*call_answer_done)(void *arg, const struct call_answer *answer);
typedef void (*call_reap_done)(void *arg, const struct call *ended, size_t count);

/* Runs for a device that is not in a call, or whose user is in it with another device. */
typedef void (*call_device_lost)(void *arg, const struct ulid *conn_id);

struct call_store_operations {
    void (*request)(struct call_store *store, struct slice id, const struct call_device *caller,
                    struct slice callee, call_answer_done done, void *arg);
    void (*ring_unheard)(struct call_store *store, struct slice id,
                         const struct call_device *caller, struct slice callee,
                         call_answer_done done, void *arg);
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

/* Makes a call ring: DONE, REPEATED (the same request while it rings), GLARE, CALLER_BUSY, CALLEE_BUSY,
 * ID_TAKEN. Caller and callee must be different users. */
static inline void call_store_request(struct call_store *store, struct slice id,
                                      const struct call_device *caller, struct slice callee,
                                      call_answer_done done, void *arg)
{
    store->operations->request(store, id, caller, callee, done, arg);
}

/* Makes a call ring that the callee does not hear, whatever the callee does: DONE, REPEATED, GLARE, CALLER_BUSY,
 * ID_TAKEN. */
static inline void call_store_ring_unheard(struct call_store *store, struct slice id,
                                           const struct call_device *caller, struct slice callee,
                                           call_answer_done done, void *arg)
{
    store->operations->ring_unheard(store, id, caller, callee, done, arg);
}

/* Puts a user into an accepted call without a known callee: DONE, CALLER_BUSY, ID_TAKEN. */
static inline void call_store_declare(struct call_store *store, struct slice id,
                                      const struct call_device *caller, call_answer_done done,
                                      void *arg)
{
    store->operations->declare(store, id, caller, done, arg);
}

/* The callee's first device to answer takes the call: DONE, REPEATED, NOT_FOUND, WRONG_STATE, WRONG_PARTY. */
static inline void call_store_answer(struct call_store *store, struct slice id,
                                     const struct call_device *callee, call_answer_done done,
                                     void *arg)
{
    store->operations->answer(store, id, callee, done, arg);
}

/* The callee refuses the call: DONE, NOT_FOUND, WRONG_STATE, WRONG_PARTY. */
static inline void call_store_reject(struct call_store *store, struct slice id,
                                     struct slice user_id, call_answer_done done, void *arg)
{
    store->operations->reject(store, id, user_id, done, arg);
}

/* Either party ends the call from any device; state and party give the reason: DONE, NOT_FOUND, WRONG_STATE. */
static inline void call_store_end(struct call_store *store, struct slice id, struct slice user_id,
                                  call_answer_done done, void *arg)
{
    store->operations->end(store, id, user_id, done, arg);
}

/* Returns the call to one of its parties: DONE, NOT_FOUND. */
static inline void call_store_get(struct call_store *store, struct slice id, struct slice user_id,
                                  call_answer_done done, void *arg)
{
    store->operations->get(store, id, user_id, done, arg);
}

/* A device has a new connection: DONE (the device is in a call, which this connection now holds), RINGS,
 * ELSEWHERE, NOT_FOUND (the user is in no call). */
static inline void call_store_attach(struct call_store *store, const struct call_device *device,
                                     call_answer_done done, void *arg)
{
    store->operations->attach(store, device, done, arg);
}

/* A connection is gone: DONE (it held a party, whose grace begins), NOT_FOUND (it held none). */
static inline void call_store_detach(struct call_store *store, struct slice user_id,
                                     const struct ulid *conn_id, call_answer_done done, void *arg)
{
    store->operations->detach(store, user_id, conn_id, done, arg);
}

/* Renews at most CALL_RENEWALS_MAX connected devices. `on_lost` runs for each device that is in no call or whose
 * user is in one with another device; it does not run when the store gives no answer. */
static inline void call_store_renew(struct call_store *store, const struct call_device *devices,
                                    size_t count, call_device_lost on_lost, void *arg)
{
    store->operations->renew(store, devices, count, on_lost, arg);
}

/* Ends the calls that are due, at most `max` and at most CALL_REAP_MAX, and returns them. */
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

/* The name that clients see. */
const char *call_reason_name(enum call_reason reason);

#endif
