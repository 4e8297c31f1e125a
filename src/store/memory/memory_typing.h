/*
 * The typing store in memory: the embedded backend, shared by all workers of a process.
 *
 * Split by chat into MEMORY_TYPING_SHARDS, each with a short lock of its own; memory_typing_store()
 * makes the port one worker uses. Completions run inside the call, outside the lock. All notices last
 * equally long, so a user's record that is moved to the end of its shard's list at each update stands
 * there in the order of expiry, and what is over is dropped from the front with the next update.
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

struct memory_typing *memory_typing_make(const struct memory_typing_options *options);

/* After the last port of it is gone. */
void memory_typing_free(struct memory_typing **typing);

/* A worker's port. `clock` is borrowed for its life. NULL when memory is short. */
struct typing_store *memory_typing_store(struct memory_typing *typing, const struct clock *clock);

/* Records held at the moment, those that are over and not yet dropped included: for tests. */
size_t memory_typing_count(struct memory_typing *typing);

#endif
