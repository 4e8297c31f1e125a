/*
 * What the gateways of a process share that is on its own: the stores in memory.
 */
#ifndef ROLLCALL_APP_EMBEDDED_H
#define ROLLCALL_APP_EMBEDDED_H

#include "config/config.h"
#include "store/memory/memory_calls.h"
#include "store/memory/memory_graph.h"
#include "store/memory/memory_recovery.h"
#include "store/memory/memory_state.h"
#include "store/memory/memory_typing.h"

#include <stdbool.h>
#include <stdint.h>

struct embedded {
    struct memory_state *state;
    struct memory_graphs *graphs;
    struct memory_typing *typing;
    struct memory_calls *calls;
    struct memory_recovery *recovery;
};

/* NULL when memory is short. */
struct embedded *embedded_make(const struct config *config, uint64_t hash_seed,
                               int64_t started_at_ms);

/* After the last gateway is gone. */
void embedded_free(struct embedded **embedded);

#endif
