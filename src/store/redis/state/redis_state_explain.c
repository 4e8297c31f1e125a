/* The leases and the history of one user, the lease of one connection, and forgetting a user: for administrators. */
#include "store/redis/state/redis_state_internal.h"
#include "text/time_text.h"

#include <stdlib.h>

struct explain_operation {
    struct redis_state *state;
    state_leases_done on_leases; /* exactly one of them is set */
    state_lease_done on_lease;
    state_history_done on_history;
    state_forget_done on_forgotten;
    void *arg;
    size_t user_len;
    char user[USER_ID_BYTES_MAX];
    char conn[ULID_TEXT_LEN];
};

/* Returns NULL when out of memory. */
static struct explain_operation *make_explain_operation(struct state_store *store,
                                                        struct slice user, void *arg)
{
    struct explain_operation *operation = malloc(sizeof(*operation));
    if (!operation)
        return NULL;
    *operation = (struct explain_operation){
        .state = redis_state_of(store), .arg = arg, .user_len = user.len};
    if (user.len)
        memcpy(operation->user, user.data, user.len);
    redis_state_begin(operation->state);
    return operation;
}

static void end_explain_operation(struct explain_operation *operation)
{
    struct redis_state *state = operation->state;
    free(operation);
    redis_state_end(state);
}

/* ---- leases ---- */

/* Returns false when the item is not a lease. */
static bool parse_explained_lease(const struct resp_value *item, struct slice user,
                                  struct lease *out)
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

static void finish_explained_leases(struct explain_operation *operation, enum state_status status,
                                    const struct lease *leases, size_t count)
{
    if (operation->on_lease)
        operation->on_lease(operation->arg, status, count ? leases : NULL);
    else
        operation->on_leases(operation->arg, status, leases, count);
    end_explain_operation(operation);
}

static void on_leases_script_reply(void *arg, const struct resp_value *reply)
{
    struct explain_operation *operation = arg;
    struct slice user = {operation->user, operation->user_len};
    struct lease leases[STATE_LEASES_MAX];
    size_t count = 0;
    bool ok = redis_state_reply_is(reply, RESP_ARRAY);
    for (size_t i = 0; ok && i < reply->count && count < STATE_LEASES_MAX; i++)
        count += parse_explained_lease(&reply->items[i], user, &leases[count]);
    finish_explained_leases(operation, ok ? STATE_OK : STATE_UNAVAILABLE, leases, count);
}

static void run_leases_script(struct explain_operation *operation, struct slice conn)
{
    char name[REDIS_KEY_BYTES_MAX], max[REDIS_STATE_NUMBER_MAX];
    struct slice user = {operation->user, operation->user_len};
    const struct slice arguments[] = {redis_state_user_name(operation->state, name, user), conn,
                                      redis_state_number(max, STATE_LEASES_MAX)};
    redis_state_run(operation->state, REDIS_STATE_LEASES, user, arguments, 3,
                    on_leases_script_reply, operation);
}

