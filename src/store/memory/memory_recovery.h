/* The recovery store in memory, shared by the workers of a process under one lock. */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_RECOVERY_H
#define ROLLCALL_STORE_MEMORY_MEMORY_RECOVERY_H

#include "base/clock.h"
#include "store/recovery_store.h"

/* Sessions parked at a time; the oldest makes room. */
enum { MEMORY_RECOVERY_SESSIONS_MAX = 10000 };

struct memory_recovery;

/* NULL when memory is short. */
struct memory_recovery *memory_recovery_make(int64_t window_ms, uint64_t hash_seed);

/* After its ports. */
void memory_recovery_free(struct memory_recovery **recovery);

/* A worker's port. NULL when memory is short. */
struct recovery_store *memory_recovery_store(struct memory_recovery *recovery,
                                             const struct clock *clock);

#endif
