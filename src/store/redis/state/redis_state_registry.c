/*
 * The registry of gateways: one hash that a gateway writes when it comes, goes or changes, and that others read in one
 * command. Redis tracks it and reports each change (redis_client.h); until then the list that was read last is the
 * answer. A server that does not track is read each time.
 */
#include "store/redis/state/redis_state_internal.h"

#include <stdio.h>
#include <stdlib.h>

struct registry_read {
    struct redis_state *state;
    state_gateways_done done;
    void *arg;
    uint64_t tracking; /* 0: the answer is not kept */
    uint64_t changes;  /* before the read */
};

static uint16_t registry_slot(const struct redis_state *state)
{
    return state->keys.cluster ? redis_slot(REDIS_STATE_GATEWAY_SET) : 0;
}

/* ---- one gateway ---- */

struct slice redis_state_write_info(char out[REDIS_STATE_INFO_MAX], const struct gateway_info *info)
{
    int len = snprintf(out, REDIS_STATE_INFO_MAX, "%lld %d %.*s", (long long)info->started_at_ms,
                       info->draining, SLICE_FORMAT(info->peer_address));
    return (struct slice){out, (size_t)len};
}

/* Returns false for what this program did not write. */
static bool parse_registry_info(struct slice id, struct slice text, struct gateway_info *out)
{
    struct slice started, draining;
    struct slice rest = slice_split(text, ' ', &started);
    struct slice address = slice_split(rest, ' ', &draining);
    *out = (struct gateway_info){.gateway_id = id, .peer_address = address};
    out->draining = slice_is(draining, "1");
    return id.len > 0 && id.len <= GATEWAY_ID_BYTES_MAX && draining.len == 1 &&
           address.len <= STATE_PEER_ADDRESS_MAX &&
           resp_parse_integer(started, &out->started_at_ms);
}

/* ---- the list ---- */

static void forget_registry(struct redis_registry *registry)
{
    free(registry->infos);
    free(registry->texts);
    registry->infos = NULL;
    registry->texts = NULL;
    registry->count = 0;
    registry->tracking = 0;
}

static struct slice copy_registry_text(char **at, struct slice text)
{
    struct slice copy = {*at, text.len};
    if (text.len)
        memcpy(*at, text.data, text.len);
    *at += text.len;
    return copy;
}

/* Replaces the list by the reply: alternately a gateway and its info. Returns false when out of memory. */
static bool keep_registry(struct redis_registry *registry, const struct resp_value *reply)
{
    size_t pairs = reply->count / 2, bytes = 0;
    if (pairs > REDIS_STATE_GATEWAYS_MAX)
        pairs = REDIS_STATE_GATEWAYS_MAX;
    for (size_t i = 0; i < 2 * pairs; i++)
        bytes += reply->items[i].text.len;
    forget_registry(registry);
    registry->infos = calloc(pairs + 1, sizeof(*registry->infos));
    registry->texts = malloc(bytes + 1);
    if (!registry->infos || !registry->texts)
        return false;
    char *at = registry->texts;
    for (size_t i = 0; i < pairs; i++) {
        struct gateway_info *info = &registry->infos[registry->count];
        if (!parse_registry_info(reply->items[2 * i].text, reply->items[2 * i + 1].text, info))
            continue;
        info->gateway_id = copy_registry_text(&at, info->gateway_id);
        info->peer_address = copy_registry_text(&at, info->peer_address);
        registry->count++;
    }
    return true;
}

static void on_registry_read(void *arg, const struct resp_value *reply);

static void send_registry_read(struct registry_read *read)
{
    struct redis_client *client = read->state->options.client;
    struct redis_args command = REDIS_ARGS(SLICE("HGETALL"), REDIS_STATE_GATEWAY_INFOS);
    if (read->tracking &&
        redis_read_tracked(client, registry_slot(read->state), command, on_registry_read, read))
        return;
    read->tracking = 0;
    redis_command(client, REDIS_STATE_GATEWAY_SET, command, on_registry_read, read);
}

static bool retry_registry_read(struct registry_read *read, const struct resp_value *reply)
{
    if (!read->tracking || !redis_state_is_redirection(reply))
        return false;
    read->tracking = 0;
    send_registry_read(read);
    return true;
}

/* A foreign value counts as an empty registry, which the next gateway that lists itself replaces. */
static void on_registry_read(void *arg, const struct resp_value *reply)
{
    if (retry_registry_read(arg, reply))
        return;
    struct registry_read read = *(struct registry_read *)arg;
    struct redis_registry *registry = &read.state->registry;
    struct resp_value empty = {.type = RESP_ARRAY};
    bool is_foreign = reply && resp_is_error(reply, "WRONGTYPE");
    bool is_read = is_foreign || redis_state_reply_is(reply, RESP_ARRAY);
    free(arg);
    if (is_read && keep_registry(registry, is_foreign ? &empty : reply)) {
        bool is_unchanged = registry->changes == read.changes;
        registry->tracking = is_unchanged ? read.tracking : 0;
        redis_state_note_fleet(read.state, registry->infos, registry->count);
        read.done(read.arg, STATE_OK, registry->infos, registry->count);
    } else {
        read.done(read.arg, STATE_UNAVAILABLE, NULL, 0);
    }
    redis_state_end(read.state);
}

static bool is_registry_known(const struct redis_state *state)
{
    const struct redis_registry *registry = &state->registry;
    const struct redis_client *client = state->options.client;
    return registry->tracking && redis_available(client) &&
           redis_tracking(client, registry_slot(state)) == registry->tracking;
}

void redis_state_list_gateways(struct state_store *store, state_gateways_done done, void *arg)
{
    struct redis_state *state = redis_state_of(store);
    if (is_registry_known(state)) {
        done(arg, STATE_OK, state->registry.infos, state->registry.count);
        return;
    }
    struct registry_read *read = malloc(sizeof(*read));
    if (!read) {
        done(arg, STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    *read = (struct registry_read){state, done, arg,
                                   redis_tracking(state->options.client, registry_slot(state)),
                                   state->registry.changes};
    redis_state_begin(state);
    send_registry_read(read);
}

void redis_state_registry_on_invalidated(struct redis_state *state, struct slice key)
{
    if (key.data && !slice_equal(key, REDIS_STATE_GATEWAY_INFOS))
        return;
    state->registry.changes++;
    state->registry.tracking = 0;
}

void redis_state_registry_free(struct redis_state *state)
{
    forget_registry(&state->registry);
}
