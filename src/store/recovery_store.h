/*
 * The recovery store: the port to parked sessions, whose clients lost their connection a moment ago.
 *
 *   cut ──park()──► PARKED ◄──append(): an event sent to its user meanwhile
 *                     │ take(): the client is back, with its private id and the offset it received last
 *                     ▼ or the recovery time is over, or too many sessions are parked
 *                    gone
 *
 * An event is its frames, as they would have gone to the socket, and an offset: a number that grows from one
 * event of a connection to the next. A client that comes back gets the kept events beyond the offset it
 * names; if an event beyond it is no longer kept, nothing is recovered and the session starts anew. An
 * appended event came after the cut, so the client certainly missed it: its offset is RECOVERY_MISSED. Of
 * events with the same id one is kept.
 *
 * No event is lost between two gateways:
 *
 *   routed before the cut, received after it   recovery_expects(): the worker that parked appends it
 *   sent while the session is parked           the sender appends it
 *   sent while the session is being taken      the new connection's lease is open by then, so the event
 *                                              arrives there: recovery_expects(), and it joins the backlog
 *
 * So an event may be both appended and delivered; the taker recognises the second by its id.
 *
 * Contract: the completion of take() runs exactly once, on the calling worker's thread, possibly before take()
 * returns. Arguments are borrowed until the operation returns, results until the completion returns. park()
 * and append() report no failure: what the store cannot hold is not recovered. There is one
 * `struct recovery_store` per worker.
 *
 * The suite in tests/conformance/recovery_store_suite.c tests all of this for every backend.
 */
#ifndef ROLLCALL_STORE_RECOVERY_STORE_H
#define ROLLCALL_STORE_RECOVERY_STORE_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds of one parked session; beyond them the oldest events are dropped. */
enum {
    RECOVERY_EVENTS_MAX = 100,
    RECOVERY_EVENT_BYTES_MAX = 64 * 1024, /* of all its events */
    RECOVERY_TOPICS_MAX = 64,
    RECOVERY_USER_SESSIONS_MAX = 16, /* parked sessions of one user; the oldest is dropped */
};

#define RECOVERY_MISSED UINT64_MAX

struct recovery_event {
    uint64_t offset;
    uint64_t id; /* 0: none, the event is never a duplicate */
    struct slice frames;
};

struct parked_session {
    struct slice user_id;
    struct slice pid; /* the client's private id, a secret */
    struct slice sid; /* the session's public id */
    uint64_t floor;   /* events up to this offset are no longer kept */
    uint64_t ceiling; /* the largest offset of the connection */
    const struct recovery_event *events;
    size_t event_count;
    const struct slice *topics; /* its subscriptions */
    size_t topic_count;
};

struct recovery_store;

typedef void (*recovery_take_done)(void *arg, const struct parked_session *session);

struct recovery_store_operations {
    void (*park)(struct recovery_store *store, const struct parked_session *session);
    bool (*is_empty)(struct recovery_store *store);
    bool (*expects)(struct recovery_store *store, struct slice user_id);
    void (*append)(struct recovery_store *store, const struct slice *user_ids, size_t count,
                   const struct recovery_event *event);
    void (*take)(struct recovery_store *store, struct slice user_id, struct slice pid,
                 uint64_t offset, recovery_take_done done, void *arg);
    void (*invalidate)(struct recovery_store *store);
    size_t (*held_bytes)(struct recovery_store *store); /* NULL: none in this process */
    size_t (*shed)(struct recovery_store *store, size_t bytes);
    void (*free)(struct recovery_store *store);
};

struct recovery_store {
    const struct recovery_store_operations *operations;
    bool is_shared; /* with other processes: a parked session outlives this process */
};

/* Keeps a session for the recovery time. */
static inline void recovery_park(struct recovery_store *store, const struct parked_session *session)
{
    store->operations->park(store, session);
}

/* Whether this store holds no parked session that the state store does not report. Then only users whom the
 * state store reports as parked (struct state_routes) need events appended. */
static inline bool recovery_is_empty(struct recovery_store *store)
{
    return store->operations->is_empty(store);
}

/* Whether an event that arrived here for this user may belong to a session that was parked here a moment ago or
 * is being taken here. The caller then appends it. */
static inline bool recovery_expects(struct recovery_store *store, struct slice user_id)
{
    return store->operations->expects(store, user_id);
}

/* Adds an event to every parked session of these users. */
static inline void recovery_append(struct recovery_store *store, const struct slice *user_ids,
                                   size_t count, const struct recovery_event *event)
{
    store->operations->append(store, user_ids, count, event);
}

/* Removes a session and returns it with its events beyond `offset`; NULL when nothing can be recovered. */
static inline void recovery_take(struct recovery_store *store, struct slice user_id,
                                 struct slice pid, uint64_t offset, recovery_take_done done,
                                 void *arg)
{
    store->operations->take(store, user_id, pid, offset, done, arg);
}

/* Makes the sessions that are parked now unrecoverable here, since events may have passed without being
 * appended. */
static inline void recovery_invalidate(struct recovery_store *store)
{
    store->operations->invalidate(store);
}

/* Returns the memory of this process that parked sessions hold, of all workers. */
static inline size_t recovery_held_bytes(struct recovery_store *store)
{
    return store->operations->held_bytes ? store->operations->held_bytes(store) : 0;
}

/* Drops the oldest parked sessions of this process until `bytes` are free or none is left. Returns how many bytes
 * were freed. Their clients get new sessions. */
static inline size_t recovery_shed(struct recovery_store *store, size_t bytes)
{
    return store->operations->shed ? store->operations->shed(store, bytes) : 0;
}

static inline void recovery_store_free(struct recovery_store **store)
{
    struct recovery_store *freed = *store;
    *store = NULL;
    if (freed)
        freed->operations->free(freed);
}

#endif
