/* The commands besides messages and chats: presence, activity, tokens, calls. */
#include "client.h"

#include "base/ulid.h"
#include "text/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBSCRIBE_ID "watch "
enum { SUBSCRIBE_ID_BYTES_MAX = sizeof(SUBSCRIBE_ID) + 10 };

/* ---- commands that are sent once ---- */

static void command_begin(struct buffer *json, const char *type)
{
    *json = BUFFER_INIT;
    json_write_object(json);
    json_write_key_string(json, SLICE("type"), slice_of(type));
}

static bool command_send(struct rollcall *client, struct buffer *json)
{
    json_write_object_end(json);
    bool sent =
        !json->failed && client_is_live(client) && transport_send(client, buffer_slice(json));
    buffer_free(json);
    return sent;
}

static bool command_send_text(struct rollcall *client, const char *type, const char *key,
                              const char *value)
{
    struct buffer json;
    command_begin(&json, type);
    json_write_key_string(&json, slice_of(key), slice_of(value));
    return command_send(client, &json);
}

bool rollcall_refresh_token(struct rollcall *client, const char *token)
{
    char *copy = strdup(token);
    if (!copy)
        return false;
    free(client->token);
    client->token = copy;
    client->replaced = false;
    return !client_is_live(client) || token_send(client);
}

bool rollcall_ack(struct rollcall *client, const char *chat_id, int64_t sequence)
{
    struct buffer json;
    command_begin(&json, "ack");
    json_write_key_string(&json, SLICE("chat_id"), slice_of(chat_id));
    json_write_key_int(&json, SLICE("sequence"), sequence);
    return command_send(client, &json);
}

bool rollcall_typing(struct rollcall *client, const char *chat_id, bool typing)
{
    return command_send_text(client, typing ? "typing_start" : "typing_stop", "chat_id", chat_id);
}

bool rollcall_send_event(struct rollcall *client, const char *id, const char *name,
                         const char *data_json)
{
    struct buffer json;
    if (!client_is_id(id) || !client_is_id(name))
        return false;
    command_begin(&json, "event");
    json_write_key_string(&json, SLICE("id"), slice_of(id));
    json_write_key_string(&json, SLICE("name"), slice_of(name));
    json_write_key(&json, SLICE("data"));
    json_write_raw(&json, slice_of(data_json));
    return command_send(client, &json);
}

/* ---- calls: the answer's id names the call ---- */

static bool call_begin(struct buffer *json, const char *type, const char *call_id)
{
    char id[sizeof(CLIENT_CALL_ID) + ROLLCALL_ID_BYTES_MAX];
    if (!client_is_id(call_id))
        return false;
    snprintf(id, sizeof(id), CLIENT_CALL_ID "%s", call_id);
    command_begin(json, type);
    json_write_key_string(json, SLICE("id"), slice_of(id));
    json_write_key_string(json, SLICE("call_id"), slice_of(call_id));
    return true;
}

bool rollcall_call_request(struct rollcall *client, const char *to, const char *call_id)
{
    char new_id[ULID_TEXT_LEN + 1] = "";
    struct buffer json;
    if (!call_id) {
        struct ulid ulid = ulid_make(client->clock.wall_ms, &client->random);
        ulid_write(new_id, &ulid);
    }
    if (!call_begin(&json, "call_request", call_id ? call_id : new_id))
        return false;
    json_write_key_string(&json, SLICE("to"), slice_of(to));
    return command_send(client, &json);
}

static bool call_send(struct rollcall *client, const char *type, const char *call_id)
{
    struct buffer json;
    return call_begin(&json, type, call_id) && command_send(client, &json);
}

bool rollcall_call_accept(struct rollcall *client, const char *call_id)
{
    return call_send(client, "call_accept", call_id);
}

bool rollcall_call_reject(struct rollcall *client, const char *call_id)
{
    return call_send(client, "call_reject", call_id);
}

bool rollcall_call_end(struct rollcall *client, const char *call_id)
{
    return call_send(client, "call_end", call_id);
}

