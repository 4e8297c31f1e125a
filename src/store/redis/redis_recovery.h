/*
 * The recovery store on Redis: a session that was cut on one gateway can be recovered on any gateway of the fleet.
 *
 * A user's parked sessions are in the user's slot, and every operation is one script on them
 * (store/redis/lua/recovery.lua), so a session is taken only once, even by several gateways at a time. All keys expire
 * with the recovery time. The reply with a user's routes also has whether the user has a parked session, and delivery
 * appends events only for those users: while no session is parked, this store sends Redis nothing.
 *
 * This store misses events while Redis is out of reach. So a gateway that was cut off from Redis, failed to append, or
 * received a broadcast (recovery_invalidate()) recovers no session that was parked before that moment. When Redis is
 * out of reach or its reply is malformed, there is nothing to recover.
 *
 * This worker's own part, in memory, is recovery_local.h's.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_RECOVERY_H
#define ROLLCALL_STORE_REDIS_REDIS_RECOVERY_H

#include "base/clock.h"
#include "redis/redis_client.h"
#include "store/recovery_store.h"

struct redis_recovery_options {
    struct redis_client *client;      /* borrowed for the store's life */
    int64_t recovery_ms;              /* how long a session stays parked */
    uint64_t hash_seed;               /* random */
    const struct clock *clock;        /* the worker's */
    const struct clock *script_clock; /* NULL: Redis's own (redis_store.h) */
};

/* Creates one worker's store. Returns NULL when out of memory. Freeing it completes every pending take with nothing to
 * recover. */
struct recovery_store *redis_recovery_make(const struct redis_recovery_options *options);

/* ---- for an aggregator, which stores for others ---- */

/* `all` says that the event was appended for every user, as far as Redis answers. */
typedef void (*redis_recovery_append_done)(void *arg, bool all);

/* As recovery_append(); `done` runs exactly once, possibly before it returns. */
void redis_recovery_append_to(struct recovery_store *store, const struct slice *user_ids,
                              size_t count, const struct recovery_event *event,
                              redis_recovery_append_done done, void *arg);

/* As recovery_take(), for a gateway that has missed events until `missed_ms` ago; negative: it never has. */
void redis_recovery_take_since(struct recovery_store *store, struct slice user_id, struct slice pid,
                               uint64_t offset, int64_t missed_ms, recovery_take_done done,
                               void *arg);

#endif
