/*
 * The typing store in memory: the embedded backend, shared by all workers of a process.
 *
 * It is split by chat into MEMORY_TYPING_SHARDS shards, each with its own short lock; memory_typing_store()
 * makes the port of one worker. Completions run before the operation returns, outside the lock. All notices
 * last equally long, and each update moves a user's record to the end of its shard's list, so the list is in
 * the order of expiry, and each update drops expired records from the front.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_TYPING_H
#define ROLLCALL_STORE_MEMORY_MEMORY_TYPING_H

#include "base/clock.h"
#include "store/typing_store.h"

enum { MEMORY_TYPING_SHARDS = 16 };

struct memory_typing;

struct memory_typing_options {
    int64_t ttl_ms;
    uint32_t rate_per_second;
    uint64_t hash_seed;
};

/* Returns NULL when out of memory. */
struct memory_typing *memory_typing_make(const struct memory_typing_options *options);

/* Call it after the last port is freed. */
void memory_typing_free(struct memory_typing **typing);

/* Makes a worker's port, which borrows `clock` for its life. Returns NULL when out of memory. */
struct typing_store *memory_typing_store(struct memory_typing *typing, const struct clock *clock);

/* Returns how many records are held, including expired ones that are not dropped yet; for tests. */
size_t memory_typing_count(struct memory_typing *typing);

#endif
