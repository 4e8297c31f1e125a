#include "client.h"

#include "base/json.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { BACKOFF_FIRST_MS = 1000, BACKOFF_MAX_MS = 16000, BACKOFF_JITTER_PERCENT = 20 };

const char *rollcall_state_name(enum rollcall_state state)
{
    static const char *const NAMES[] = {"disconnected", "connecting", "syncing",
                                        "ready",        "backoff",    "stopped"};
    return NAMES[state];
}

/* ---- events ---- */

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

void client_emit(struct rollcall *client, const struct rollcall_event *event)
{
    struct rollcall_event shown = *event;
    shown.name = text_or_empty(event->name);
    shown.chat_id = text_or_empty(event->chat_id);
    shown.message_id = text_or_empty(event->message_id);
    shown.client_message_id = text_or_empty(event->client_message_id);
    shown.user_id = text_or_empty(event->user_id);
    shown.status = text_or_empty(event->status);
    shown.body = text_or_empty(event->body);
    shown.code = text_or_empty(event->code);
    shown.text = text_or_empty(event->text);
    shown.json = text_or_empty(event->json);
    client->in_callback = true;
    client->options.event(client->options.arg, &shown);
    client->in_callback = false;
}

void client_set_state(struct rollcall *client, enum rollcall_state state)
{
    if (client->state == state)
        return;
    client->state = state;
    int64_t wait_ms = state == ROLLCALL_BACKOFF ? client->retry_at_ms - client->clock.now_ms : 0;
    client_emit(client, &(struct rollcall_event){
                            .type = ROLLCALL_EVENT_STATE, .state = state, .wait_ms = wait_ms});
}

/* ---- connecting and losing ---- */

/* 1, 2, 4, 8, 16 s, each a fifth more or less. */
static int64_t backoff_ms(struct rollcall *client)
{
    int64_t base_ms = BACKOFF_FIRST_MS;
    for (unsigned i = 0; i < client->attempts && base_ms < BACKOFF_MAX_MS; i++)
        base_ms *= 2;
    if (base_ms > BACKOFF_MAX_MS)
        base_ms = BACKOFF_MAX_MS;
    int64_t jitter_ms = base_ms * BACKOFF_JITTER_PERCENT / 100;
    return base_ms - jitter_ms +
           (int64_t)random_below(&client->random, (uint64_t)(2 * jitter_ms + 1));
}

/* A refused token is replaced once per connection; without another there is nothing left to try. */
static bool replace_token(struct rollcall *client)
{
    if (!client->refused)
        return true;
    client->refused = false;
    const char *fresh =
        client->options.fresh_token ? client->options.fresh_token(client->options.arg) : NULL;
    char *copy = fresh ? strdup(fresh) : NULL;
    if (!copy)
        return false;
    free(client->token);
    client->token = copy;
    return true;
}

void client_lost(struct rollcall *client)
{
    transport_drop(client);
    chats_reset(client);
    outbox_reset(client);
    if (client->state == ROLLCALL_STOPPED)
        return;
    if (client->stop_after || client->closing || !replace_token(client)) {
        client_set_state(client, ROLLCALL_STOPPED);
        return;
    }
    int64_t wait_ms = backoff_ms(client);
    client->attempts++;
    if (client->server_wait_ms >= 0)
        wait_ms = client->server_wait_ms;
    if (client->options.hurry > 1)
        wait_ms /= client->options.hurry;
    client->server_wait_ms = -1;
    client->retry_at_ms = client->clock.now_ms + wait_ms;
    client_set_state(client, ROLLCALL_BACKOFF);
}

static void connect_now(struct rollcall *client)
{
    client->deadline_ms = client->clock.now_ms + CLIENT_HANDSHAKE_MS;
    client_set_state(client, ROLLCALL_CONNECTING);
    transport_connect(client);
}

static void resubscribe(struct rollcall *client)
{
    if (!client->watched)
        return;
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("type"), SLICE("subscribe_presence"));
    json_write_key(&json, SLICE("user_ids"));
    json_write_array(&json);
    for (const struct watched *at = client->watched; at; at = at->next)
        json_write_string(&json, slice_of(at->user_id));
    json_write_array_end(&json);
    json_write_object_end(&json);
    transport_send(client, buffer_slice(&json));
    buffer_free(&json);
}

static void heartbeat(struct rollcall *client)
{
    static const struct slice BEATS[] = {{"{\"type\":\"heartbeat\"}", 20},
                                         {"{\"type\":\"heartbeat\",\"active\":false}", 35},
                                         {"{\"type\":\"heartbeat\",\"active\":true}", 34}};
    client->next_heartbeat_ms = client->clock.now_ms + client->heartbeat_ms;
    transport_send(client, BEATS[client->activity + 1]);
}

