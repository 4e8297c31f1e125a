/* Messages on their way: kept until acknowledged or refused for good, one at a time per chat. */
#include "client.h"

#include "base/json.h"
#include "base/ulid.h"

#include <stdlib.h>
#include <string.h>

static void free_outgoing(struct outgoing *message)
{
    free(message->chat_id);
    free(message->client_message_id);
    free(message->body);
    free(message);
}

void outbox_free(struct rollcall *client)
{
    while (client->outbox) {
        struct outgoing *next = client->outbox->next;
        free_outgoing(client->outbox);
        client->outbox = next;
    }
    client->outbox_count = 0;
}

static char *make_id(struct rollcall *client)
{
    char *id = malloc(ULID_TEXT_LEN + 1);
    struct ulid ulid = ulid_make(client->clock.wall_ms, &client->random);
    if (!id)
        return NULL;
    ulid_write(id, &ulid);
    id[ULID_TEXT_LEN] = '\0';
    return id;
}

bool rollcall_send(struct rollcall *client, const char *chat_id, const char *client_message_id,
                   const char *body)
{
    if (client->outbox_count == ROLLCALL_OUTBOX_MAX || client->state == ROLLCALL_STOPPED)
        return false;
    struct outgoing *message = calloc(1, sizeof(*message));
    if (!message)
        return false;
    message->chat_id = strdup(chat_id);
    message->client_message_id = client_message_id ? strdup(client_message_id) : make_id(client);
    message->body = strdup(body);
    if (!message->chat_id || !message->client_message_id || !message->body) {
        free_outgoing(message);
        return false;
    }
    struct outgoing **end = &client->outbox;
    while (*end)
        end = &(*end)->next;
    *end = message;
    client->outbox_count++;
    if (!client->in_callback)
        outbox_flush(client);
    return true;
}

/* Only the oldest of a chat may be on its way: a retry must not be overtaken. */
static bool is_first_of_chat(const struct rollcall *client, const struct outgoing *message)
{
    for (const struct outgoing *at = client->outbox; at != message; at = at->next)
        if (strcmp(at->chat_id, message->chat_id) == 0)
            return false;
    return true;
}

static void transmit(struct rollcall *client, struct outgoing *message)
{
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("type"), SLICE("send_message"));
    json_write_key_string(&json, SLICE("chat_id"), slice_of(message->chat_id));
    json_write_key_string(&json, SLICE("client_message_id"), slice_of(message->client_message_id));
    json_write_key_string(&json, SLICE("body"), slice_of(message->body));
    json_write_object_end(&json);
    message->on_its_way = !json.failed && transport_send(client, buffer_slice(&json));
    if (!message->on_its_way)
        message->not_before_ms = client->clock.now_ms + CLIENT_RETRY_MS;
    buffer_free(&json);
}

static bool is_due(const struct rollcall *client, const struct outgoing *message)
{
    return !message->on_its_way && is_first_of_chat(client, message);
}

void outbox_flush(struct rollcall *client)
{
    if (client->state != ROLLCALL_READY && client->state != ROLLCALL_SYNCING)
        return;
    for (struct outgoing *at = client->outbox; at; at = at->next)
        if (is_due(client, at) && at->not_before_ms <= client->clock.now_ms)
            transmit(client, at);
}

int64_t outbox_due_ms(const struct rollcall *client)
{
    int64_t due_ms = INT64_MAX;
    for (const struct outgoing *at = client->outbox; at; at = at->next)
        if (is_due(client, at) && at->not_before_ms < due_ms)
            due_ms = at->not_before_ms;
    return due_ms;
}

void outbox_reset(struct rollcall *client)
{
    for (struct outgoing *at = client->outbox; at; at = at->next) {
        at->on_its_way = false;
        at->not_before_ms = 0;
    }
}

static struct outgoing **find(struct rollcall *client, const char *client_message_id)
{
    struct outgoing **at = &client->outbox;
    while (*at && strcmp((*at)->client_message_id, client_message_id) != 0)
        at = &(*at)->next;
    return at;
}

void outbox_answered(struct rollcall *client, const char *client_message_id)
{
    struct outgoing **at = find(client, client_message_id);
    if (!*at)
        return;
    struct outgoing *done = *at;
    *at = done->next;
    client->outbox_count--;
    free_outgoing(done);
}

void outbox_retry(struct rollcall *client, const char *client_message_id, int64_t after_ms)
{
    struct outgoing *message = *find(client, client_message_id);
    if (!message)
        return;
    message->on_its_way = false;
    message->not_before_ms = client->clock.now_ms + (after_ms > 0 ? after_ms : CLIENT_RETRY_MS);
}
