/*
 * The budget store in memory, shared by all workers of a process: the only one on its own; in a fleet the one for
 * frequent actions, and the fallback for the others.
 *
 * It is split by user into MEMORY_BUDGET_SHARDS shards, each with its own short lock. A shard is an array of buckets of
 * MEMORY_BUDGET_BUCKET records; a record is 24 bytes and belongs into one bucket. A record is free once its budget is
 * full again, so nothing has to be removed. A shard grows when a bucket has no free record, and memory_budget_sweep()
 * shrinks it, down to nothing.
 *
 * Bounds: MEMORY_BUDGET_BUCKETS_MAX buckets per shard, 24 MiB in all. Beyond it, and without memory, the record in the
 * bucket whose budget is closest to full gives way: many users who act once cannot hide one who floods.
 *
 * Users are told apart by 128 bits of a hash that is keyed with a secret of the process. Any thread.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_BUDGET_H
#define ROLLCALL_STORE_MEMORY_MEMORY_BUDGET_H

#include "base/clock.h"
#include "store/budget_store.h"

#include <stddef.h>

enum {
    MEMORY_BUDGET_SHARDS = 64,
    MEMORY_BUDGET_BUCKET = 8,
    MEMORY_BUDGET_BUCKETS_MAX = 2048,
    MEMORY_BUDGET_SWEPT_SHARDS = 8, /* in one step */
};

struct memory_budget;

/* Returns NULL when out of memory. */
struct memory_budget *memory_budget_make(uint64_t hash_seed);

/* Call it after the last port is freed. */
void memory_budget_free(struct memory_budget **budget);

/* Makes a worker's port, which borrows `clock` for its life. Returns NULL when out of memory. */
struct budget_store *memory_budget_store(struct memory_budget *budget, const struct clock *clock);

/* Frees memory that is needed no more, some shards at a time. */
void memory_budget_sweep(struct memory_budget *budget, int64_t now_ms);

/* The memory of all records. */
size_t memory_budget_bytes(struct memory_budget *budget);

#endif