void client_established(struct rollcall *client, int64_t heartbeat_ms, int64_t expiry_ms)
{
    client->heartbeat_ms = heartbeat_ms > 0 ? heartbeat_ms : 5000;
    client->expiry_ms = expiry_ms > 0 ? expiry_ms : 15000;
    client_set_state(client, ROLLCALL_SYNCING);
    heartbeat(client);
    resubscribe(client);
    chats_resume(client);
}

/* ---- time ---- */

static bool is_live(const struct rollcall *client)
{
    return client->state == ROLLCALL_SYNCING || client->state == ROLLCALL_READY;
}

static int64_t next_ms(const struct rollcall *client)
{
    if (client->state == ROLLCALL_BACKOFF)
        return client->retry_at_ms;
    if (client->state == ROLLCALL_CONNECTING)
        return client->deadline_ms;
    if (!is_live(client))
        return INT64_MAX;
    int64_t next = client->next_heartbeat_ms;
    int64_t dead = client->heard_ms + client->expiry_ms;
    int64_t due = outbox_due_ms(client);
    next = dead < next ? dead : next;
    return due < next ? due : next;
}

static void keep_time(struct rollcall *client)
{
    int64_t now_ms = client->clock.now_ms;
    if (client->state == ROLLCALL_BACKOFF && now_ms >= client->retry_at_ms)
        connect_now(client);
    else if (client->state == ROLLCALL_CONNECTING && now_ms >= client->deadline_ms)
        client_lost(client);
    if (!is_live(client))
        return;
    if (now_ms >= client->heard_ms + client->expiry_ms) {
        client_lost(client);
        return;
    }
    if (now_ms >= client->next_heartbeat_ms)
        heartbeat(client);
    if (client->state == ROLLCALL_SYNCING && chats_synced(client)) {
        client->attempts = 0;
        client_set_state(client, ROLLCALL_READY);
    }
    outbox_flush(client);
}

/* ---- the interface ---- */

struct rollcall *rollcall_open(const struct rollcall_options *options)
{
    struct rollcall *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->options = *options;
    client->fd = -1;
    client->activity = -1;
    client->server_wait_ms = -1;
    client->host = strdup(options->host);
    client->token = strdup(options->token);
    client->device_id = options->device_id ? strdup(options->device_id) : NULL;
    if (!client->host || !client->token || (options->device_id && !client->device_id)) {
        rollcall_free(&client);
        return NULL;
    }
    client->out.max = CLIENT_OUT_BYTES_MAX;
    client->in.max = CLIENT_MESSAGE_BYTES_MAX;
    random_init_system(&client->random);
    clock_advance(&client->clock);
    client->retry_at_ms = client->clock.now_ms;
    client->state = ROLLCALL_BACKOFF; /* due at once */
    return client;
}

void rollcall_free(struct rollcall **client)
{
    struct rollcall *freed = *client;
    *client = NULL;
    if (!freed)
        return;
    transport_drop(freed);
    chats_free(freed);
    outbox_free(freed);
    while (freed->watched) {
        struct watched *next = freed->watched->next;
        free(freed->watched);
        freed->watched = next;
    }
    buffer_free(&freed->in);
    buffer_free(&freed->out);
    free(freed->host);
    free(freed->token);
    free(freed->device_id);
    free(freed);
}

void rollcall_close(struct rollcall *client)
{
    client->closing = true;
    if (client->upgraded)
        transport_close(client, WEBSOCKET_CLOSE_NORMAL);
    client->stop_after = true;
}

int rollcall_fd(const struct rollcall *client)
{
    return client->fd;
}

short rollcall_poll_events(const struct rollcall *client)
{
    bool writes = !client->connected || client->out_sent < client->out.len;
    return (short)(POLLIN | (writes ? POLLOUT : 0));
}

int rollcall_wait_ms(const struct rollcall *client)
{
    struct clock clock;
    clock_advance(&clock);
    int64_t at_ms = next_ms(client);
    if (client->closing && !client->upgraded && client->state != ROLLCALL_STOPPED)
        return 0;
    if (at_ms == INT64_MAX)
        return -1;
    int64_t left_ms = at_ms - clock.now_ms;
    return left_ms < 0 ? 0 : left_ms > 60000 ? 60000 : (int)left_ms;
}

void rollcall_process(struct rollcall *client, short revents)
{
    clock_advance(&client->clock);
    if (client->fd >= 0 && revents)
        transport_process(client, revents);
    if (client->closing && !client->upgraded)
        client_lost(client);
    keep_time(client);
    if (client->fd >= 0 && client->connected)
        transport_process(client, POLLOUT);
}

