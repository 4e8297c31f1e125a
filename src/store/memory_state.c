#include "store/memory_state.h"

#include "base/container.h"
#include "store/memory_shard.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <xxhash.h>

enum { REAP_BATCH_MAX = 256 };

struct gateway_slot {
    char id[GATEWAY_ID_BYTES_MAX];
    size_t id_len;
    size_t connections;
    int64_t started_at_ms;
    int64_t heard_at_ms; /* monotonic; INT64_MIN: not yet, only seen in leases */
    bool draining;
};

struct locked_shard {
    pthread_mutex_t lock;
    struct memory_shard shard;
};

struct memory_state {
    struct memory_state_options options;
    struct locked_shard shards[MEMORY_SHARDS];
    pthread_mutex_t gateways_lock;
    struct gateway_slot gateways[MEMORY_GATEWAYS_MAX];
    size_t gateway_count;
};

struct memory_store {
    struct state_store store;
    struct memory_state *state;
    const struct clock *clock;
    size_t next_shard; /* where the next reaping starts */
    struct state_transition reaped[REAP_BATCH_MAX];
    char reaped_ids[REAP_BATCH_MAX][USER_ID_BYTES_MAX];
};

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

static struct memory_store *store_of(struct state_store *store)
{
    return CONTAINER_OF(store, struct memory_store, store);
}

static struct memory_shard *lock_shard(struct memory_state *state, size_t index)
{
    pthread_mutex_lock(&state->shards[index].lock);
    return &state->shards[index].shard;
}

static struct memory_shard *lock_user(struct memory_state *state, struct slice user_id)
{
    uint64_t hash = XXH3_64bits_withSeed(user_id.data, user_id.len, state->options.hash_seed);
    return lock_shard(state, (hash >> 32) % MEMORY_SHARDS);
}

static void unlock(struct memory_shard *shard)
{
    pthread_mutex_unlock(&CONTAINER_OF(shard, struct locked_shard, shard)->lock);
}

/* A transition that outlives the lock; its user id is copied to `id`. */
static struct state_transition transition_of(const struct memory_user *user, bool changed,
                                             int64_t at_ms, char id[USER_ID_BYTES_MAX])
{
    struct state_transition transition = {
        .changed = changed, .presence = memory_user_presence(user), .at_ms = at_ms};
    memcpy(id, transition.presence.user_id.data, transition.presence.user_id.len);
    transition.presence.user_id.data = id;
    return transition;
}

/* Of an operation on a lease the store does not know. */
static struct state_transition no_transition(const struct memory_shard *shard, struct slice user_id,
                                             int64_t at_ms)
{
    struct state_transition transition = {.presence = memory_shard_presence(shard, user_id),
                                          .at_ms = at_ms};
    transition.presence.user_id = user_id;
    return transition;
}

/* ---- gateways ---- */

static size_t find_gateway(const struct memory_state *state, struct slice id)
{
    size_t i = 0;
    while (i < state->gateway_count &&
           !slice_equal((struct slice){state->gateways[i].id, state->gateways[i].id_len}, id))
        i++;
    return i;
}

/* The number of a gateway, entering it when it is new; MEMORY_GATEWAYS_MAX when there is no room. */
static uint16_t gateway_number(struct memory_state *state, struct slice id)
{
    assert(id.len <= GATEWAY_ID_BYTES_MAX);
    pthread_mutex_lock(&state->gateways_lock);
    size_t number = find_gateway(state, id);
    if (number == state->gateway_count && number < MEMORY_GATEWAYS_MAX) {
        struct gateway_slot *slot = &state->gateways[state->gateway_count++];
        slot->id_len = id.len;
        memcpy(slot->id, id.data, slot->id_len);
        slot->heard_at_ms = INT64_MIN;
    }
    pthread_mutex_unlock(&state->gateways_lock);
    return (uint16_t)number;
}

static void memory_put_gateway(struct state_store *port, const struct gateway_info *info)
{
    struct memory_store *store = store_of(port);
    uint16_t number = gateway_number(store->state, info->gateway_id);
    if (number >= MEMORY_GATEWAYS_MAX)
        return;
    pthread_mutex_lock(&store->state->gateways_lock);
    struct gateway_slot *slot = &store->state->gateways[number];
    slot->connections = info->connections;
    slot->started_at_ms = info->started_at_ms;
    slot->draining = info->draining;
    slot->heard_at_ms = store->clock->now_ms;
    pthread_mutex_unlock(&store->state->gateways_lock);
}

