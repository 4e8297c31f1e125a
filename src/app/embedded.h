/*
 * The stores in memory that the gateways of a single process share.
 */
#ifndef ROLLCALL_APP_EMBEDDED_H
#define ROLLCALL_APP_EMBEDDED_H

#include "config/config.h"
#include "store/memory/memory_calls.h"
#include "store/memory/memory_graph.h"
#include "store/memory/memory_recovery.h"
#include "store/memory/memory_typing.h"
#include "store/memory/state/memory_state.h"

#include <stdbool.h>
#include <stdint.h>

struct embedded {
    struct memory_state *state;
    struct memory_graphs *graphs;
    struct memory_typing *typing;
    struct memory_calls *calls;
    struct memory_recovery *recovery;
};

/* Returns NULL when out of memory. */
struct embedded *embedded_make(const struct config *config, uint64_t hash_seed,
                               int64_t started_at_ms);

/* Call it after the last gateway is freed. */
void embedded_free(struct embedded **embedded);

#endif
