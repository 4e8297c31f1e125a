/*
 * The commands of one connection that wait for their answers, oldest first: Redis answers in order, so
 * each reply belongs to the oldest. Bounded; all wait equally long at most, so that the oldest is also
 * the first to be overdue.
 */
#ifndef ROLLCALL_REDIS_REDIS_PENDING_H
#define ROLLCALL_REDIS_REDIS_PENDING_H

#include "redis/protocol/resp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REDIS_PENDING_MAX = 1 << 16 };

/* The completion of a command. `reply` lasts the call; it is NULL when nobody knows whether the server has
 * executed the command. */
typedef void (*redis_reply_done)(void *arg, const struct resp_value *reply);

struct redis_pending_command {
    redis_reply_done done; /* NULL: nobody wants to know */
    void *arg;
    int64_t due_ms;
    bool fence; /* errors before its answer are not answers; see redis_connection_send_fenced() */
};

struct redis_pending {
    struct redis_pending_command *ring; /* `cap` of them, a power of two */
    size_t cap;
    size_t oldest;
    size_t count;
};

/* False when REDIS_PENDING_MAX wait, or memory is short. */
bool redis_pending_push(struct redis_pending *calls, const struct redis_pending_command *call);

/* NULL when none waits; valid until the next call of any function here. */
struct redis_pending_command *redis_pending_oldest(const struct redis_pending *calls);

/* Removes the oldest; there must be one. */
struct redis_pending_command redis_pending_pop(struct redis_pending *calls);

/* Takes back what was pushed last. */
void redis_pending_unpush(struct redis_pending *calls);
void redis_pending_free(struct redis_pending *calls);

#endif
