#include "store/redis/state/redis_state_internal.h"

#include <stdio.h>

/* FNV-1a. All processes and versions must agree on it, so it must never change. */
unsigned redis_state_shard(struct slice user)
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < user.len; i++)
        hash = (hash ^ (uint8_t)user.data[i]) * 16777619U;
    return hash % REDIS_STATE_SHARDS;
}

struct slice redis_state_shard_key(char out[REDIS_KEY_BYTES_MAX], const char *name, unsigned shard)
{
    int len = snprintf(out, REDIS_KEY_BYTES_MAX, "%s:{%u}", name, shard);
    return (struct slice){out, (size_t)len};
}

struct slice redis_state_index_member(char out[REDIS_STATE_MEMBER_MAX], struct slice conn,
                                      struct slice user)
{
    if (conn.len)
        memcpy(out, conn.data, conn.len);
    out[conn.len] = ':';
    memcpy(out + conn.len + 1, user.data, user.len);
    return (struct slice){out, conn.len + 1 + user.len};
}

void redis_state_update_index(struct redis_state *state, struct slice conn, struct slice user,
                              int64_t ms, redis_reply_done done, void *arg)
{
    char index[REDIS_KEY_BYTES_MAX], lock[REDIS_KEY_BYTES_MAX];
    char member[REDIS_STATE_MEMBER_MAX], number[REDIS_STATE_NUMBER_MAX];
    unsigned shard = redis_state_shard(user);
    redis_state_eval(state, REDIS_STATE_LEASE_INDEX,
                     REDIS_ARGS(redis_state_shard_key(index, "presence:v_heartbeat", shard),
                                redis_state_shard_key(lock, "presence:reaper", shard)),
                     REDIS_ARGS(SLICE(""), redis_state_index_member(member, conn, user),
                                ms < 0 ? SLICE("") : redis_state_number(number, ms), SLICE("")),
                     done, arg);
}

void redis_state_update_online_sets(struct redis_state *state, const struct presence *presence,
                                    redis_reply_done done, void *arg)
{
    char online[REDIS_KEY_BYTES_MAX], in_call[REDIS_KEY_BYTES_MAX], changed[REDIS_KEY_BYTES_MAX];
    char version[REDIS_STATE_NUMBER_MAX];
    unsigned shard = redis_state_shard(presence->user_id);
    redis_state_eval(state, REDIS_STATE_ONLINE_SETS,
                     REDIS_ARGS(redis_state_shard_key(online, "presence:online", shard),
                                redis_state_shard_key(in_call, "presence:incall", shard),
                                redis_state_shard_key(changed, "presence:changed", shard)),
                     REDIS_ARGS(presence->user_id, redis_state_number(version, presence->version),
                                presence->status == PRESENCE_OFFLINE ? SLICE("0") : SLICE("1"),
                                presence->in_call ? SLICE("1") : SLICE("0")),
                     done, arg);
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
