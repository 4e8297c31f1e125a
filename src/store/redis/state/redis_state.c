#include "store/redis/state/redis_state.h"

#include "base/container.h"
#include "log/log.h"
#include "store/redis/state/redis_state_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARGUMENTS_FIRST = 3 };

struct redis_state *redis_state_of(struct state_store *store)
{
    return CONTAINER_OF(store, struct redis_state, store);
}

/* ---- pending operations ---- */

static void free_redis_state(struct redis_state *state)
{
    table_free(&state->lease_queues);
    redis_route_cache_free(&state->route_cache);
    redis_state_looks_free(state);
    redis_state_registry_free(state);
    free(state);
}

void redis_state_begin(struct redis_state *state)
{
    state->pending++;
}

void redis_state_end(struct redis_state *state)
{
    assert(state->pending > 0);
    if (--state->pending == 0 && state->closing)
        free_redis_state(state);
}

size_t redis_state_pending(const struct state_store *store)
{
    return CONTAINER_OF(store, const struct redis_state, store)->pending;
}

/* Even an ignored reply counts as pending, because the script must outlive it. */
static void on_state_ignored_reply(void *arg, const struct resp_value *reply)
{
    (void)reply;
    redis_state_end(arg);
}

void redis_state_eval(struct redis_state *state, enum redis_state_script script,
                      struct redis_args keys, struct redis_args arguments, redis_reply_done done,
                      void *arg)
{
    if (!done)
        redis_state_begin(state);
    redis_eval(state->options.client, &state->scripts[script], keys, arguments,
               done ? done : on_state_ignored_reply, done ? arg : state);
}

void redis_state_run(struct redis_state *state, enum redis_state_script script,
                     struct slice key_user, const struct slice *arguments, size_t count,
                     redis_reply_done done, void *arg)
{
    struct slice all[ARGUMENTS_FIRST + REDIS_STATE_ARGUMENTS_MAX];
    char key[REDIS_KEY_BYTES_MAX], moving[REDIS_KEY_BYTES_MAX], suffix[REDIS_STATE_SUFFIX_LEN];
    assert(count <= REDIS_STATE_ARGUMENTS_MAX);
    memcpy(all, state->first_arguments, sizeof(state->first_arguments));
    struct slice first = redis_key_user(&state->keys, key, "user_connections:", key_user, "");
    all[ARGUMENTS_FIRST - 1] =
        state->keys.cluster ? redis_state_shard_suffix(suffix, redis_slot(first)) : SLICE("");
    if (count)
        memcpy(all + ARGUMENTS_FIRST, arguments, count * sizeof(*arguments));
    const struct slice keys[] = {first, redis_state_moving_key(state, moving, redis_slot(first))};
    /* That script serves many slots, and leaves out those that move. */
    bool waits = state->keys.cluster && script != REDIS_STATE_RENEW_SLOTS;
    redis_state_eval(state, script, (struct redis_args){keys, waits ? 2 : 1},
                     (struct redis_args){all, ARGUMENTS_FIRST + count}, done, arg);
}

struct slice redis_state_user_name(const struct redis_state *state, char out[REDIS_KEY_BYTES_MAX],
                                   struct slice user)
{
    return redis_key_user(&state->keys, out, "", user, "");
}

struct slice redis_state_number(char out[REDIS_STATE_NUMBER_MAX], int64_t number)
{
    int len = snprintf(out, REDIS_STATE_NUMBER_MAX, "%lld", (long long)number);
    return (struct slice){out, (size_t)len};
}

void redis_state_log_unexpected(const struct resp_value *reply)
{
    /* The client logs once why Redis does not serve. */
    if (reply && redis_problem_of(reply) == REDIS_FINE)
        log_warn("state_script_failed", "reply=%s", log_sentence(reply->text));
}

void redis_state_count_mended(struct redis_state *state, int64_t count)
{
    if (count <= 0)
        return;
    metrics_add(state->options.metrics, METRIC_ROUTING_VALUES_MENDED, count);
    log_warn("state_values_mended", "gateway=%s values=%lld",
             log_quote(redis_state_gateway_id(state)), (long long)count);
}

/* ---- availability ---- */

bool redis_state_may_write(const struct redis_state *state)
{
    if (state->fenced || state->released)
        return false;
    return !state->claimed || state->options.loop->clock.now_ms < state->registered_until_ms;
}

