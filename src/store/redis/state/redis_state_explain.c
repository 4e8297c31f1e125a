/* One user's or connection's leases and past: what administrators ask for. */
#include "store/redis/state/redis_state_internal.h"
#include "text/time_text.h"

#include <stdlib.h>

struct explanation {
    struct redis_state *state;
    state_leases_done done_leases;
    state_lease_done done_lease;
    state_history_done done_history;
    void *arg;
    size_t user_len;
    char user[USER_ID_BYTES_MAX];
    char conn[ULID_TEXT_LEN];
};

static struct slice user_of(const struct explanation *asked)
{
    return (struct slice){asked->user, asked->user_len};
}

static struct explanation *make(struct state_store *store, struct slice user, void *arg)
{
    struct explanation *asked = malloc(sizeof(*asked));
    if (!asked)
        return NULL;
    *asked = (struct explanation){.state = redis_state_of(store), .arg = arg, .user_len = user.len};
    if (user.len)
        memcpy(asked->user, user.data, user.len);
    redis_state_begin(asked->state);
    return asked;
}

static void end(struct explanation *asked)
{
    struct redis_state *state = asked->state;
    free(asked);
    redis_state_end(state);
}

/* ---- leases ---- */

/* False: what stands there is no lease. */
static bool read_lease(const struct resp_value *item, struct slice user, struct lease *out)
{
    enum { AT_CONN, AT_DEVICE, AT_GATEWAY, AT_CONNECTED, AT_REFRESHED, AT_IDLE, ITEMS };
    if (item->type != RESP_ARRAY || item->count != ITEMS)
        return false;
    *out = (struct lease){
        .user_id = user,
        .device_id = item->items[AT_DEVICE].text,
        .gateway_id = item->items[AT_GATEWAY].text,
        .last_heartbeat_ms = item->items[AT_REFRESHED].integer,
        .idle = slice_is(item->items[AT_IDLE].text, "1"),
    };
    if (!ulid_parse(item->items[AT_CONN].text, &out->conn_id) ||
        out->device_id.len > DEVICE_ID_BYTES_MAX || out->gateway_id.len > GATEWAY_ID_BYTES_MAX)
        return false;
    if (!time_text_parse(item->items[AT_CONNECTED].text, &out->connected_at_ms))
        out->connected_at_ms = ulid_time_ms(&out->conn_id);
    return true;
}

static void finish_leases(struct explanation *asked, enum state_status status,
                          const struct lease *leases, size_t count)
{
    if (asked->done_lease)
        asked->done_lease(asked->arg, status, count ? leases : NULL);
    else
        asked->done_leases(asked->arg, status, leases, count);
    end(asked);
}

static void take_leases(void *arg, const struct resp_value *reply)
{
    struct explanation *asked = arg;
    struct lease leases[STATE_LEASES_MAX];
    size_t count = 0;
    bool told = redis_state_is(reply, RESP_ARRAY);
    for (size_t i = 0; told && i < reply->count && count < STATE_LEASES_MAX; i++)
        count += read_lease(&reply->items[i], user_of(asked), &leases[count]);
    finish_leases(asked, told ? STATE_OK : STATE_UNAVAILABLE, leases, count);
}

static void ask_leases(struct explanation *asked, struct slice conn)
{
    char name[REDIS_KEY_BYTES_MAX], max[REDIS_STATE_NUMBER_MAX];
    const struct slice arguments[] = {redis_state_name(asked->state, name, user_of(asked)), conn,
                                      redis_state_number(max, STATE_LEASES_MAX)};
    redis_state_run(asked->state, REDIS_STATE_LEASES, user_of(asked), arguments, 3, take_leases,
                    asked);
}

