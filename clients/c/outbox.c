/*
 * Pending messages: kept until they are acknowledged or finally refused, one at a time per chat. The server limits a
 * user's messages in all chats together, so after RATE_LIMITED it is one at a time in all chats, until none is left.
 */
#include "client.h"

#include "base/ulid.h"
#include "text/json.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

void outgoing_free(struct outgoing **message)
{
    struct outgoing *freed = *message;
    *message = NULL;
    if (!freed)
        return;
    free(freed->chat_id);
    free(freed->client_message_id);
    free(freed->body);
    free(freed);
}

void outbox_free(struct rollcall *client)
{
    while (client->outbox) {
        struct outgoing *next = client->outbox->next;
        outgoing_free(&client->outbox);
        client->outbox = next;
    }
    client->outbox_count = 0;
}

static struct outgoing **outbox_find(struct rollcall *client, const char *client_message_id)
{
    struct outgoing **at = &client->outbox;
    while (*at && strcmp((*at)->client_message_id, client_message_id) != 0)
        at = &(*at)->next;
    return at;
}

static struct outgoing *outgoing_create(struct rollcall *client, const char *chat_id,
                                        const char *client_message_id, const char *body)
{
    char new_id[ULID_TEXT_LEN + 1];
    struct outgoing *message = calloc(1, sizeof(*message));
    if (!message)
        return NULL;
    if (!client_message_id) {
        struct ulid ulid = ulid_make(client->clock.wall_ms, &client->random);
        ulid_write(new_id, &ulid);
        new_id[ULID_TEXT_LEN] = '\0';
    }
    message->chat_id = strdup(chat_id);
    message->client_message_id = strdup(client_message_id ? client_message_id : new_id);
    message->body = strdup(body);
    message->command.wanted = true;
    if (!message->chat_id || !message->client_message_id || !message->body)
        outgoing_free(&message);
    return message;
}

bool rollcall_send(struct rollcall *client, const char *chat_id, const char *client_message_id,
                   const char *body)
{
    struct slice text = slice_of(body);
    if (client->outbox_count == ROLLCALL_OUTBOX_MAX || client->state == ROLLCALL_STOPPED)
        return false;
    if (client_message_id &&
        (!client_is_id(client_message_id) || *outbox_find(client, client_message_id)))
        return false;
    /* For an invalid message the server closes the connection, or sends an error that does not name it. */
    if (!client_is_id(chat_id) || text.len == 0 || text.len > ROLLCALL_BODY_BYTES_MAX ||
        !utf8_valid(text))
        return false;
    struct outgoing *message = outgoing_create(client, chat_id, client_message_id, body);
    if (!message)
        return false;
    /* The id is new, so outbox_find() returns the end of the list. */
    *outbox_find(client, message->client_message_id) = message;
    client->outbox_count++;
    return true;
}

/* Only the oldest message of a chat may be pending, so that none overtakes a retry. */
static bool outbox_is_first_of_chat(const struct rollcall *client, const struct outgoing *message)
{
    for (const struct outgoing *at = client->outbox; at != message; at = at->next)
        if (strcmp(at->chat_id, message->chat_id) == 0)
            return false;
    return true;
}

static bool outbox_transmit(struct rollcall *client, const struct outgoing *message)
{
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("type"), SLICE("send_message"));
    json_write_key_string(&json, SLICE("chat_id"), slice_of(message->chat_id));
    json_write_key_string(&json, SLICE("client_message_id"), slice_of(message->client_message_id));
    json_write_key_string(&json, SLICE("body"), slice_of(message->body));
    json_write_object_end(&json);
    bool sent = !json.failed && transport_send(client, buffer_slice(&json));
    buffer_free(&json);
    return sent;
}

/* Until when a message that was sent or refused keeps all others back; 0: not at all. */
static int64_t outbox_blocked_ms(const struct rollcall *client)
{
    int64_t blocked_ms = 0;
    for (const struct outgoing *at = client->outbox; client->outbox_limited && at; at = at->next)
        if (at->command.due_ms > blocked_ms)
            blocked_ms = at->command.due_ms;
    return blocked_ms;
}

void outbox_flush(struct rollcall *client)
{
    int64_t now_ms = client->clock.now_ms;
    for (struct outgoing *at = client->outbox; at && outbox_blocked_ms(client) <= now_ms;
         at = at->next)
        if (repeated_command_is_due(&at->command, now_ms) && outbox_is_first_of_chat(client, at))
            repeated_command_sent(client, &at->command, outbox_transmit(client, at));
}

int64_t outbox_due_ms(const struct rollcall *client)
{
    int64_t due_ms = INT64_MAX;
    for (const struct outgoing *at = client->outbox; at; at = at->next)
        if (at->command.due_ms < due_ms && outbox_is_first_of_chat(client, at))
            due_ms = at->command.due_ms;
    int64_t blocked_ms = outbox_blocked_ms(client);
    return due_ms > blocked_ms ? due_ms : blocked_ms;
}

void outbox_reset(struct rollcall *client)
{
    client->outbox_limited = false;
    for (struct outgoing *at = client->outbox; at; at = at->next)
        repeated_command_reset(&at->command, true);
}

struct outgoing *outbox_detach(struct rollcall *client, const char *client_message_id)
{
    struct outgoing **at = outbox_find(client, client_message_id);
    struct outgoing *found = *at;
    if (found) {
        *at = found->next;
        client->outbox_count--;
    }
    client->outbox_limited &= client->outbox_count > 0;
    return found;
}

void outbox_refused(struct rollcall *client, const char *client_message_id, bool limited,
                    int64_t after_ms)
{
    struct outgoing *message = *outbox_find(client, client_message_id);
    client->outbox_limited |= limited && message;
    if (message)
        repeated_command_refused(client, &message->command, after_ms);
}