static bool redis_state_available(struct state_store *store)
{
    struct redis_state *state = redis_state_of(store);
    return redis_available(state->options.client) && redis_state_may_write(state);
}

static void on_state_availability_changed(struct redis_observer *observer, bool available)
{
    struct redis_state *state = CONTAINER_OF(observer, struct redis_state, observer);
    redis_state_defer_reaping(state);
    if (available)
        redis_state_gateways_on_available(state);
}

static void on_state_server_returned(struct redis_observer *observer)
{
    struct redis_state *state = CONTAINER_OF(observer, struct redis_state, observer);
    redis_state_gateways_on_server_returned(state);
    if (state->options.on_server_returned)
        state->options.on_server_returned(state->options.arg);
}

static void on_state_key_invalidated(struct redis_observer *observer, struct slice key)
{
    struct redis_state *state = CONTAINER_OF(observer, struct redis_state, observer);
    redis_state_routes_on_invalidated(state, key);
    redis_state_registry_on_invalidated(state, key);
}

/* ---- making and freeing ---- */

static void redis_state_free(struct state_store *store)
{
    struct redis_state *state = redis_state_of(store);
    redis_unobserve(&state->observer);
    state->closing = true;
    redis_state_begin(state);
    redis_state_gateways_stop(state);
    redis_state_end(state);
}

static const struct state_store_operations OPERATIONS = {
    .open = redis_state_open,
    .renew = redis_state_renew,
    .set_idle = redis_state_set_idle,
    .close = redis_state_close,
    .settle = redis_state_settle,
    .read = redis_state_read,
    .set_call = redis_state_set_call,
    .routes = redis_state_routes,
    .routes_early = redis_state_routes_early,
    .leases = redis_state_leases,
    .find = redis_state_find,
    .history = redis_state_history,
    .forget = redis_state_forget,
    .reap = redis_state_reap,
    .put_gateway = redis_state_put_gateway,
    .gateways = redis_state_gateways,
    .list_gateways = redis_state_list_gateways,
    .online = redis_state_online,
    .count_online = redis_state_count_online,
    .available = redis_state_available,
    .free = redis_state_free,
};

struct state_store *redis_state_make(const struct redis_state_options *options)
{
    static const char *const sources[] = {
#define SOURCE(name) [REDIS_STATE_##name] = REDIS_STATE_LUA_##name,
        REDIS_STATE_SCRIPTS(SOURCE)
#undef SOURCE
    };
    struct redis_state *state = calloc(1, sizeof(*state));
    if (!state)
        return NULL;
    assert(options->gateway_id.len <= GATEWAY_ID_BYTES_MAX);
    state->store.operations = &OPERATIONS;
    state->options = *options;
    state->keys.cluster = redis_is_cluster(options->client);
    if (options->gateway_id.len)
        memcpy(state->gateway_id, options->gateway_id.data, options->gateway_id.len);
    state->options.gateway_id = redis_state_gateway_id(state);
    state->first_arguments[0] = redis_state_number(state->window_text, options->lease_window_ms);
    state->first_arguments[1] = redis_state_number(state->grace_text, options->offline_grace_ms);
    assert(options->instance.len < sizeof(state->instance));
    snprintf(state->instance, sizeof(state->instance), "%016llx%016llx",
             (unsigned long long)random_u64(options->random),
             (unsigned long long)random_u64(options->random));
    if (options->instance.len)
        snprintf(state->instance, sizeof(state->instance), "%.*s", SLICE_FORMAT(options->instance));
    bool made = table_init(&state->lease_queues, random_u64(options->random),
                           redis_state_lease_queue_matches) &&
                redis_route_cache_init(&state->route_cache, random_u64(options->random),
                                       REDIS_ROUTE_CACHE_USERS_MAX) &&
                redis_state_looks_init(state);
    list_init(&state->routes_reads);
    for (size_t i = 0; made && i < REDIS_STATE_SCRIPT_COUNT; i++)
        made = redis_script_init(&state->scripts[i], slice_of(sources[i]));
    if (!made) {
        free_redis_state(state);
        return NULL;
    }
    snprintf(state->requester, sizeof(state->requester), "%08x",
             (unsigned)random_u64(options->random));
    redis_state_gateways_init(state);
    state->observer.on_availability_changed = on_state_availability_changed;
    state->observer.on_server_returned = on_state_server_returned;
    state->observer.on_invalidated = on_state_key_invalidated;
    redis_observe(options->client, &state->observer);
    return &state->store;
}
