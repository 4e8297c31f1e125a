#include "store/memory/state/memory_state_internal.h"

#include <stdlib.h>

void memory_state_read(struct state_store *store, const struct slice *user_ids, size_t count,
                       state_presences_done done, void *arg)
{
    struct memory_state_port *port = memory_state_port_of(store);
    struct presence *presences = calloc(count ? count : 1, sizeof(*presences));
    if (!presences) {
        done(arg, STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct memory_shard *shard = memory_state_lock_user(port->state, user_ids[i]);
        presences[i] = memory_shard_presence(shard, user_ids[i]);
        presences[i].user_id = user_ids[i];
        memory_state_unlock(shard);
    }
    done(arg, STATE_OK, presences, count);
    free(presences);
}

/* The gateways on which a user has connections, one bit each. */
struct gateway_bits {
    uint64_t words[MEMORY_GATEWAYS_MAX / 64];
};

static struct gateway_bits find_user_gateways(struct memory_state *state, struct slice user_id,
                                              size_t *leases)
{
    struct gateway_bits bits = {0};
    struct memory_shard *shard = memory_state_lock_user(state, user_id);
    struct memory_user *user = memory_shard_user(shard, user_id);
    struct list *at = user ? user->leases.next : NULL;
    for (; at && at != &user->leases; at = at->next) {
        uint16_t number = CONTAINER_OF(at, struct memory_lease, of_user)->gateway;
        bits.words[number / 64] |= 1ULL << (number % 64);
        ++*leases;
    }
    memory_state_unlock(shard);
    return bits;
}

void memory_state_routes(struct state_store *store, const struct slice *user_ids, size_t count,
                         state_routes_done done, void *arg)
{
    struct memory_state *state = memory_state_port_of(store)->state;
    struct state_route routes[MEMORY_GATEWAYS_MAX];
    struct gateway_bits *bits = calloc(count + 1, sizeof(*bits));
    struct slice *users = NULL;
    size_t route_count = 0;
    size_t places = 0;
    size_t leases = 0;
    for (size_t i = 0; bits && i < count; i++) {
        bits[i] = find_user_gateways(state, user_ids[i], &leases);
        for (size_t word = 0; word < MEMORY_GATEWAYS_MAX / 64; word++)
            places += (size_t)__builtin_popcountll(bits[i].words[word]);
    }
    users = calloc(places + 1, sizeof(*users));
    if (!bits || !users) {
        free(bits);
        free(users);
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    struct slice *next = users;
    for (size_t i = 0; places && i < MEMORY_GATEWAYS_MAX; i++) {
        size_t found = 0;
        for (size_t user = 0; user < count; user++)
            if (bits[user].words[i / 64] >> (i % 64) & 1)
                next[found++] = user_ids[user];
        places -= found;
        if (found)
            routes[route_count++] = (struct state_route){
                {state->gateways[i].id, state->gateways[i].id_len}, next, found};
        next += found;
    }
    done(arg, STATE_OK,
         &(struct state_routes){
             .items = routes, .count = route_count, .devices = count == 1 ? leases : 0});
    free(bits);
    free(users);
}

static struct lease borrow_memory_lease(const struct memory_state *state,
                                        const struct memory_lease *lease, struct slice user_id,
                                        char device[DEVICE_ID_BYTES_MAX])
{
    const struct gateway_slot *gateway = &state->gateways[lease->gateway];
    size_t device_len = lease->own_device ? ULID_TEXT_LEN : lease->device_len;
    if (lease->own_device)
        ulid_write(device, &lease->conn_id);
    else
        memcpy(device, lease->device, device_len);
    return (struct lease){
        .conn_id = lease->conn_id,
        .user_id = user_id,
        .device_id = {device, device_len},
        .gateway_id = {gateway->id, gateway->id_len},
        .connected_at_ms = ulid_time_ms(&lease->conn_id),
        .last_heartbeat_ms = lease->last_heartbeat_ms,
        .idle = lease->idle,
    };
}

void memory_state_leases(struct state_store *store, struct slice user_id, state_leases_done done,
                         void *arg)
{
    struct memory_state_port *port = memory_state_port_of(store);
    struct lease leases[STATE_LEASES_MAX];
    char devices[STATE_LEASES_MAX][DEVICE_ID_BYTES_MAX];
    size_t count = 0;
    struct memory_shard *shard = memory_state_lock_user(port->state, user_id);
    struct memory_user *user = memory_shard_user(shard, user_id);
    struct list *at = user ? user->leases.next : NULL;
    for (; at && at != &user->leases && count < STATE_LEASES_MAX; at = at->next, count++)
        leases[count] = borrow_memory_lease(
            port->state, CONTAINER_OF(at, struct memory_lease, of_user), user_id, devices[count]);
    memory_state_unlock(shard);
    done(arg, STATE_OK, leases, count);
}

/* Leases are sharded by user, and the caller has no user id, so this rare operation searches every shard. */
void memory_state_find(struct state_store *store, const struct ulid *conn_id, state_lease_done done,
                       void *arg)
{
    struct memory_state_port *port = memory_state_port_of(store);
    char user[USER_ID_BYTES_MAX];
    char device[DEVICE_ID_BYTES_MAX];
    struct lease lease;
    bool found = false;
    for (size_t i = 0; i < MEMORY_SHARDS && !found; i++) {
        struct memory_shard *shard = memory_state_lock(port->state, i);
        const struct memory_lease *held = memory_shard_lease(shard, conn_id);
        found = held != NULL;
        if (found) {
            memcpy(user, held->user->id, held->user->id_len);
            lease = borrow_memory_lease(port->state, held, (struct slice){user, held->user->id_len},
                                        device);
        }
        memory_state_unlock(shard);
    }
    done(arg, STATE_OK, found ? &lease : NULL);
}

void memory_state_forget(struct state_store *store, struct slice user_id, state_forget_done done,
                         void *arg)
{
    struct memory_state_port *port = memory_state_port_of(store);
    struct memory_shard *shard = memory_state_lock_user(port->state, user_id);
    memory_shard_forget(shard, user_id);
    memory_state_unlock(shard);
    done(arg, STATE_OK);
}

void memory_state_history(struct state_store *store, struct slice user_id, state_history_done done,
                          void *arg)
{
    struct memory_state_port *port = memory_state_port_of(store);
    struct state_history history[STATE_HISTORY_MAX];
    struct memory_shard *shard = memory_state_lock_user(port->state, user_id);
    size_t count = memory_history_of(&shard->history, user_id, history, STATE_HISTORY_MAX);
    memory_state_unlock(shard);
    done(arg, STATE_OK, history, count);
}
