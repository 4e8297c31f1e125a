/*
 * The typing store: the port to typing notices.
 *
 * A notice says "this device of this user types in this chat". It ends silently one time to live after its
 * last update. A user types in a chat while at least one of their devices has a notice there.
 *
 * Updates are limited per user and chat, over all devices: an update within the interval after the last
 * accepted one changes nothing (TYPING_LIMITED), even if a stop came between the two. A stop is never limited.
 *
 * Contract of every operation: it is asynchronous and never blocks. The completion runs exactly once, on the
 * calling worker's thread, possibly before the operation returns (so start it as the last thing a function
 * does). Arguments are borrowed until the operation returns, results until the completion returns. The status
 * means the same as in store/state_store.h. There is one `struct typing_store` per worker.
 *
 * The suite in tests/conformance/typing_store_suite.c tests all of this for every backend.
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
    TYPING_DEVICES_MAX = 4, /* of one user typing in one chat; the oldest beyond are dropped */
    TYPING_READ_MAX = 64,   /* users in one result */
};

enum typing_result {
    TYPING_STARTED, /* the user did not type there before */
    TYPING_RENEWED,
    TYPING_LIMITED, /* too soon after the last update: nothing changed */
};

struct typing_outcome {
    enum typing_result result;
    int64_t retry_after_ms; /* if limited */
};

struct typing_user {
    struct slice user_id;
    int64_t left_ms; /* until the user's last notice ends */
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

/* Starts or renews the notice of a device. */
static inline void typing_store_start(struct typing_store *store, struct slice chat_id,
                                      struct slice user_id, const struct ulid *conn_id,
                                      typing_start_done done, void *arg)
{
    store->operations->start(store, chat_id, user_id, conn_id, done, arg);
}

/* Ends the notice of a device, or of all the user's devices if `conn_id` is NULL. `stopped` is set when the
 * user typed until now and no longer does. */
static inline void typing_store_stop(struct typing_store *store, struct slice chat_id,
                                     struct slice user_id, const struct ulid *conn_id,
                                     typing_stop_done done, void *arg)
{
    store->operations->stop(store, chat_id, user_id, conn_id, done, arg);
}

/* Returns who types in a chat: at most `max` users, and at most TYPING_READ_MAX, in no order. */
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
