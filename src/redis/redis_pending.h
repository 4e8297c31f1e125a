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

struct redis_call {
    void (*done)(void *arg, const struct resp_value *reply); /* NULL: nobody wants to know */
    void *arg;
    int64_t due_ms;
    bool fence; /* errors before its answer are not answers; see redis_connection_send_fenced() */
};

struct redis_calls {
    struct redis_call *ring; /* `cap` of them, a power of two */
    size_t cap;
    size_t oldest;
    size_t count;
};

/* False when REDIS_PENDING_MAX wait, or memory is short. */
bool redis_calls_push(struct redis_calls *calls, const struct redis_call *call);

/* NULL when none waits; valid until the next call of any function here. */
struct redis_call *redis_calls_oldest(const struct redis_calls *calls);

/* Removes the oldest; there must be one. */
struct redis_call redis_calls_pop(struct redis_calls *calls);

/* Takes back what was pushed last. */
void redis_calls_unpush(struct redis_calls *calls);
void redis_calls_free(struct redis_calls *calls);

#endif
