/*
 * Polls INFO of Redis for the metrics: every REDIS_INFO_INTERVAL_MS it queries each master. With several masters
 * it reports the memory of the fullest and the sum of the rest. Only one worker of a process does this, since
 * all would report the same.
 */
#ifndef ROLLCALL_REDIS_REDIS_INFO_H
#define ROLLCALL_REDIS_REDIS_INFO_H

#include "base/slice.h"
#include "redis/redis_client.h"

#include <stdint.h>

enum { REDIS_INFO_INTERVAL_MS = 5000 };

/* The figures of one server, or of all together. */
struct redis_figures {
    int64_t used_memory_pct_mille; /* of maxmemory or, without it, of the machine's memory */
    int64_t keyspace_hits;
    int64_t keyspace_misses;
    int64_t expired_keys;
    int64_t evicted_keys;
    int64_t connected_clients;
    int64_t pubsub_channels; /* including the sharded ones of a cluster */
    int64_t pubsub_patterns;
};

struct redis_info;

/* Returns NULL when out of memory. The client must outlive it. */
struct redis_info *redis_info_make(struct redis_client *client, struct loop *loop,
                                   struct metrics *metrics);
void redis_info_free(struct redis_info **info);

/* Adds the figures of one server's INFO. */
void redis_figures_add(struct redis_figures *figures, struct slice text);

#endif
