#include "store/redis/state/redis_state_internal.h"

#include <stdio.h>

unsigned redis_state_shard(struct slice user)
{
    static const struct redis_keys on_cluster = {.cluster = true};
    char name[REDIS_KEY_BYTES_MAX];
    return redis_slot(redis_key_user(&on_cluster, name, "", user, ""));
}

struct slice redis_state_shard_suffix(char out[REDIS_STATE_SUFFIX_LEN], unsigned shard)
{
    memcpy(out, ":{@@@@}", REDIS_STATE_SUFFIX_LEN);
    redis_slot_write_tag(out + 2, (uint16_t)shard);
    return (struct slice){out, REDIS_STATE_SUFFIX_LEN};
}

struct slice redis_state_shard_key(char out[REDIS_KEY_BYTES_MAX], const char *name, unsigned shard)
{
    char suffix[REDIS_STATE_SUFFIX_LEN];
    redis_state_shard_suffix(suffix, shard);
    int len = snprintf(out, REDIS_KEY_BYTES_MAX, "%s%.*s", name, REDIS_STATE_SUFFIX_LEN, suffix);
    return (struct slice){out, (size_t)len};
}

struct slice redis_state_set_key(const struct redis_state *state, char out[REDIS_KEY_BYTES_MAX],
                                 const char *name, unsigned shard)
{
    return state->keys.cluster ? redis_state_shard_key(out, name, shard) : slice_of(name);
}

struct slice redis_state_moving_key(const struct redis_state *state, char out[REDIS_KEY_BYTES_MAX],
                                    unsigned shard)
{
    return state->keys.cluster ? redis_state_shard_key(out, "presence:moving", shard) : SLICE_NONE;
}

void redis_state_write_owner(struct redis_state *state, struct slice conn, struct slice user)
{
    char key[REDIS_KEY_BYTES_MAX], ttl[REDIS_STATE_NUMBER_MAX];
    struct slice owner = redis_key_plain(key, "connection_user:", conn);
    redis_command(state->options.client, owner,
                  REDIS_ARGS(SLICE("SET"), owner, user, SLICE("PX"),
                             redis_state_number(ttl, REDIS_STATE_OWNER_MS)),
                  NULL, NULL);
}

void redis_state_add_connection(struct redis_state *state, struct slice gateway, struct slice conn,
                                struct slice user)
{
    char key[REDIS_KEY_BYTES_MAX];
    redis_state_eval(state, REDIS_STATE_GATEWAY_CONNECTIONS,
                     REDIS_ARGS(redis_key_plain(key, "server_connections:", gateway)),
                     REDIS_ARGS(state->first_arguments[0], conn), NULL, NULL);
    redis_state_write_owner(state, conn, user);
}

void redis_state_remove_connection(struct redis_state *state, struct slice gateway,
                                   struct slice conn)
{
    char connections[REDIS_KEY_BYTES_MAX], owner[REDIS_KEY_BYTES_MAX];
    struct slice key = redis_key_plain(connections, "server_connections:", gateway);
    if (gateway.len)
        redis_command(state->options.client, key, REDIS_ARGS(SLICE("SREM"), key, conn), NULL, NULL);
    key = redis_key_plain(owner, "connection_user:", conn);
    redis_command(state->options.client, key, REDIS_ARGS(SLICE("DEL"), key), NULL, NULL);
}
