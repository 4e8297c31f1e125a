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
 * This worker's own part, in memory:
 *   - the users whom it parked within the last REDIS_RECOVERY_RECENT_MS, so that it appends events that arrive late for
 *     them. It is a table of keyed hashes of fixed size, in which a newer user replaces an older one, so a few late events may
 *     be missed;
 *   - the events that arrive while a session is being taken, within the limits of one session.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_RECOVERY_H
#define ROLLCALL_STORE_REDIS_REDIS_RECOVERY_H

#include "base/clock.h"
#include "redis/redis_client.h"
#include "store/recovery_store.h"

enum { REDIS_RECOVERY_RECENT_MS = 10000, REDIS_RECOVERY_RECENT_MAX = 2048 };

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

#endif
