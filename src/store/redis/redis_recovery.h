/*
 * The recovery store on Redis: who is cut off by one gateway is recovered by any other of the fleet.
 *
 * A user's sessions are in the user's slot, and every operation is one script on them
 * (store/redis/lua/recovery.lua): a session is taken once, whoever asks. All keys end with the window. That somebody
 * has a session parked is told with the routes, so that delivery appends for those alone: a fleet in which
 * nobody is cut off sends Redis nothing for it.
 *
 * What Redis cannot be told: while it is out of reach events go by unkept. A gateway that was cut off from it,
 * that failed to append, or that heard a broadcast (recovery_disturb()) gives back no session that was parked
 * before. Out of reach, or an answer that makes no sense: nothing to recover.
 *
 * This worker's own part: whom it parked in the last REDIS_RECOVERY_LATELY_MS, as hashes in a table of fixed
 * size where the younger takes the older's place, so that nearly all late events are still kept; and events
 * that arrive while a session is being taken, within the bounds of a session.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_RECOVERY_H
#define ROLLCALL_STORE_REDIS_REDIS_RECOVERY_H

#include "base/clock.h"
#include "redis/redis_client.h"
#include "store/recovery_store.h"

enum { REDIS_RECOVERY_LATELY_MS = 10000, REDIS_RECOVERY_LATELY_MAX = 2048 };

struct redis_recovery_options {
    struct redis_client *client; /* borrowed for the store's life */
    int64_t window_ms;
    const struct clock *clock;        /* the worker's */
    const struct clock *script_clock; /* NULL: Redis's own (redis_store.h) */
};

/* A worker's port. NULL when memory is short. Freeing it answers what is being taken: nothing to recover. */
struct recovery_store *redis_recovery_make(const struct redis_recovery_options *options);

#endif
