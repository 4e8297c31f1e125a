/* The commands besides messages and chats: presence, activity, tokens, calls. */
#include "client.h"

#include "text/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATCH_ID "watch "
enum { WATCH_ID_BYTES_MAX = sizeof(WATCH_ID) + 10 };

/* ---- commands that are sent once ---- */

static void begin(struct buffer *json, const char *type)
{
    *json = BUFFER_INIT;
    json_write_object(json);
    json_write_key_string(json, SLICE("type"), slice_of(type));
}

static bool end(struct rollcall *client, struct buffer *json)
{
    json_write_object_end(json);
    bool sent =
        !json->failed && client_is_live(client) && transport_send(client, buffer_slice(json));
    buffer_free(json);
    return sent;
}

static bool say(struct rollcall *client, const char *type, const char *key, const char *value)
{
    struct buffer json;
    begin(&json, type);
    json_write_key_string(&json, slice_of(key), slice_of(value));
    return end(client, &json);
}

bool rollcall_refresh_token(struct rollcall *client, const char *token)
{
    char *copy = strdup(token);
    if (!copy)
        return false;
    free(client->token);
    client->token = copy;
    client->replaced = false;
    return !client_is_live(client) || say(client, "refresh_token", "token", copy);
}

bool rollcall_ack(struct rollcall *client, const char *chat_id, int64_t sequence)
{
    struct buffer json;
    begin(&json, "ack");
    json_write_key_string(&json, SLICE("chat_id"), slice_of(chat_id));
    json_write_key_int(&json, SLICE("sequence"), sequence);
    return end(client, &json);
}

bool rollcall_typing(struct rollcall *client, const char *chat_id, bool typing)
{
    return say(client, typing ? "typing_start" : "typing_stop", "chat_id", chat_id);
}

bool rollcall_call_request(struct rollcall *client, const char *to, const char *call_id)
{
    struct buffer json;
    begin(&json, "call_request");
    json_write_key_string(&json, SLICE("to"), slice_of(to));
    if (call_id)
        json_write_key_string(&json, SLICE("call_id"), slice_of(call_id));
    return end(client, &json);
}

bool rollcall_call_accept(struct rollcall *client, const char *call_id)
{
    return say(client, "call_accept", "call_id", call_id);
}

bool rollcall_call_reject(struct rollcall *client, const char *call_id)
{
    return say(client, "call_reject", "call_id", call_id);
}

bool rollcall_call_end(struct rollcall *client, const char *call_id)
{
    return say(client, "call_end", "call_id", call_id);
}

bool rollcall_call_signal(struct rollcall *client, const char *call_id, const char *data_json)
{
    struct buffer json;
    begin(&json, "call_signal");
    json_write_key_string(&json, SLICE("call_id"), slice_of(call_id));
    json_write_key(&json, SLICE("data"));
    json_write_raw(&json, slice_of(data_json));
    return end(client, &json);
}

bool rollcall_command(struct rollcall *client, const char *json)
{
    return client_is_live(client) && transport_send(client, slice_of(json));
}

/* ---- presence subscriptions, restored on every connection ---- */

void commands_reset(struct rollcall *client)
{
    repeated_command_reset(&client->watching, client->watched != NULL);
}

static struct slice write_watch_id(char id[WATCH_ID_BYTES_MAX], unsigned number)
{
    return (struct slice){id, (size_t)snprintf(id, WATCH_ID_BYTES_MAX, WATCH_ID "%u", number)};
}

void commands_flush(struct rollcall *client)
{
    if (!repeated_command_is_due(&client->watching, client->clock.now_ms))
        return;
    struct buffer json;
    char id[WATCH_ID_BYTES_MAX];
    begin(&json, "subscribe_presence");
    json_write_key_string(&json, SLICE("id"),
                          write_watch_id(id, repeated_command_number(client, &client->watching)));
    json_write_key(&json, SLICE("user_ids"));
    json_write_array(&json);
    for (const struct watched *at = client->watched; at; at = at->next)
        json_write_string(&json, slice_of(at->user_id));
    json_write_array_end(&json);
    repeated_command_sent(client, &client->watching, end(client, &json));
}

/* Handles an error, or with `for_good` any answer: the command is complete, unless users were added since it was
 * sent. */
bool commands_refused(struct rollcall *client, struct slice id, bool for_good, int64_t after_ms)
{
    char last[WATCH_ID_BYTES_MAX];
    if (!slice_starts_with(id, SLICE(WATCH_ID)))
        return false;
    if (!slice_equal(id, write_watch_id(last, client->watching.number)))
        return true;
    if (for_good)
        repeated_command_answered(&client->watching);
    else
        repeated_command_refused(client, &client->watching, after_ms);
    return true;
}

static struct watched **find(struct rollcall *client, const char *user_id)
{
    struct watched **at = &client->watched;
    while (*at && strcmp((*at)->user_id, user_id) != 0)
        at = &(*at)->next;
    return at;
}

bool rollcall_subscribe(struct rollcall *client, const char *user_id)
{
    size_t len = strlen(user_id);
    if (*find(client, user_id))
        return true;
    if (client->watched_count == ROLLCALL_SUBSCRIPTIONS_MAX || !client_is_id(user_id))
        return false;
    struct watched *made = malloc(sizeof(*made) + len + 1);
    if (!made)
        return false;
    memcpy(made->user_id, user_id, len + 1);
    made->next = client->watched;
    client->watched = made;
    client->watched_count++;
    repeated_command_reset(&client->watching,
                           true); /* also while one is pending: that named fewer users */
    return true;
}

bool rollcall_unsubscribe(struct rollcall *client, const char *user_id)
{
    struct watched **at = find(client, user_id);
    if (!*at)
        return false;
    struct watched *gone = *at;
    *at = gone->next;
    client->watched_count--;
    if (!client->watched)
        repeated_command_answered(&client->watching);
    struct buffer json;
    begin(&json, "unsubscribe_presence");
    json_write_key(&json, SLICE("user_ids"));
    json_write_array(&json);
    json_write_string(&json, slice_of(gone->user_id));
    json_write_array_end(&json);
    end(client, &json);
    free(gone);
    return true;
}

void commands_free(struct rollcall *client)
{
    while (client->watched) {
        struct watched *next = client->watched->next;
        free(client->watched);
        client->watched = next;
    }
}
