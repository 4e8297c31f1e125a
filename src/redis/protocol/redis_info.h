/*
 * What Redis says about itself, as metrics: every REDIS_INFO_INTERVAL_MS each master is asked for INFO. Of
 * several masters the fullest counts for memory; the rest is added up. One worker of a process does
 * this, since all would see the same.
 */
#ifndef ROLLCALL_REDIS_PROTOCOL_REDIS_INFO_H
#define ROLLCALL_REDIS_PROTOCOL_REDIS_INFO_H

#include "base/slice.h"
#include "redis/redis_client.h"

#include <stdint.h>

enum { REDIS_INFO_INTERVAL_MS = 5000 };

/* Figures of one server, or of all. */
struct redis_figures {
    int64_t used_memory_pct; /* of maxmemory, or of the machine's where there is none */
    int64_t keyspace_hits;
    int64_t keyspace_misses;
    int64_t expired_keys;
    int64_t evicted_keys;
    int64_t connected_clients;
    int64_t pubsub_channels; /* with the sharded ones of a cluster */
    int64_t pubsub_patterns;
};

struct redis_info;

/* NULL when memory is short. The client outlives it. */
struct redis_info *redis_info_make(struct redis_client *client, struct loop *loop,
                                   struct metrics *metrics);
void redis_info_free(struct redis_info **info);

/* Adds what a server's INFO says to the figures. */
void redis_figures_add(struct redis_figures *figures, struct slice text);

#endif