static void memory_gateways(struct state_store *port,
                            void (*done)(void *arg, enum state_status status,
                                         const struct gateway_info *gateways, size_t count),
                            void *arg)
{
    struct memory_store *store = store_of(port);
    struct memory_state *state = store->state;
    struct gateway_info infos[MEMORY_GATEWAYS_MAX];
    size_t count = 0;
    pthread_mutex_lock(&state->gateways_lock);
    for (size_t i = 0; i < state->gateway_count; i++) {
        const struct gateway_slot *slot = &state->gateways[i];
        if (slot->heard_at_ms + state->options.lease_window_ms <= store->clock->now_ms)
            continue;
        infos[count++] = (struct gateway_info){{slot->id, slot->id_len}, /* ids never change */
                                               slot->connections,
                                               slot->started_at_ms,
                                               slot->draining};
    }
    pthread_mutex_unlock(&state->gateways_lock);
    done(arg, STATE_OK, infos, count);
}

/* ---- leases ---- */

static void memory_open(struct state_store *port, const struct lease *lease,
                        void (*done)(void *arg, enum state_status status,
                                     const struct state_transition *transition),
                        void *arg)
{
    struct memory_store *store = store_of(port);
    uint16_t gateway = gateway_number(store->state, lease->gateway_id);
    char id[USER_ID_BYTES_MAX];
    struct state_transition transition = {0};
    bool changed;
    if (gateway == MEMORY_GATEWAYS_MAX) {
        done(arg, STATE_UNAVAILABLE, &transition);
        return;
    }
    struct memory_shard *shard = lock_user(store->state, lease->user_id);
    bool was_here = memory_shard_presence(shard, lease->user_id).status >= PRESENCE_AWAY;
    struct memory_user *user = memory_shard_open(shard, lease, gateway, store->clock, &changed);
    if (user)
        transition = transition_of(user, changed, store->clock->wall_ms, id);
    transition.was_here = was_here;
    unlock(shard);
    done(arg, user ? STATE_OK : STATE_UNAVAILABLE, &transition);
}

static void memory_renew(struct state_store *port, struct lease_renewal *renewals, size_t count,
                         void (*done)(void *arg, enum state_status status,
                                      const struct lease_renewal *renewals, size_t count),
                         void *arg)
{
    struct memory_store *store = store_of(port);
    for (size_t i = 0; i < count; i++) {
        struct memory_shard *shard = lock_user(store->state, renewals[i].user_id);
        struct memory_lease *lease =
            memory_shard_lease_of(shard, renewals[i].user_id, &renewals[i].conn_id);
        renewals[i].lost = lease == NULL;
        if (lease)
            memory_shard_renew(shard, lease, renewals[i].last_heartbeat_ms, store->clock);
        unlock(shard);
    }
    done(arg, STATE_OK, renewals, count);
}

static void memory_set_idle(struct state_store *port, struct slice user_id,
                            const struct ulid *conn_id, bool idle,
                            void (*done)(void *arg, enum state_status status,
                                         const struct state_transition *transition),
                            void *arg)
{
    struct memory_store *store = store_of(port);
    char id[USER_ID_BYTES_MAX];
    struct memory_shard *shard = lock_user(store->state, user_id);
    struct state_transition transition = no_transition(shard, user_id, store->clock->wall_ms);
    struct memory_lease *lease = memory_shard_lease_of(shard, user_id, conn_id);
    if (lease) {
        bool changed = memory_shard_set_idle(shard, lease, idle, store->clock);
        transition = transition_of(lease->user, changed, store->clock->wall_ms, id);
    }
    unlock(shard);
    done(arg, STATE_OK, &transition);
}

static void memory_close(struct state_store *port, struct slice user_id, const struct ulid *conn_id,
                         void (*done)(void *arg, enum state_status status,
                                      const struct state_transition *transition),
                         void *arg)
{
    struct memory_store *store = store_of(port);
    char id[USER_ID_BYTES_MAX];
    struct memory_shard *shard = lock_user(store->state, user_id);
    struct state_transition transition = no_transition(shard, user_id, store->clock->wall_ms);
    struct memory_lease *lease = memory_shard_lease_of(shard, user_id, conn_id);
    if (lease) {
        struct memory_user *user = lease->user;
        bool changed = memory_shard_close(shard, lease, store->clock);
        transition = transition_of(user, changed, store->clock->wall_ms, id);
        memory_shard_trim(shard);
    }
    unlock(shard);
    done(arg, STATE_OK, &transition);
}

/* ---- reading ---- */

