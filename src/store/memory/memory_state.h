/*
 * The state store in memory: the embedded backend, shared by all workers of a process.
 *
 * `struct memory_state` is the shared part, split into MEMORY_SHARDS by user, each with its own short
 * lock; memory_state_store() makes the port one worker uses. Completions run inside the call, outside
 * the lock. Leases wait in lists ordered by refresh, which is the order of expiry, so that reaping
 * looks at nothing that still lives. Offline users are remembered up to a bound (for each shard its part
 * of it and one more), oldest forgotten first (the ledger keeps their last seen).
 *
 * Versions start at the wall clock in milliseconds, so that they do not go back over a restart, nor for
 * one who was forgotten. A gateway beyond the first MEMORY_GATEWAYS_MAX finds the store unavailable.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_STATE_H
#define ROLLCALL_STORE_MEMORY_MEMORY_STATE_H

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
    int64_t started_at_ms; /* wall clock: the version of users never seen */
};

struct memory_state *memory_state_make(const struct memory_state_options *options);

/* After the last port of it is gone. */
void memory_state_free(struct memory_state **state);

/* A worker's port. `clock` is borrowed for its life. */
struct state_store *memory_state_store(struct memory_state *state, const struct clock *clock);

struct memory_state_counts {
    size_t leases;
    size_t users_online;
    size_t users_multi_device;
    size_t leases_overdue; /* expired and not yet reaped */
};

/* Sums over the shards, for metrics; each shard's lock is taken in turn. */
struct memory_state_counts memory_state_count(struct memory_state *state, int64_t now_ms);

#endif
