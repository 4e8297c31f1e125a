#include "client.h"

#include "text/utf8.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { POLL_MS_MAX = 60000 };

static const char CLOSED_BY_US[] = "closed by the application";

const char *rollcall_state_name(enum rollcall_state state)
{
    static const char *const NAMES[] = {"disconnected", "connecting", "syncing",
                                        "ready",        "backoff",    "stopped"};
    return NAMES[state];
}

/* ---- events ---- */

static const char *client_text_or_empty(const char *text)
{
    return text ? text : "";
}

void client_emit(struct rollcall *client, const struct rollcall_event *event)
{
    struct rollcall_event shown = *event;
    shown.name = client_text_or_empty(event->name);
    shown.chat_id = client_text_or_empty(event->chat_id);
    shown.message_id = client_text_or_empty(event->message_id);
    shown.client_message_id = client_text_or_empty(event->client_message_id);
    shown.call_id = client_text_or_empty(event->call_id);
    shown.id = client_text_or_empty(event->id);
    shown.user_id = client_text_or_empty(event->user_id);
    shown.status = client_text_or_empty(event->status);
    shown.body = client_text_or_empty(event->body);
    shown.code = client_text_or_empty(event->code);
    shown.text = client_text_or_empty(event->text);
    shown.json = client_text_or_empty(event->json);
    client->in_callback = true;
    client->options.event(client->options.arg, &shown);
    client->in_callback = false;
}

void client_set_state(struct rollcall *client, enum rollcall_state state)
{
    if (client->state == state)
        return;
    client->state = state;
    struct rollcall_event event = {.type = ROLLCALL_EVENT_STATE, .state = state};
    if (state == ROLLCALL_BACKOFF)
        event.wait_ms = client->retry_at_ms - client->clock.now_ms;
    if (state == ROLLCALL_BACKOFF || state == ROLLCALL_STOPPED) {
        event.code = client->lost_code;
        event.text = client->lost_why;
    }
    client_emit(client, &event);
}

bool client_is_live(const struct rollcall *client)
{
    return client->state == ROLLCALL_SYNCING || client->state == ROLLCALL_READY;
}

bool client_is_id(const char *text)
{
    struct slice id = slice_of(text);
    return id.len > 0 && id.len <= ROLLCALL_ID_BYTES_MAX && utf8_valid(id);
}

/* ---- time ---- */

void client_heartbeat(struct rollcall *client)
{
    static const char *const BEATS[] = {"{\"type\":\"heartbeat\"}",
                                        "{\"type\":\"heartbeat\",\"active\":false}",
                                        "{\"type\":\"heartbeat\",\"active\":true}"};
    client->next_heartbeat_ms = client->clock.now_ms + client->heartbeat_ms;
    transport_send(client, slice_of(BEATS[client->activity + 1]));
}

static int64_t client_earlier_ms(int64_t left_ms, int64_t right_ms)
{
    return left_ms < right_ms ? left_ms : right_ms;
}

static int64_t client_next_due_ms(const struct rollcall *client)
{
    if (client->state == ROLLCALL_BACKOFF || client->state == ROLLCALL_DISCONNECTED)
        return client->retry_at_ms;
    if (client->state == ROLLCALL_CONNECTING)
        return client->deadline_ms;
    if (!client_is_live(client))
        return INT64_MAX;
    if (client->closing)
        return client->deadline_ms;
    int64_t next =
        client_earlier_ms(client->next_heartbeat_ms, client->last_received_ms + client->expiry_ms);
    next = client_earlier_ms(next, client->token_due_ms);
    if (client->subscribing.wanted)
        next = client_earlier_ms(next, client->subscribing.due_ms);
    return client_earlier_ms(next, client_earlier_ms(chats_due_ms(client), outbox_due_ms(client)));
}

/* Returns why the connection has timed out (handshake, close or silence), or NULL. */
static const char *client_find_overdue(const struct rollcall *client)
{
    int64_t now_ms = client->clock.now_ms;
    if (client->closing)
        return now_ms >= client->deadline_ms ? CLOSED_BY_US : NULL;
    if (client->state == ROLLCALL_CONNECTING)
        return now_ms >= client->deadline_ms ? "no answer to the handshake" : NULL;
    bool silent = client_is_live(client) && now_ms >= client->last_received_ms + client->expiry_ms;
    return silent ? "the server is silent" : NULL;
}

