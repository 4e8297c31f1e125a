#include "store/memory/state/memory_state_internal.h"

#include <stdlib.h>

struct memory_state *memory_state_make(const struct memory_state_options *options)
{
    struct memory_state *state = calloc(1, sizeof(*state));
    if (!state)
        return NULL;
    state->options = *options;
    pthread_mutex_init(&state->gateways_lock, NULL);
    for (size_t i = 0; i < MEMORY_SHARDS; i++) {
        pthread_mutex_init(&state->shards[i].lock, NULL);
        if (!memory_shard_init(&state->shards[i].shard, &state->options)) {
            memory_state_free(&state);
            return NULL;
        }
    }
    return state;
}

void memory_state_free(struct memory_state **state)
{
    struct memory_state *freed = *state;
    *state = NULL;
    if (!freed)
        return;
    for (size_t i = 0; i < MEMORY_SHARDS; i++) {
        memory_shard_free(&freed->shards[i].shard);
        pthread_mutex_destroy(&freed->shards[i].lock);
    }
    pthread_mutex_destroy(&freed->gateways_lock);
    free(freed);
}

/* Returns a transition that outlives the lock; the user's id is copied to `id`. */
static struct state_transition copy_transition(const struct memory_user *user, bool changed,
                                               int64_t at_ms, char id[USER_ID_BYTES_MAX])
{
    struct state_transition transition = {
        .changed = changed, .presence = memory_user_presence(user), .at_ms = at_ms};
    memcpy(id, transition.presence.user_id.data, transition.presence.user_id.len);
    transition.presence.user_id.data = id;
    return transition;
}

/* For an operation on an unknown lease or user. */
static struct state_transition make_unchanged_transition(const struct memory_shard *shard,
                                                         struct slice user_id, int64_t at_ms)
{
    struct state_transition transition = {.presence = memory_shard_presence(shard, user_id),
                                          .at_ms = at_ms};
    transition.presence.user_id = user_id;
    return transition;
}

/* ---- leases ---- */

/* Ends the lease that gives way to a new one. Returns whether the user's presence changed. */
static bool displace_memory_lease(struct memory_state_port *port, struct memory_shard *shard,
                                  struct memory_lease *lease, struct state_transition *transition)
{
    const struct gateway_slot *gateway = &port->state->gateways[lease->gateway];
    transition->displaced = lease->conn_id;
    transition->displaced_gateway = (struct slice){gateway->id, gateway->id_len};
    return memory_shard_close(shard, lease, port->clock->wall_ms, port->clock);
}

static void memory_state_open(struct state_store *store, const struct lease *lease,
                              state_transition_done done, void *arg)
{
    struct memory_state_port *port = memory_state_port_of(store);
    uint16_t gateway = memory_state_gateway_number(port->state, lease->gateway_id);
    char id[USER_ID_BYTES_MAX];
    struct state_transition transition = {0};
    bool changed;
    if (gateway == MEMORY_GATEWAYS_MAX) {
        done(arg, STATE_UNAVAILABLE, &transition);
        return;
    }
    struct memory_shard *shard = memory_state_lock_user(port->state, lease->user_id);
    bool was_here = memory_shard_presence(shard, lease->user_id).status >= PRESENCE_AWAY;
    struct memory_user *user = memory_shard_open(shard, lease, gateway, port->clock, &changed);
    if (user) {
        struct memory_lease *displaced = memory_shard_displaced(shard, user, lease, gateway);
        struct state_transition end = {0};
        changed |= displaced && displace_memory_lease(port, shard, displaced, &end);
        transition = copy_transition(user, changed, port->clock->wall_ms, id);
        transition.was_here = was_here;
        transition.displaced = end.displaced;
        transition.displaced_gateway = end.displaced_gateway;
    }
    memory_state_unlock(shard);
    done(arg, user ? STATE_OK : STATE_UNAVAILABLE, &transition);
}

static void memory_state_renew(struct state_store *store, struct lease_renewal *renewals,
                               size_t count, state_renewals_done done, void *arg)
{
    struct memory_state_port *port = memory_state_port_of(store);
    for (size_t i = 0; i < count; i++) {
        struct memory_shard *shard = memory_state_lock_user(port->state, renewals[i].user_id);
        struct memory_lease *lease =
            memory_shard_lease_of(shard, renewals[i].user_id, &renewals[i].conn_id);
        renewals[i].lost = lease == NULL;
        if (lease)
            memory_shard_renew(shard, lease, renewals[i].last_heartbeat_ms, port->clock);
        memory_state_unlock(shard);
    }
    done(arg, STATE_OK, renewals, count);
}

static void memory_state_set_idle(struct state_store *store, struct slice user_id,
                                  const struct ulid *conn_id, bool idle, state_transition_done done,
                                  void *arg)
{
    struct memory_state_port *port = memory_state_port_of(store);
    char id[USER_ID_BYTES_MAX];
    struct memory_shard *shard = memory_state_lock_user(port->state, user_id);
    struct state_transition transition =
        make_unchanged_transition(shard, user_id, port->clock->wall_ms);
    struct memory_lease *lease = memory_shard_lease_of(shard, user_id, conn_id);
    if (lease) {
        bool changed = memory_shard_set_idle(shard, lease, idle, port->clock);
        transition = copy_transition(lease->user, changed, port->clock->wall_ms, id);
    }
    memory_state_unlock(shard);
    done(arg, STATE_OK, &transition);
}

