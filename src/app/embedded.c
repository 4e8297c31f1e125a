#include "app/embedded.h"

#include <stdlib.h>

struct embedded *embedded_make(const struct config *config, uint64_t hash_seed,
                               int64_t started_at_ms)
{
    struct embedded *embedded = calloc(1, sizeof(*embedded));
    if (!embedded)
        return NULL;
    embedded->state = memory_state_make(&(struct memory_state_options){
        .lease_window_ms = config->presence.expiry_window_ms,
        .offline_grace_ms = config->presence.offline_grace_ms,
        .offline_records_max = config->presence.offline_records_max,
        .hash_seed = hash_seed,
        .started_at_ms = started_at_ms,
    });
    embedded->graphs = memory_graphs_make(&(struct memory_graphs_options){
        .contacts_total_max = MEMORY_GRAPH_CONTACTS_TOTAL_MAX,
        .hash_seed = hash_seed,
    });
    embedded->typing = memory_typing_make(&(struct memory_typing_options){
        .ttl_ms = config->typing.ttl_ms,
        .rate_per_second = config->typing.rate_per_second,
        .hash_seed = hash_seed,
    });
    embedded->calls = memory_calls_make(&(struct memory_calls_options){
        .ring_timeout_ms = config->call.ring_timeout_ms,
        .reconnect_grace_ms = config->call.reconnect_grace_ms,
        .lease_window_ms = config->presence.expiry_window_ms,
        .hash_seed = hash_seed,
    });
    embedded->recovery = memory_recovery_make(config->socketio.recovery_ms, hash_seed);
    if (!embedded->state || !embedded->graphs || !embedded->typing || !embedded->calls ||
        !embedded->recovery)
        embedded_free(&embedded);
    return embedded;
}

void embedded_free(struct embedded **embedded)
{
    struct embedded *freed = *embedded;
    *embedded = NULL;
    if (!freed)
        return;
    memory_graphs_free(&freed->graphs);
    memory_state_free(&freed->state);
    memory_calls_free(&freed->calls);
    memory_typing_free(&freed->typing);
    memory_recovery_free(&freed->recovery);
    free(freed);
}
