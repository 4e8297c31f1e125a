/* The recovery store in memory: the embedded backend, shared by all workers of a process under one lock. */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_RECOVERY_H
#define ROLLCALL_STORE_MEMORY_MEMORY_RECOVERY_H

#include "base/clock.h"
#include "store/recovery_store.h"

/* Sessions parked at a time; beyond it the oldest is dropped. */
enum { MEMORY_RECOVERY_SESSIONS_MAX = 10000 };

struct memory_recovery;

/* `recovery_ms` is how long a session stays parked. Returns NULL when out of memory. */
struct memory_recovery *memory_recovery_make(int64_t recovery_ms, uint64_t hash_seed);

/* Call it after the last port is freed. */
void memory_recovery_free(struct memory_recovery **recovery);

/* Makes a worker's port, which borrows `clock` for its life. Returns NULL when out of memory. */
struct recovery_store *memory_recovery_store(struct memory_recovery *recovery,
                                             const struct clock *clock);

#endif