static void client_process_timers(struct rollcall *client)
{
    bool waits = client->state == ROLLCALL_BACKOFF || client->state == ROLLCALL_DISCONNECTED;
    const char *overdue = client_find_overdue(client);
    if (waits && client->clock.now_ms >= client->retry_at_ms)
        client_connect(client);
    else if (overdue)
        client_lost(client, overdue);
    if (!client_is_live(client))
        return;
    if (client->clock.now_ms >= client->next_heartbeat_ms)
        client_heartbeat(client);
    token_flush(client);
    commands_flush(client);
    chats_flush(client);
    if (client->state == ROLLCALL_SYNCING && chats_synced(client))
        client_set_state(client, ROLLCALL_READY);
    outbox_flush(client);
}

/* ---- the interface ---- */

struct rollcall *rollcall_open(const struct rollcall_options *options)
{
    struct rollcall *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->link.fd = -1;
    client->activity = -1;
    client->server_retry_at_ms = -1;
    client->established_ms = -1;
    client->token_due_ms = INT64_MAX;
    client->out = BUFFER_BOUNDED(CLIENT_OUT_BYTES_MAX);
    client->in = BUFFER_BOUNDED(CLIENT_MESSAGE_BYTES_MAX);
    client->read_clock = clock_advance;
    client->read_clock(&client->clock);
    client->retry_at_ms = client->clock.now_ms;
    random_init_system(&client->random);
    client->options = *options;
    client->host = strdup(options->host);
    client->token = strdup(options->token);
    client->device_id = options->device_id ? strdup(options->device_id) : NULL;
    client->ca_file = options->ca_file ? strdup(options->ca_file) : NULL;
    if (!client->host || !client->token || (options->device_id && !client->device_id) ||
        (options->ca_file && !client->ca_file)) {
        rollcall_free(&client);
        return NULL;
    }
    client->link.target = (struct link_target){.host = client->host,
                                               .port = options->port,
                                               .tls = options->tls,
                                               .ca_file = client->ca_file};
    return client;
}

void rollcall_free(struct rollcall **client)
{
    struct rollcall *freed = *client;
    *client = NULL;
    if (!freed)
        return;
    assert(!freed->in_callback);
    transport_drop(freed);
    link_free(&freed->link);
    chats_free(freed);
    outbox_free(freed);
    commands_free(freed);
    buffer_free(&freed->in);
    buffer_free(&freed->out);
    free(freed->host);
    free(freed->token);
    free(freed->device_id);
    free(freed->ca_file);
    free(freed->user_id);
    free(freed);
}

void rollcall_close(struct rollcall *client)
{
    if (client->closing)
        return;
    client->read_clock(&client->clock);
    client->deadline_ms = client->clock.now_ms + CLIENT_CLOSE_MS;
    if (client->upgraded)
        transport_close(client, WEBSOCKET_CLOSE_NORMAL);
    client->closing = true;
}

int rollcall_fd(const struct rollcall *client)
{
    return client->link.fd;
}

short rollcall_poll_events(const struct rollcall *client)
{
    return link_poll_events(&client->link, client->out_sent < client->out.len);
}

int rollcall_wait_ms(const struct rollcall *client)
{
    struct clock clock;
    client->read_clock(&clock);
    if (client->closing && !client->upgraded && client->state != ROLLCALL_STOPPED)
        return 0;
    int64_t at_ms = client_next_due_ms(client);
    if (at_ms == INT64_MAX)
        return -1;
    int64_t left_ms = at_ms - clock.now_ms;
    return left_ms < 0 ? 0 : left_ms > POLL_MS_MAX ? POLL_MS_MAX : (int)left_ms;
}

void rollcall_process(struct rollcall *client, short revents)
{
    assert(!client->in_callback);
    client->read_clock(&client->clock);
    if (client->link.fd >= 0 && revents)
        transport_process(client, revents);
    if (client->closing && !client->upgraded)
        client_lost(client, CLOSED_BY_US);
    client_process_timers(client);
    if (client->link.fd >= 0 && client->link.connected)
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
    if (changed && client_is_live(client))
        client_heartbeat(client);
}