void redis_state_leases(struct state_store *store, struct slice user_id, state_leases_done done,
                        void *arg)
{
    struct explain_operation *operation = make_explain_operation(store, user_id, arg);
    if (!operation) {
        done(arg, STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    operation->on_leases = done;
    run_leases_script(operation, SLICE(""));
}

/* ---- the lease of a connection ---- */

/* A value of the wrong type counts as absent. */
static void on_connection_owner_read(void *arg, const struct resp_value *reply)
{
    struct explain_operation *operation = arg;
    bool found = reply && reply->type == RESP_TEXT && reply->text.len > 0 &&
                 reply->text.len <= USER_ID_BYTES_MAX;
    bool ok = reply && redis_problem_of(reply) == REDIS_FINE;
    if (!found) {
        finish_explained_leases(operation, ok ? STATE_OK : STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    operation->user_len = reply->text.len;
    memcpy(operation->user, reply->text.data, reply->text.len);
    run_leases_script(operation, (struct slice){operation->conn, sizeof(operation->conn)});
}

void redis_state_find(struct state_store *store, const struct ulid *conn_id, state_lease_done done,
                      void *arg)
{
    struct explain_operation *operation = make_explain_operation(store, SLICE_NONE, arg);
    char text[REDIS_KEY_BYTES_MAX];
    if (!operation) {
        done(arg, STATE_UNAVAILABLE, NULL);
        return;
    }
    operation->on_lease = done;
    ulid_write(operation->conn, conn_id);
    struct redis_client *client = operation->state->options.client;
    struct slice conn = {operation->conn, sizeof(operation->conn)}, key;
    if (operation->state->keys.cluster) {
        key = redis_key_plain(text, "connection_user:", conn);
        redis_command(client, key, REDIS_ARGS(SLICE("GET"), key), on_connection_owner_read,
                      operation);
    } else {
        key = redis_key_plain(text, "connection:", conn);
        redis_command(client, key, REDIS_ARGS(SLICE("HGET"), key, SLICE("user_id")),
                      on_connection_owner_read, operation);
    }
}

/* ---- history ---- */

/* Parses "<time> <version> <status> <cause>" and copies the cause, zero-terminated, to `texts`. Earlier gateways wrote
 * the time in milliseconds, and their entries are still there after an upgrade. */
static bool parse_history_entry(struct slice line, struct buffer *texts, struct state_history *out)
{
    struct slice at, version, status;
    struct slice cause =
        slice_split(slice_split(slice_split(line, ' ', &at), ' ', &version), ' ', &status);
    if ((!time_text_parse(at, &out->at_ms) && !resp_parse_integer(at, &out->at_ms)) ||
        !resp_parse_integer(version, &out->version) ||
        !presence_status_parse(status, &out->status) || !cause.data)
        return false;
    size_t from = texts->len;
    buffer_append_slice(texts, cause);
    buffer_append_byte(texts, '\0');
    out->cause = texts->data + from;
    return !texts->failed;
}

static void on_history_read(void *arg, const struct resp_value *reply)
{
    enum { CAUSES_BYTES = STATE_HISTORY_MAX * 64 };
    struct explain_operation *operation = arg;
    struct state_history history[STATE_HISTORY_MAX];
    struct buffer texts = BUFFER_BOUNDED(CAUSES_BYTES);
    size_t count = 0;
    bool ok =
        reply && redis_problem_of(reply) == REDIS_FINE && buffer_reserve(&texts, CAUSES_BYTES);
    size_t lines = ok && reply->type == RESP_ARRAY ? reply->count : 0;
    for (size_t i = lines;
         i-- > 0 && count < STATE_HISTORY_MAX;) /* the list has the newest first */
        count += parse_history_entry(reply->items[i].text, &texts, &history[count]);
    operation->on_history(operation->arg, ok ? STATE_OK : STATE_UNAVAILABLE, history, count);
    buffer_free(&texts);
    end_explain_operation(operation);
}

void redis_state_history(struct state_store *store, struct slice user_id, state_history_done done,
                         void *arg)
{
    struct explain_operation *operation = make_explain_operation(store, user_id, arg);
    char texts[2][REDIS_KEY_BYTES_MAX], max[REDIS_STATE_NUMBER_MAX];
    if (!operation) {
        done(arg, STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    operation->on_history = done;
    const struct redis_keys *keys = &operation->state->keys;
    redis_state_eval(operation->state, REDIS_STATE_HISTORY,
                     REDIS_ARGS(redis_key_user(keys, texts[0], "presence_history:", user_id, ""),
                                redis_key_user(keys, texts[1], "user_presence:", user_id, "")),
                     REDIS_ARGS(redis_state_number(max, STATE_HISTORY_MAX)), on_history_read,
                     operation);
}

/* ---- forgetting ---- */

static void on_user_forgotten(void *arg, const struct resp_value *reply)
{
    struct explain_operation *operation = arg;
    bool ok = reply && redis_problem_of(reply) == REDIS_FINE;
    operation->on_forgotten(operation->arg, ok ? STATE_OK : STATE_UNAVAILABLE);
    end_explain_operation(operation);
}

/* The caller has seen that there is no lease; the keys of leases end with the leases. */
static void on_leases_before_forgetting(void *arg, enum state_status status,
                                        const struct lease *leases, size_t count)
{
    struct explain_operation *operation = arg;
    char texts[3][REDIS_KEY_BYTES_MAX];
    struct slice user = {operation->user, operation->user_len};
    const struct redis_keys *keys = &operation->state->keys;
    (void)leases;
    if (status != STATE_OK || count > 0) {
        operation->on_forgotten(operation->arg, status);
        end_explain_operation(operation);
        return;
    }
    struct slice presence = redis_key_user(keys, texts[0], "user_presence:", user, "");
    redis_command(operation->state->options.client, presence,
                  REDIS_ARGS(SLICE("UNLINK"), presence,
                             redis_key_user(keys, texts[1], "last_seen:", user, ""),
                             redis_key_user(keys, texts[2], "presence_history:", user, "")),
                  on_user_forgotten, operation);
}

void redis_state_forget(struct state_store *store, struct slice user_id, state_forget_done done,
                        void *arg)
{
    struct explain_operation *operation = make_explain_operation(store, user_id, arg);
    if (!operation) {
        done(arg, STATE_UNAVAILABLE);
        return;
    }
    operation->on_forgotten = done;
    redis_state_leases(store, user_id, on_leases_before_forgetting, operation);
}