static void memory_read(struct state_store *port, const struct slice *user_ids, size_t count,
                        void (*done)(void *arg, enum state_status status,
                                     const struct presence *presences, size_t count),
                        void *arg)
{
    struct memory_store *store = store_of(port);
    struct presence *presences = calloc(count ? count : 1, sizeof(*presences));
    if (!presences) {
        done(arg, STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct memory_shard *shard = lock_user(store->state, user_ids[i]);
        presences[i] = memory_shard_presence(shard, user_ids[i]);
        presences[i].user_id = user_ids[i];
        unlock(shard);
    }
    done(arg, STATE_OK, presences, count);
    free(presences);
}

static void memory_set_call(struct state_store *port, struct slice user_id, bool in_call,
                            void (*done)(void *arg, enum state_status status,
                                         const struct state_transition *transition),
                            void *arg)
{
    struct memory_store *store = store_of(port);
    char id[USER_ID_BYTES_MAX];
    struct memory_shard *shard = lock_user(store->state, user_id);
    struct memory_user *user = memory_shard_user(shard, user_id);
    bool changed = user && memory_shard_set_call(shard, user, in_call, store->clock);
    struct state_transition transition =
        user ? transition_of(user, changed, store->clock->wall_ms, id)
             : no_transition(shard, user_id, store->clock->wall_ms);
    unlock(shard);
    done(arg, STATE_OK, &transition);
}

/* The gateways a user is connected to, a bit each. */
struct gateway_bits {
    uint64_t words[MEMORY_GATEWAYS_MAX / 64];
};

static struct gateway_bits gateways_of(struct memory_state *state, struct slice user_id)
{
    struct gateway_bits bits = {0};
    struct memory_shard *shard = lock_user(state, user_id);
    struct memory_user *user = memory_shard_user(shard, user_id);
    struct list *at = user ? user->leases.next : NULL;
    for (; at && at != &user->leases; at = at->next) {
        uint16_t number = CONTAINER_OF(at, struct memory_lease, of_user)->gateway;
        bits.words[number / 64] |= 1ULL << (number % 64);
    }
    unlock(shard);
    return bits;
}

static bool has_gateway(const struct gateway_bits *bits, size_t number)
{
    return bits->words[number / 64] >> (number % 64) & 1;
}

/* Writes the users of one gateway from `users` on; returns how many. */
static size_t users_on(size_t gateway, const struct slice *user_ids,
                       const struct gateway_bits *bits, size_t count, struct slice *users)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (has_gateway(&bits[i], gateway))
            users[found++] = user_ids[i];
    return found;
}

static void memory_routes(struct state_store *port, const struct slice *user_ids, size_t count,
                          void (*done)(void *arg, enum state_status status,
                                       const struct state_routes *routes),
                          void *arg)
{
    struct memory_state *state = store_of(port)->state;
    struct state_route routes[MEMORY_GATEWAYS_MAX];
    struct gateway_bits *bits = calloc(count + 1, sizeof(*bits));
    struct slice *users = NULL;
    size_t route_count = 0;
    size_t places = 0;
    for (size_t i = 0; bits && i < count; i++) {
        bits[i] = gateways_of(state, user_ids[i]);
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
        size_t found = users_on(i, user_ids, bits, count, next);
        places -= found;
        if (found)
            routes[route_count++] = (struct state_route){
                {state->gateways[i].id, state->gateways[i].id_len}, next, found};
        next += found;
    }
    done(arg, STATE_OK, &(struct state_routes){.items = routes, .count = route_count});
    free(bits);
    free(users);
}

static struct lease lease_of(const struct memory_state *state, const struct memory_lease *lease,
                             struct slice user_id, char device[DEVICE_ID_BYTES_MAX])
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

static void memory_leases(struct state_store *port, struct slice user_id,
                          void (*done)(void *arg, enum state_status status,
                                       const struct lease *leases, size_t count),
                          void *arg)
{
    struct memory_store *store = store_of(port);
    struct lease leases[STATE_LEASES_MAX];
    char devices[STATE_LEASES_MAX][DEVICE_ID_BYTES_MAX];
    size_t count = 0;
    struct memory_shard *shard = lock_user(store->state, user_id);
    struct memory_user *user = memory_shard_user(shard, user_id);
    struct list *at = user ? user->leases.next : NULL;
    for (; at && at != &user->leases && count < STATE_LEASES_MAX; at = at->next, count++)
        leases[count] = lease_of(store->state, CONTAINER_OF(at, struct memory_lease, of_user),
                                 user_id, devices[count]);
    unlock(shard);
    done(arg, STATE_OK, leases, count);
}