/* Ends a lease; the user was seen last at this time. */
static void memory_state_end(struct state_store *store, struct slice user_id,
                             const struct ulid *conn_id, int64_t left_at_ms,
                             state_transition_done done, void *arg)
{
    struct memory_state_port *port = memory_state_port_of(store);
    char id[USER_ID_BYTES_MAX];
    struct memory_shard *shard = memory_state_lock_user(port->state, user_id);
    struct state_transition transition =
        make_unchanged_transition(shard, user_id, port->clock->wall_ms);
    struct memory_lease *lease = memory_shard_lease_of(shard, user_id, conn_id);
    if (lease) {
        struct memory_user *user = lease->user;
        bool changed = memory_shard_close(shard, lease, left_at_ms, port->clock);
        transition = copy_transition(user, changed, port->clock->wall_ms, id);
        memory_shard_trim(shard);
    }
    memory_state_unlock(shard);
    done(arg, STATE_OK, &transition);
}

static void memory_state_close(struct state_store *store, struct slice user_id,
                               const struct ulid *conn_id, state_transition_done done, void *arg)
{
    int64_t now_ms = memory_state_port_of(store)->clock->wall_ms;
    memory_state_end(store, user_id, conn_id, now_ms, done, arg);
}

/* A claim without a connection has nothing to end. */
static void memory_state_settle(struct state_store *store, const struct state_claim *claim,
                                state_transition_done done, void *arg)
{
    memory_state_end(store, claim->user_id, &claim->conn_id, claim->left_at_ms, done, arg);
}

static void memory_state_set_call(struct state_store *store, struct slice user_id, bool in_call,
                                  state_transition_done done, void *arg)
{
    struct memory_state_port *port = memory_state_port_of(store);
    char id[USER_ID_BYTES_MAX];
    struct memory_shard *shard = memory_state_lock_user(port->state, user_id);
    struct memory_user *user = memory_shard_user(shard, user_id);
    bool changed = user && memory_shard_set_call(shard, user, in_call, port->clock);
    struct state_transition transition =
        user ? copy_transition(user, changed, port->clock->wall_ms, id)
             : make_unchanged_transition(shard, user_id, port->clock->wall_ms);
    memory_state_unlock(shard);
    done(arg, STATE_OK, &transition);
}

/* ---- reaping ---- */

static void memory_state_reap(struct state_store *store, size_t max, state_transitions_done done,
                              void *arg)
{
    struct memory_state_port *port = memory_state_port_of(store);
    struct memory_user *user;
    size_t found = 0;
    bool changed;
    if (max > MEMORY_REAP_BATCH_MAX)
        max = MEMORY_REAP_BATCH_MAX;
    for (size_t i = 0; i < MEMORY_SHARDS && found < max; i++) {
        struct memory_shard *shard = memory_state_lock(port->state, port->next_shard);
        while (found < max && memory_shard_reap_one(shard, port->clock, &user, &changed)) {
            port->reaped[found] =
                copy_transition(user, changed, port->clock->wall_ms, port->reaped_ids[found]);
            found++;
        }
        memory_shard_trim(shard);
        memory_state_unlock(shard);
        port->next_shard = (port->next_shard + 1) % MEMORY_SHARDS;
    }
    done(arg, STATE_OK, port->reaped, found);
}

static bool memory_state_available(struct state_store *store)
{
    (void)store;
    return true;
}

static void memory_state_free_port(struct state_store *store)
{
    free(memory_state_port_of(store));
}

static const struct state_store_operations MEMORY_STATE_OPERATIONS = {
    .open = memory_state_open,
    .renew = memory_state_renew,
    .set_idle = memory_state_set_idle,
    .close = memory_state_close,
    .settle = memory_state_settle,
    .read = memory_state_read,
    .set_call = memory_state_set_call,
    .routes = memory_state_routes,
    .leases = memory_state_leases,
    .find = memory_state_find,
    .history = memory_state_history,
    .forget = memory_state_forget,
    .reap = memory_state_reap,
    .put_gateway = memory_state_put_gateway,
    .gateways = memory_state_gateways,
    .online = memory_state_online,
    .count_online = memory_state_count_online,
    .available = memory_state_available,
    .free = memory_state_free_port,
};

struct state_store *memory_state_store(struct memory_state *state, const struct clock *clock)
{
    struct memory_state_port *port = malloc(sizeof(*port));
    if (!port)
        return NULL;
    port->store.operations = &MEMORY_STATE_OPERATIONS;
    port->state = state;
    port->clock = clock;
    port->next_shard = 0;
    return &port->store;
}

struct memory_state_counts memory_state_count(struct memory_state *state, int64_t now_ms)
{
    struct memory_state_counts counts = {0};
    for (size_t i = 0; i < MEMORY_SHARDS; i++) {
        struct memory_shard *shard = memory_state_lock(state, i);
        counts.leases += shard->leases.size;
        counts.users_online += shard->online_count;
        counts.users_multi_device += shard->multi_device_count;
        for (struct list *at = shard->by_expiry.next; at != &shard->by_expiry; at = at->next) {
            if (CONTAINER_OF(at, struct memory_lease, by_expiry)->expires_at_ms > now_ms)
                break;
            counts.leases_overdue++;
        }
        memory_state_unlock(shard);
    }
    return counts;
}
