/* Chats that are followed (every message once, in order) or open (presence and typing are pushed). */
#include "client.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

struct chat *chats_find(struct rollcall *client, struct slice chat_id)
{
    struct chat *at = client->chats;
    while (at && !slice_is(chat_id, at->id))
        at = at->next;
    return at;
}

struct chat *chats_add(struct rollcall *client, struct slice chat_id)
{
    struct chat *chat = chats_find(client, chat_id);
    if (chat || client->chat_count == ROLLCALL_CHATS_MAX || chat_id.len > ROLLCALL_ID_BYTES_MAX)
        return chat;
    chat = calloc(1, sizeof(*chat) + chat_id.len + 1);
    if (!chat)
        return NULL;
    memcpy(chat->id, chat_id.data, chat_id.len);
    chat->next = client->chats;
    client->chats = chat;
    client->chat_count++;
    return chat;
}

void chats_free(struct rollcall *client)
{
    while (client->chats) {
        struct chat *next = client->chats->next;
        free(client->chats);
        client->chats = next;
    }
}

static bool send_about(struct rollcall *client, const char *type, const struct chat *chat)
{
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("type"), slice_of(type));
    json_write_key_string(&json, SLICE("chat_id"), slice_of(chat->id));
    if (strcmp(type, "sync_request") == 0) {
        json_write_key_int(&json, SLICE("after_sequence"), chat->sequence);
        json_write_key_int(&json, SLICE("limit"), CLIENT_SYNC_PAGE);
    }
    json_write_object_end(&json);
    bool sent = !json.failed && transport_send(client, buffer_slice(&json));
    buffer_free(&json);
    return sent;
}

static void sync(struct rollcall *client, struct chat *chat)
{
    if (chat->syncing) {
        chat->again = true;
        return;
    }
    chat->again = false;
    chat->syncing = send_about(client, "sync_request", chat);
}

void chats_resume(struct rollcall *client)
{
    for (struct chat *at = client->chats; at; at = at->next) {
        if (at->open)
            send_about(client, "open_chat", at);
        if (at->followed)
            sync(client, at);
    }
}

void chats_reset(struct rollcall *client)
{
    for (struct chat *at = client->chats; at; at = at->next)
        at->syncing = at->again = false;
}

bool chats_synced(const struct rollcall *client)
{
    for (const struct chat *at = client->chats; at; at = at->next)
        if (at->syncing)
            return false;
    return true;
}

/* The next one is given out; an older one was given out before; a later one means that some are
 * missing, which are fetched (and it with them). */
void chats_message(struct rollcall *client, const struct rollcall_event *event)
{
    struct chat *chat = chats_find(client, slice_of(event->chat_id));
    if (!chat || !chat->followed) {
        client_emit(client, event);
        return;
    }
    if (event->sequence == chat->sequence + 1) {
        chat->sequence = event->sequence;
        client_emit(client, event);
    } else if (event->sequence > chat->sequence) {
        sync(client, chat);
    }
}

void chats_page(struct rollcall *client, struct slice chat_id, bool has_more)
{
    struct chat *chat = chats_find(client, chat_id);
    if (!chat)
        return;
    bool go_on = has_more || chat->again;
    chat->syncing = false;
    if (go_on)
        sync(client, chat);
}

static bool is_live(const struct rollcall *client)
{
    return client->state == ROLLCALL_SYNCING || client->state == ROLLCALL_READY;
}

bool rollcall_follow(struct rollcall *client, const char *chat_id, int64_t after_sequence)
{
    struct chat *chat = chats_add(client, slice_of(chat_id));
    if (!chat)
        return false;
    if (!chat->followed)
        chat->sequence = after_sequence;
    chat->followed = true;
    if (is_live(client))
        sync(client, chat);
    return true;
}

bool rollcall_open_chat(struct rollcall *client, const char *chat_id)
{
    struct chat *chat = chats_add(client, slice_of(chat_id));
    if (!chat)
        return false;
    chat->open = true;
    return !is_live(client) || send_about(client, "open_chat", chat);
}

bool rollcall_close_chat(struct rollcall *client, const char *chat_id)
{
    struct chat *chat = chats_find(client, slice_of(chat_id));
    if (!chat || !chat->open)
        return false;
    chat->open = false;
    return !is_live(client) || send_about(client, "close_chat", chat);
}