/* Leases are sharded by user, whom the caller does not know: every shard is asked. Rare. */
static void memory_find(struct state_store *port, const struct ulid *conn_id,
                        void (*done)(void *arg, enum state_status status,
                                     const struct lease *lease),
                        void *arg)
{
    struct memory_store *store = store_of(port);
    char user[USER_ID_BYTES_MAX];
    char device[DEVICE_ID_BYTES_MAX];
    struct lease lease;
    bool found = false;
    for (size_t i = 0; i < MEMORY_SHARDS && !found; i++) {
        struct memory_shard *shard = lock_shard(store->state, i);
        const struct memory_lease *held = memory_shard_lease(shard, conn_id);
        found = held != NULL;
        if (found) {
            memcpy(user, held->user->id, held->user->id_len);
            lease = lease_of(store->state, held, (struct slice){user, held->user->id_len}, device);
        }
        unlock(shard);
    }
    done(arg, STATE_OK, found ? &lease : NULL);
}

static void memory_history(struct state_store *port, struct slice user_id,
                           void (*done)(void *arg, enum state_status status,
                                        const struct state_history *history, size_t count),
                           void *arg)
{
    struct memory_store *store = store_of(port);
    struct state_history history[STATE_HISTORY_MAX];
    struct memory_shard *shard = lock_user(store->state, user_id);
    size_t count = memory_shard_history(shard, user_id, history, STATE_HISTORY_MAX);
    unlock(shard);
    done(arg, STATE_OK, history, count);
}

/* ---- reaping ---- */

static size_t reap_shard(struct memory_store *store, size_t index, size_t found, size_t max)
{
    struct memory_user *user;
    bool changed;
    struct memory_shard *shard = lock_shard(store->state, index);
    while (found < max && memory_shard_reap_one(shard, store->clock, &user, &changed)) {
        store->reaped[found] =
            transition_of(user, changed, store->clock->wall_ms, store->reaped_ids[found]);
        found++;
    }
    memory_shard_trim(shard);
    unlock(shard);
    return found;
}

static void memory_reap(struct state_store *port, size_t max,
                        void (*done)(void *arg, enum state_status status,
                                     const struct state_transition *transitions, size_t count),
                        void *arg)
{
    struct memory_store *store = store_of(port);
    size_t found = 0;
    if (max > REAP_BATCH_MAX)
        max = REAP_BATCH_MAX;
    for (size_t i = 0; i < MEMORY_SHARDS && found < max; i++) {
        found = reap_shard(store, store->next_shard, found, max);
        store->next_shard = (store->next_shard + 1) % MEMORY_SHARDS;
    }
    done(arg, STATE_OK, store->reaped, found);
}

static bool memory_available(struct state_store *port)
{
    (void)port;
    return true;
}

static void memory_free(struct state_store *port)
{
    free(store_of(port));
}

static const struct state_store_operations OPERATIONS = {
    .open = memory_open,
    .renew = memory_renew,
    .set_idle = memory_set_idle,
    .close = memory_close,
    .read = memory_read,
    .set_call = memory_set_call,
    .routes = memory_routes,
    .leases = memory_leases,
    .find = memory_find,
    .history = memory_history,
    .reap = memory_reap,
    .put_gateway = memory_put_gateway,
    .gateways = memory_gateways,
    .available = memory_available,
    .free = memory_free,
};

struct state_store *memory_state_store(struct memory_state *state, const struct clock *clock)
{
    struct memory_store *store = malloc(sizeof(*store));
    if (!store)
        return NULL;
    store->store.operations = &OPERATIONS;
    store->state = state;
    store->clock = clock;
    store->next_shard = 0;
    return &store->store;
}

struct memory_state_counts memory_state_count(struct memory_state *state, int64_t now_ms)
{
    struct memory_state_counts counts = {0};
    for (size_t i = 0; i < MEMORY_SHARDS; i++) {
        struct memory_shard *shard = lock_shard(state, i);
        counts.leases += shard->leases.size;
        counts.users_online += shard->online_count;
        counts.users_multi_device += shard->multi_device_count;
        for (struct list *at = shard->by_expiry.next; at != &shard->by_expiry; at = at->next) {
            if (CONTAINER_OF(at, struct memory_lease, by_expiry)->expires_at_ms > now_ms)
                break;
            counts.leases_overdue++;
        }
        unlock(shard);
    }
    return counts;
}
