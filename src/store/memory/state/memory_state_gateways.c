#include "store/memory/state/memory_state_internal.h"

#include <assert.h>

uint16_t memory_state_gateway_number(struct memory_state *state, struct slice id)
{
    assert(id.len <= GATEWAY_ID_BYTES_MAX);
    pthread_mutex_lock(&state->gateways_lock);
    size_t number = 0;
    while (number < state->gateway_count &&
           !slice_equal((struct slice){state->gateways[number].id, state->gateways[number].id_len},
                        id))
        number++;
    if (number == state->gateway_count && number < MEMORY_GATEWAYS_MAX) {
        struct gateway_slot *slot = &state->gateways[state->gateway_count++];
        slot->id_len = id.len;
        memcpy(slot->id, id.data, slot->id_len);
        slot->put_at_ms = INT64_MIN;
    }
    pthread_mutex_unlock(&state->gateways_lock);
    return (uint16_t)number;
}

void memory_state_put_gateway(struct state_store *store, const struct gateway_info *info)
{
    struct memory_state_port *port = memory_state_port_of(store);
    uint16_t number = memory_state_gateway_number(port->state, info->gateway_id);
    if (number >= MEMORY_GATEWAYS_MAX)
        return;
    pthread_mutex_lock(&port->state->gateways_lock);
    struct gateway_slot *slot = &port->state->gateways[number];
    slot->connections = info->connections;
    slot->started_at_ms = info->started_at_ms;
    slot->draining = info->draining;
    slot->put_at_ms = port->clock->now_ms;
    pthread_mutex_unlock(&port->state->gateways_lock);
}

void memory_state_gateways(struct state_store *store, state_gateways_done done, void *arg)
{
    struct memory_state_port *port = memory_state_port_of(store);
    struct memory_state *state = port->state;
    struct gateway_info infos[MEMORY_GATEWAYS_MAX];
    size_t count = 0;
    pthread_mutex_lock(&state->gateways_lock);
    for (size_t i = 0; i < state->gateway_count; i++) {
        const struct gateway_slot *slot = &state->gateways[i];
        if (slot->put_at_ms + state->options.lease_window_ms <= port->clock->now_ms)
            continue;
        infos[count++] = (struct gateway_info){{slot->id, slot->id_len}, /* an id never changes */
                                               slot->connections,
                                               slot->started_at_ms,
                                               slot->draining};
    }
    pthread_mutex_unlock(&state->gateways_lock);
    done(arg, STATE_OK, infos, count);
}