bool rollcall_call_signal(struct rollcall *client, const char *call_id, const char *data_json)
{
    struct buffer json;
    if (!call_begin(&json, "call_signal", call_id))
        return false;
    json_write_key(&json, SLICE("data"));
    json_write_raw(&json, slice_of(data_json));
    return command_send(client, &json);
}

bool rollcall_command(struct rollcall *client, const char *json)
{
    return client_is_live(client) && transport_send(client, slice_of(json));
}

/* ---- presence subscriptions, restored on every connection ---- */

void commands_reset(struct rollcall *client)
{
    repeated_command_reset(&client->subscribing, client->subscribed != NULL);
}

static struct slice subscribing_write_id(char id[SUBSCRIBE_ID_BYTES_MAX], unsigned number)
{
    return (struct slice){id,
                          (size_t)snprintf(id, SUBSCRIBE_ID_BYTES_MAX, SUBSCRIBE_ID "%u", number)};
}

void commands_flush(struct rollcall *client)
{
    if (!repeated_command_is_due(&client->subscribing, client->clock.now_ms))
        return;
    struct buffer json;
    char id[SUBSCRIBE_ID_BYTES_MAX];
    command_begin(&json, "subscribe_presence");
    json_write_key_string(
        &json, SLICE("id"),
        subscribing_write_id(id, repeated_command_number(client, &client->subscribing)));
    json_write_key(&json, SLICE("user_ids"));
    json_write_array(&json);
    for (const struct subscribed_user *at = client->subscribed; at; at = at->next)
        json_write_string(&json, slice_of(at->user_id));
    json_write_array_end(&json);
    repeated_command_sent(client, &client->subscribing, command_send(client, &json));
}

/* The answer to an older subscribe_presence is ignored, because that command named fewer users. */
bool commands_answered(struct rollcall *client, struct slice id, bool for_good, int64_t after_ms)
{
    char last[SUBSCRIBE_ID_BYTES_MAX];
    if (!slice_starts_with(id, SLICE(SUBSCRIBE_ID)))
        return false;
    if (!slice_equal(id, subscribing_write_id(last, client->subscribing.number)))
        return true;
    if (for_good)
        repeated_command_answered(&client->subscribing);
    else
        repeated_command_refused(client, &client->subscribing, after_ms);
    return true;
}

static struct subscribed_user **subscribed_find(struct rollcall *client, const char *user_id)
{
    struct subscribed_user **at = &client->subscribed;
    while (*at && strcmp((*at)->user_id, user_id) != 0)
        at = &(*at)->next;
    return at;
}

bool rollcall_subscribe(struct rollcall *client, const char *user_id)
{
    size_t len = strlen(user_id);
    if (*subscribed_find(client, user_id))
        return true;
    if (client->subscribed_count == ROLLCALL_SUBSCRIPTIONS_MAX || !client_is_id(user_id))
        return false;
    struct subscribed_user *added = malloc(sizeof(*added) + len + 1);
    if (!added)
        return false;
    memcpy(added->user_id, user_id, len + 1);
    added->next = client->subscribed;
    client->subscribed = added;
    client->subscribed_count++;
    /* A pending command named fewer users, so send another. */
    repeated_command_reset(&client->subscribing, true);
    return true;
}

bool rollcall_unsubscribe(struct rollcall *client, const char *user_id)
{
    struct subscribed_user **at = subscribed_find(client, user_id);
    if (!*at)
        return false;
    struct subscribed_user *removed = *at;
    *at = removed->next;
    client->subscribed_count--;
    if (!client->subscribed)
        repeated_command_answered(&client->subscribing);
    struct buffer json;
    command_begin(&json, "unsubscribe_presence");
    json_write_key(&json, SLICE("user_ids"));
    json_write_array(&json);
    json_write_string(&json, slice_of(removed->user_id));
    json_write_array_end(&json);
    command_send(client, &json);
    free(removed);
    return true;
}

void commands_free(struct rollcall *client)
{
    while (client->subscribed) {
        struct subscribed_user *next = client->subscribed->next;
        free(client->subscribed);
        client->subscribed = next;
    }
}