void redis_state_leases(struct state_store *store, struct slice user_id, state_leases_done done,
                        void *arg)
{
    struct explanation *asked = make(store, user_id, arg);
    if (!asked) {
        done(arg, STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    asked->done_leases = done;
    ask_leases(asked, SLICE(""));
}

/* ---- a connection, whoever's ---- */

static void take_owner(void *arg, const struct resp_value *reply)
{
    struct explanation *asked = arg;
    bool found = reply && reply->type == RESP_TEXT && reply->text.len > 0 &&
                 reply->text.len <= USER_ID_BYTES_MAX;
    /* of the wrong type is not there */
    bool told = reply && redis_problem_of(reply) == REDIS_FINE;
    if (!found) {
        finish_leases(asked, told ? STATE_OK : STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    asked->user_len = reply->text.len;
    memcpy(asked->user, reply->text.data, reply->text.len);
    ask_leases(asked, (struct slice){asked->conn, sizeof(asked->conn)});
}

void redis_state_find(struct state_store *store, const struct ulid *conn_id, state_lease_done done,
                      void *arg)
{
    struct explanation *asked = make(store, SLICE_NONE, arg);
    char text[REDIS_KEY_BYTES_MAX];
    if (!asked) {
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    asked->done_lease = done;
    ulid_write(asked->conn, conn_id);
    struct redis_client *client = asked->state->options.client;
    struct slice conn = {asked->conn, sizeof(asked->conn)}, key;
    if (asked->state->keys.cluster) {
        key = redis_key_plain(text, "connection_user:", conn);
        redis_command(client, key, REDIS_ARGS(SLICE("GET"), key), take_owner, asked);
    } else {
        key = redis_key_plain(text, "connection:", conn);
        redis_command(client, key, REDIS_ARGS(SLICE("HGET"), key, SLICE("user_id")), take_owner,
                      asked);
    }
}

/* ---- the past ---- */

/* Earlier gateways wrote milliseconds; the past outlives them. */
static bool read_time(struct slice text, int64_t *at_ms)
{
    return time_text_parse(text, at_ms) || resp_parse_integer(text, at_ms);
}

/* "<time> <version> <status> <cause>"; the cause is terminated in `texts`. */
static bool read_history(struct slice line, struct buffer *texts, struct state_history *out)
{
    struct slice at, version, status;
    struct slice cause =
        slice_split(slice_split(slice_split(line, ' ', &at), ' ', &version), ' ', &status);
    if (!read_time(at, &out->at_ms) || !resp_parse_integer(version, &out->version) ||
        !presence_status_parse(status, &out->status) || !cause.data)
        return false;
    size_t from = texts->len;
    buffer_append_slice(texts, cause);
    buffer_append_byte(texts, '\0');
    out->cause = texts->data + from;
    return !texts->failed;
}

static void take_history(void *arg, const struct resp_value *reply)
{
    enum { CAUSES_BYTES = STATE_HISTORY_MAX * 64 };
    struct explanation *asked = arg;
    struct state_history history[STATE_HISTORY_MAX];
    struct buffer texts = BUFFER_BOUNDED(CAUSES_BYTES);
    size_t count = 0;
    bool told =
        reply && redis_problem_of(reply) == REDIS_FINE && buffer_reserve(&texts, CAUSES_BYTES);
    size_t lines = told && reply->type == RESP_ARRAY ? reply->count : 0;
    for (size_t i = lines; i-- > 0 && count < STATE_HISTORY_MAX;) /* the newest stands first */
        count += read_history(reply->items[i].text, &texts, &history[count]);
    asked->done_history(asked->arg, told ? STATE_OK : STATE_UNAVAILABLE, history, count);
    buffer_free(&texts);
    end(asked);
}

void redis_state_history(struct state_store *store, struct slice user_id, state_history_done done,
                         void *arg)
{
    struct explanation *asked = make(store, user_id, arg);
    char text[REDIS_KEY_BYTES_MAX], last[REDIS_STATE_NUMBER_MAX];
    if (!asked) {
        done(arg, STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    asked->done_history = done;
    struct slice key = redis_key_user(&asked->state->keys, text, "presence_history:", user_id, "");
    redis_command(asked->state->options.client, key,
                  REDIS_ARGS(SLICE("LRANGE"), key, SLICE("0"),
                             redis_state_number(last, STATE_HISTORY_MAX - 1)),
                  take_history, asked);
}
