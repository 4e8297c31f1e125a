/*
 * The state store in memory: the embedded backend, shared by all workers of a process.
 *
 * `struct memory_state` is the shared part, split by user into MEMORY_SHARDS shards, each with its own short
 * lock; memory_state_store() makes the port of one worker. Completions run before the operation returns,
 * outside the lock. Leases are listed in the order of their refresh, which is the order of expiry, so reaping
 * never visits a living lease. Offline users are remembered up to a bound (each shard its part of the bound
 * and one more); the longest offline are forgotten first, and the ledger keeps their last-seen time.
 *
 * Versions start at the wall clock in milliseconds, so they do not go back after a restart or for a forgotten
 * user. For a gateway beyond the first MEMORY_GATEWAYS_MAX the store is unavailable.
 */
#ifndef ROLLCALL_STORE_MEMORY_STATE_MEMORY_STATE_H
#define ROLLCALL_STORE_MEMORY_STATE_MEMORY_STATE_H

#include "base/clock.h"
#include "store/state_store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MEMORY_SHARDS = 64,
    MEMORY_GATEWAYS_MAX = 256,
};

struct memory_state;

struct memory_state_options {
    int64_t lease_window_ms;
    int64_t offline_grace_ms;
    size_t offline_records_max;
    uint64_t hash_seed;
    int64_t started_at_ms; /* wall clock; the version of a user who was never seen */
};

/* Returns NULL when out of memory. */
struct memory_state *memory_state_make(const struct memory_state_options *options);

/* Call it after the last port is freed. */
void memory_state_free(struct memory_state **state);

/* Makes a worker's port, which borrows `clock` for its life. Returns NULL when out of memory. */
struct state_store *memory_state_store(struct memory_state *state, const struct clock *clock);

struct memory_state_counts {
    size_t leases;
    size_t users_online;
    size_t users_multi_device;
    size_t leases_overdue; /* expired, not yet reaped */
};

/* Returns sums over all shards, for metrics; takes one shard's lock at a time. */
struct memory_state_counts memory_state_count(struct memory_state *state, int64_t now_ms);

#endif
