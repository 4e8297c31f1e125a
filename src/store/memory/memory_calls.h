/*
 * The call store in memory: the embedded backend, shared by all workers of a process.
 *
 * `struct memory_calls` is the shared part behind one short lock (calls are rare beside messages);
 * memory_calls_store() makes the port one worker uses. Completions run inside the call, outside the
 * lock. At most MEMORY_CALLS_ENDED_MAX ended calls are remembered, the oldest forgotten first.
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

/* NULL when memory is short. */
struct memory_calls *memory_calls_make(const struct memory_calls_options *options);

/* After the last port of it is gone. */
void memory_calls_free(struct memory_calls **calls);

/* A worker's port; NULL when memory is short. `clock` is borrowed for its life. */
struct call_store *memory_calls_store(struct memory_calls *calls, const struct clock *clock);

#endif
