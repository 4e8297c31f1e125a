/*
 * The parts of the state store in memory, for its own files: memory_state.c (leases and reaping),
 * memory_state_read.c (reading), memory_state_online.c (who is online) and memory_state_gateways.c.
 *
 * A user's shard is locked while it is read or changed, and never while a completion runs. Gateways have a lock
 * of their own. A gateway's id never changes once entered, so it may be read without the lock.
 */
#ifndef ROLLCALL_STORE_MEMORY_STATE_MEMORY_STATE_INTERNAL_H
#define ROLLCALL_STORE_MEMORY_STATE_MEMORY_STATE_INTERNAL_H

#include "base/container.h"
#include "store/memory/state/memory_shard.h"
#include "store/memory/state/memory_state.h"

#include <pthread.h>
#include <xxhash.h>

enum { MEMORY_REAP_BATCH_MAX = 256 };

struct gateway_slot {
    char id[GATEWAY_ID_BYTES_MAX];
    size_t id_len;
    size_t connections;
    int64_t started_at_ms;
    int64_t
        put_at_ms; /* monotonic, of the last state_put_gateway(); INT64_MIN: never, only leases name it */
    bool draining;
};

struct locked_shard {
    pthread_mutex_t lock;
    struct memory_shard shard;
};

struct memory_state {
    struct memory_state_options options;
    struct locked_shard shards[MEMORY_SHARDS];
    pthread_mutex_t gateways_lock;
    struct gateway_slot gateways[MEMORY_GATEWAYS_MAX];
    size_t gateway_count;
};

struct memory_state_port {
    struct state_store store;
    struct memory_state *state;
    const struct clock *clock;
    size_t next_shard; /* where the next reap starts */
    struct state_transition reaped[MEMORY_REAP_BATCH_MAX];
    char reaped_ids[MEMORY_REAP_BATCH_MAX][USER_ID_BYTES_MAX];
};

static inline struct memory_state_port *memory_state_port_of(struct state_store *store)
{
    return CONTAINER_OF(store, struct memory_state_port, store);
}

static inline struct memory_shard *memory_state_lock(struct memory_state *state, size_t index)
{
    pthread_mutex_lock(&state->shards[index].lock);
    return &state->shards[index].shard;
}

static inline size_t memory_state_shard_of(const struct memory_state *state, struct slice user_id)
{
    uint64_t hash = XXH3_64bits_withSeed(user_id.data, user_id.len, state->options.hash_seed);
    return (hash >> 32) % MEMORY_SHARDS;
}

static inline struct memory_shard *memory_state_lock_user(struct memory_state *state,
                                                          struct slice user_id)
{
    return memory_state_lock(state, memory_state_shard_of(state, user_id));
}

static inline void memory_state_unlock(struct memory_shard *shard)
{
    pthread_mutex_unlock(&CONTAINER_OF(shard, struct locked_shard, shard)->lock);
}

/* ---- gateways ---- */

/* Returns the number of a gateway and enters a new one; MEMORY_GATEWAYS_MAX when no slot is free. */
uint16_t memory_state_gateway_number(struct memory_state *state, struct slice id);
void memory_state_put_gateway(struct state_store *store, const struct gateway_info *info);
void memory_state_gateways(struct state_store *store, state_gateways_done done, void *arg);

/* ---- reading ---- */

void memory_state_read(struct state_store *store, const struct slice *user_ids, size_t count,
                       state_presences_done done, void *arg);
void memory_state_routes(struct state_store *store, const struct slice *user_ids, size_t count,
                         state_routes_done done, void *arg);
void memory_state_leases(struct state_store *store, struct slice user_id, state_leases_done done,
                         void *arg);
void memory_state_find(struct state_store *store, const struct ulid *conn_id, state_lease_done done,
                       void *arg);
void memory_state_forget(struct state_store *store, struct slice user_id, state_forget_done done,
                         void *arg);
void memory_state_history(struct state_store *store, struct slice user_id, state_history_done done,
                          void *arg);

/* ---- who is online ---- */

void memory_state_online(struct state_store *store, struct slice after, size_t limit,
                         state_online_done done, void *arg);
void memory_state_count_online(struct state_store *store, state_count_done done, void *arg);

#endif
