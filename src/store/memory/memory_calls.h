/*
 * The call store in memory: the embedded backend, shared by all workers of a process.
 *
 * `struct memory_calls` is the shared part behind one short lock (calls are rare compared with messages);
 * memory_calls_store() makes the port of one worker. Completions run before the operation returns, outside the
 * lock. At most MEMORY_CALLS_ENDED_MAX ended calls are remembered; the oldest are forgotten first.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_CALLS_H
#define ROLLCALL_STORE_MEMORY_MEMORY_CALLS_H

#include "base/clock.h"
#include "store/call_store.h"

enum { MEMORY_CALLS_ENDED_MAX = 10000 };

struct memory_calls;

struct memory_calls_options {
    int64_t ring_timeout_ms;
    int64_t reconnect_grace_ms;
    int64_t lease_window_ms;
    uint64_t hash_seed;
};

/* Returns NULL when out of memory. */
struct memory_calls *memory_calls_make(const struct memory_calls_options *options);

/* Call it after the last port is freed. */
void memory_calls_free(struct memory_calls **calls);

/* Makes a worker's port, which borrows `clock` for its life. Returns NULL when out of memory. */
struct call_store *memory_calls_store(struct memory_calls *calls, const struct clock *clock);

#endif
