/*
 * The recovery store: the port behind which sessions wait that lost their connection a moment ago.
 *
 *   cut ──park()──► PARKED ◄──append(): what is sent to its user meanwhile
 *                     │ take(): its client is back, with its private id and what it got last
 *                     ▼ or the window is over, or there are too many
 *                    gone
 *
 * An event is frames, as they would have gone to the socket, and an offset: a number that grows from one
 * event of a connection to the next. Who comes back gets what is kept beyond the offset it names; if something
 * beyond it is no longer kept, there is nothing to recover and the session starts anew. What is appended has
 * come after the cut and was missed in any case: its offset is RECOVERY_MISSED. An event that comes twice, by
 * its id, is kept once.
 *
 * No event falls between two chairs:
 *
 *   looked up before the cut, received after it   recovery_expects(): the worker that parked appends it
 *   sent while the session is parked              the sender appends it
 *   sent while it is being taken                  the lease of who comes back is open by then, so it arrives
 *                                                 there: recovery_expects(), and it joins what is taken
 *
 * So an event may be both appended and delivered; whoever takes a session tells by the id.
 *
 * Contract of take(): asynchronous; the completion runs exactly once, on the calling worker's thread,
 * possibly before the call returns. Arguments are borrowed for the call, results for the completion. What
 * the store cannot take or give is simply not recovered: nobody waits for park() and append(). One
 * `struct recovery_store` per worker.
 */
#ifndef ROLLCALL_STORE_RECOVERY_STORE_H
#define ROLLCALL_STORE_RECOVERY_STORE_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds of one parked session; what comes after drops the oldest. */
enum {
    RECOVERY_EVENTS_MAX = 100,
    RECOVERY_EVENT_BYTES_MAX = 64 * 1024, /* of all its events */
    RECOVERY_TOPICS_MAX = 64,
    RECOVERY_USER_SESSIONS_MAX = 16, /* parked of one user */
};

#define RECOVERY_MISSED UINT64_MAX

struct recovery_event {
    uint64_t offset;
    uint64_t id; /* 0: it is like no other */
    struct slice frames;
};

struct parked_session {
    struct slice user_id;
    struct slice pid; /* the client's private id, a secret */
    struct slice sid; /* the one it is known by */
    uint64_t floor;   /* events up to this offset are not kept */
    uint64_t ceiling; /* no event of the connection had an offset beyond */
    const struct recovery_event *events;
    size_t event_count;
    const struct slice *topics; /* what it was subscribed to */
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
    void (*free)(struct recovery_store *store);
};

struct recovery_store {
    const struct recovery_store_operations *operations;
    bool is_shared; /* with other processes: what is parked outlives this one */
};

/* Keeps a session for the window. */
static inline void recovery_park(struct recovery_store *store, const struct parked_session *session)
{
    store->operations->park(store, session);
}

/* Whether nobody is parked whom only this store knows: then events need not be offered for all, only for those
 * of whom the state store says that they have a session parked (struct state_routes). */
static inline bool recovery_is_empty(struct recovery_store *store)
{
    return store->operations->is_empty(store);
}

/* Whether an event that arrived here for this user may belong to a session that was parked here a moment ago,
 * or is being taken here: then it is to be appended. */
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

/* Gives a session back, with its events beyond `offset`, and forgets it; NULL when there is none to
 * recover. */
static inline void recovery_take(struct recovery_store *store, struct slice user_id,
                                 struct slice pid, uint64_t offset, recovery_take_done done,
                                 void *arg)
{
    store->operations->take(store, user_id, pid, offset, done, arg);
}

/* Events went by that may not have been appended: what is parked now cannot be taken here any more. */
static inline void recovery_invalidate(struct recovery_store *store)
{
    store->operations->invalidate(store);
}

static inline void recovery_store_free(struct recovery_store **store)
{
    struct recovery_store *freed = *store;
    *store = NULL;
    if (freed)
        freed->operations->free(freed);
}

#endif
