/*
 * The commands of one connection that wait for their replies, oldest first: Redis answers in order, so each
 * reply belongs to the oldest. Bounded. All have the same time limit, so the oldest is also overdue first.
 */
#ifndef ROLLCALL_REDIS_REDIS_PENDING_H
#define ROLLCALL_REDIS_REDIS_PENDING_H

#include "redis/protocol/resp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REDIS_PENDING_MAX = 1 << 16 };

/* The completion of a command. `reply` is valid until it returns; NULL: it is unknown whether the server has
 * executed the command. */
typedef void (*redis_reply_done)(void *arg, const struct resp_value *reply);

struct redis_pending_command {
    redis_reply_done done; /* may be NULL */
    void *arg;
    int64_t due_ms;
    bool fence; /* errors before its reply are not its reply; see redis_connection_send_fenced() */
};

struct redis_pending {
    struct redis_pending_command *ring; /* `cap` entries, a power of two */
    size_t cap;
    size_t oldest;
    size_t count;
};

/* Returns false when REDIS_PENDING_MAX commands wait, or when out of memory. */
bool redis_pending_push(struct redis_pending *pending, const struct redis_pending_command *entry);

/* Returns NULL when no command waits; valid until the next push or pop. */
struct redis_pending_command *redis_pending_oldest(const struct redis_pending *pending);

/* Removes the oldest; there must be one. */
struct redis_pending_command redis_pending_pop(struct redis_pending *pending);

/* Removes the newest; there must be one. */
void redis_pending_unpush(struct redis_pending *pending);
void redis_pending_free(struct redis_pending *pending);

#endif
