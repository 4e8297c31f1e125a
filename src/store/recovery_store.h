/*
 * The recovery store: the port behind which sessions wait that lost their connection a moment ago.
 *
 *   cut ──park()──► PARKED ◄──append(): what is sent to its user meanwhile
 *                     │ take(): its client is back, with its private id and what it got last
 *                     ▼ or the window is over, or there are too many
 *                    gone
 *
 * An event is frames, as they would have gone to the socket, and an offset: a number that grows. Who comes
 * back gets what is kept beyond the offset it names; if something beyond it is no longer kept, there is
 * nothing to recover and the session starts anew.
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

struct recovery_event {
    uint64_t offset;
    struct slice frames;
};

struct recovery_record {
    struct slice user_id;
    struct slice pid; /* the client's private id, a secret */
    struct slice sid; /* the one it is known by */
    uint64_t floor;   /* events up to this offset are not kept */
    const struct recovery_event *events;
    size_t event_count;
    const struct slice *topics; /* what it was subscribed to */
    size_t topic_count;
};

struct recovery_store;

struct recovery_store_operations {
    void (*park)(struct recovery_store *store, const struct recovery_record *record);
    bool (*is_empty)(struct recovery_store *store);
    void (*append)(struct recovery_store *store, const struct slice *user_ids, size_t count,
                   const struct recovery_event *event);
    void (*take)(struct recovery_store *store, struct slice user_id, struct slice pid,
                 uint64_t offset, void (*done)(void *arg, const struct recovery_record *record),
                 void *arg);
    void (*free)(struct recovery_store *store);
};

struct recovery_store {
    const struct recovery_store_operations *operations;
};

/* Keeps a session for the window. */
static inline void recovery_park(struct recovery_store *store, const struct recovery_record *record)
{
    store->operations->park(store, record);
}

/* Whether nobody is parked, as far as is known: then events need not be offered. */
static inline bool recovery_is_empty(struct recovery_store *store)
{
    return store->operations->is_empty(store);
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
                                 struct slice pid, uint64_t offset,
                                 void (*done)(void *arg, const struct recovery_record *record),
                                 void *arg)
{
    store->operations->take(store, user_id, pid, offset, done, arg);
}

static inline void recovery_store_free(struct recovery_store **store)
{
    struct recovery_store *freed = *store;
    *store = NULL;
    if (freed)
        freed->operations->free(freed);
}

#endif
