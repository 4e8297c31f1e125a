/*
 * The budget store on Redis, shared by a fleet: for actions that are rare and must be limited over all gateways.
 *
 * A budget that is not full is one key, `budget:<class>:<user>`, which ends when the budget is full; taking is one
 * script (store/redis/lua/budget.lua). When Redis does not answer or a reply is malformed, the result is
 * STATE_UNKNOWN or STATE_UNAVAILABLE. A foreign value under the key is removed.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_BUDGET_H
#define ROLLCALL_STORE_REDIS_REDIS_BUDGET_H

#include "base/clock.h"
#include "redis/redis_client.h"
#include "store/budget_store.h"

struct redis_budget_options {
    struct redis_client *client; /* borrowed for the store's life */
    const struct clock *clock;   /* NULL: Redis's own (redis_store.h) */
};

/* Creates one worker's store. Returns NULL when out of memory. It may be freed while operations are pending; they
 * complete when the client answers them. */
struct budget_store *redis_budget_make(const struct redis_budget_options *options);

#endif