enum rollcall_state rollcall_get_state(const struct rollcall *client)
{
    return client->state;
}

void rollcall_set_active(struct rollcall *client, bool active)
{
    bool changed = client->activity != (int)active;
    client->activity = active;
    if (changed && is_live(client))
        heartbeat(client);
}

static bool send_fields(struct rollcall *client, const char *type, const char *first,
                        const char *first_value, const char *second, const char *second_value)
{
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("type"), slice_of(type));
    if (first_value)
        json_write_key_string(&json, slice_of(first), slice_of(first_value));
    if (second_value)
        json_write_key_string(&json, slice_of(second), slice_of(second_value));
    json_write_object_end(&json);
    bool sent = !json.failed && is_live(client) && transport_send(client, buffer_slice(&json));
    buffer_free(&json);
    return sent;
}

bool rollcall_refresh_token(struct rollcall *client, const char *token)
{
    char *copy = strdup(token);
    if (!copy)
        return false;
    free(client->token);
    client->token = copy;
    return send_fields(client, "refresh_token", "token", token, NULL, NULL);
}

bool rollcall_subscribe(struct rollcall *client, const char *user_id)
{
    for (const struct watched *at = client->watched; at; at = at->next)
        if (strcmp(at->user_id, user_id) == 0)
            return true;
    size_t len = strlen(user_id);
    if (client->watched_count == ROLLCALL_SUBSCRIPTIONS_MAX || len > ROLLCALL_ID_BYTES_MAX)
        return false;
    struct watched *made = malloc(sizeof(*made) + len + 1);
    if (!made)
        return false;
    memcpy(made->user_id, user_id, len + 1);
    made->next = client->watched;
    client->watched = made;
    client->watched_count++;
    if (is_live(client))
        resubscribe(client);
    return true;
}

bool rollcall_unsubscribe(struct rollcall *client, const char *user_id)
{
    struct watched **at = &client->watched;
    while (*at && strcmp((*at)->user_id, user_id) != 0)
        at = &(*at)->next;
    if (!*at)
        return false;
    struct watched *gone = *at;
    *at = gone->next;
    free(gone);
    client->watched_count--;
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("type"), SLICE("unsubscribe_presence"));
    json_write_key(&json, SLICE("user_ids"));
    json_write_array(&json);
    json_write_string(&json, slice_of(user_id));
    json_write_array_end(&json);
    json_write_object_end(&json);
    if (is_live(client))
        transport_send(client, buffer_slice(&json));
    buffer_free(&json);
    return true;
}

bool rollcall_ack(struct rollcall *client, const char *chat_id, int64_t sequence)
{
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("type"), SLICE("ack"));
    json_write_key_string(&json, SLICE("chat_id"), slice_of(chat_id));
    json_write_key_int(&json, SLICE("sequence"), sequence);
    json_write_object_end(&json);
    bool sent = is_live(client) && transport_send(client, buffer_slice(&json));
    buffer_free(&json);
    return sent;
}

bool rollcall_typing(struct rollcall *client, const char *chat_id, bool typing)
{
    return send_fields(client, typing ? "typing_start" : "typing_stop", "chat_id", chat_id, NULL,
                       NULL);
}

bool rollcall_call_request(struct rollcall *client, const char *to, const char *call_id)
{
    return send_fields(client, "call_request", "to", to, "call_id", call_id);
}

bool rollcall_call_accept(struct rollcall *client, const char *call_id)
{
    return send_fields(client, "call_accept", "call_id", call_id, NULL, NULL);
}

bool rollcall_call_reject(struct rollcall *client, const char *call_id)
{
    return send_fields(client, "call_reject", "call_id", call_id, NULL, NULL);
}

bool rollcall_call_end(struct rollcall *client, const char *call_id)
{
    return send_fields(client, "call_end", "call_id", call_id, NULL, NULL);
}

bool rollcall_call_signal(struct rollcall *client, const char *call_id, const char *data_json)
{
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("type"), SLICE("call_signal"));
    json_write_key_string(&json, SLICE("call_id"), slice_of(call_id));
    json_write_key(&json, SLICE("data"));
    json_write_raw(&json, slice_of(data_json));
    json_write_object_end(&json);
    bool sent = is_live(client) && transport_send(client, buffer_slice(&json));
    buffer_free(&json);
    return sent;
}

bool rollcall_command(struct rollcall *client, const char *json)
{
    return is_live(client) && transport_send(client, slice_of(json));
}
