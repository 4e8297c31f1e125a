/*
 * The typing store: the port behind which it is kept who types where.
 *
 * A notice says "this device of this user types in this chat"; it lasts for the time to live from its
 * last update and then is gone without a word. A user types in a chat while one of their devices has
 * a notice there.
 *
 * Updates are limited per user and chat, all devices together: one that comes within the interval after
 * the last that was taken changes nothing (TYPING_LIMITED), also when a stop came between the two. A
 * stop is always taken.
 *
 * Contract of every call: asynchronous; the completion runs exactly once, on the calling worker's
 * thread, possibly before the call returns (so make the call the last thing a function does); it never
 * blocks; arguments are borrowed for the call, results for the completion. The status
 * means what it means in store/state_store.h. One `struct typing_store` per worker.
 *
 * The suite in tests/conformance/typing_store_suite.c says all of this in code, for every backend.
 */
#ifndef ROLLCALL_STORE_TYPING_STORE_H
#define ROLLCALL_STORE_TYPING_STORE_H

#include "base/slice.h"
#include "base/ulid.h"
#include "store/state_store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TYPING_DEVICES_MAX = 4, /* of one user that type in one chat; of more the newest are known */
    TYPING_READ_MAX = 64,   /* users of one answer */
};

enum typing_result {
    TYPING_STARTED, /* the user did not type there before */
    TYPING_RENEWED,
    TYPING_LIMITED, /* too soon after the last one: nothing changed */
};

struct typing_outcome {
    enum typing_result result;
    int64_t retry_after_ms; /* of LIMITED */
};

struct typing_user {
    struct slice user_id;
    int64_t left_ms; /* until the last notice ends */
};

struct typing_store;

typedef void (*typing_start_done)(void *arg, enum state_status status,
                                  const struct typing_outcome *outcome);
typedef void (*typing_stop_done)(void *arg, enum state_status status, bool stopped);
typedef void (*typing_users_done)(void *arg, enum state_status status,
                                  const struct typing_user *users, size_t count);

struct typing_store_operations {
    void (*start)(struct typing_store *store, struct slice chat_id, struct slice user_id,
                  const struct ulid *conn_id, typing_start_done done, void *arg);
    void (*stop)(struct typing_store *store, struct slice chat_id, struct slice user_id,
                 const struct ulid *conn_id, typing_stop_done done, void *arg);
    void (*read)(struct typing_store *store, struct slice chat_id, size_t max,
                 typing_users_done done, void *arg);
    void (*free)(struct typing_store *store);
};

struct typing_store {
    const struct typing_store_operations *operations;
};

/* A device types. */
static inline void typing_store_start(struct typing_store *store, struct slice chat_id,
                                      struct slice user_id, const struct ulid *conn_id,
                                      typing_start_done done, void *arg)
{
    store->operations->start(store, chat_id, user_id, conn_id, done, arg);
}

/* A device (NULL: all of the user's) no longer types. `stopped`: the user typed until now. */
static inline void typing_store_stop(struct typing_store *store, struct slice chat_id,
                                     struct slice user_id, const struct ulid *conn_id,
                                     typing_stop_done done, void *arg)
{
    store->operations->stop(store, chat_id, user_id, conn_id, done, arg);
}

/* Who types in a chat, at most `max` (TYPING_READ_MAX at most), in no order. */
static inline void typing_store_read(struct typing_store *store, struct slice chat_id, size_t max,
                                     typing_users_done done, void *arg)
{
    store->operations->read(store, chat_id, max, done, arg);
}

static inline void typing_store_free(struct typing_store **store)
{
    struct typing_store *freed = *store;
    *store = NULL;
    if (freed)
        freed->operations->free(freed);
}

#endif
