/* Chats that are followed (every message once, in order) or open (presence and typing are pushed). */
#include "client.h"

#include "text/json.h"

#include <stdlib.h>
#include <string.h>

/* The id of a command names its kind and chat, to identify it if it is refused. */
#define OPEN_ID "open "
#define SYNC_ID "sync "
enum { ID_PREFIX_LEN = sizeof(SYNC_ID) - 1 };

static struct chat *chats_find(const struct rollcall *client, struct slice chat_id)
{
    struct chat *at = client->chats;
    while (at && !slice_is(chat_id, at->id))
        at = at->next;
    return at;
}

static struct chat *chats_find_or_add(struct rollcall *client, const char *chat_id)
{
    struct chat *chat = chats_find(client, slice_of(chat_id));
    if (chat || client->chat_count == ROLLCALL_CHATS_MAX || !client_is_id(chat_id))
        return chat;
    size_t len = strlen(chat_id);
    chat = calloc(1, sizeof(*chat) + len + 1);
    if (!chat)
        return NULL;
    memcpy(chat->id, chat_id, len);
    chat->next = client->chats;
    client->chats = chat;
    client->chat_count++;
    return chat;
}

/* A chat that is neither followed nor open must not count towards ROLLCALL_CHATS_MAX. */
static void chats_drop_if_unused(struct rollcall *client, struct chat *chat)
{
    if (chat->followed || chat->open)
        return;
    struct chat **at = &client->chats;
    while (*at != chat)
        at = &(*at)->next;
    *at = chat->next;
    client->chat_count--;
    free(chat);
}

void chats_free(struct rollcall *client)
{
    while (client->chats) {
        struct chat *next = client->chats->next;
        free(client->chats);
        client->chats = next;
    }
    client->chat_count = 0;
}

/* ---- commands ---- */

static bool chats_send_command(struct rollcall *client, const char *type, const char *id,
                               const struct chat *chat)
{
    struct buffer json = BUFFER_INIT;
    char full_id[ID_PREFIX_LEN + ROLLCALL_ID_BYTES_MAX];
    size_t len = strlen(chat->id);
    memcpy(full_id, id, ID_PREFIX_LEN);
    memcpy(full_id + ID_PREFIX_LEN, chat->id, len);
    json_write_object(&json);
    json_write_key_string(&json, SLICE("type"), slice_of(type));
    json_write_key_string(&json, SLICE("id"), (struct slice){full_id, ID_PREFIX_LEN + len});
    json_write_key_string(&json, SLICE("chat_id"), slice_of(chat->id));
    if (strcmp(id, SYNC_ID) == 0) {
        json_write_key_int(&json, SLICE("after_sequence"), chat->sequence);
        json_write_key_int(&json, SLICE("limit"), CLIENT_SYNC_PAGE);
    }
    json_write_object_end(&json);
    bool sent = !json.failed && transport_send(client, buffer_slice(&json));
    buffer_free(&json);
    return sent;
}

void chats_reset(struct rollcall *client)
{
    for (struct chat *at = client->chats; at; at = at->next) {
        repeated_command_reset(&at->opening, at->open);
        repeated_command_reset(&at->syncing, at->followed);
        at->seen = at->sequence;
    }
}

bool chats_synced(const struct rollcall *client)
{
    for (const struct chat *at = client->chats; at; at = at->next)
        if (at->syncing.wanted)
            return false;
    return true;
}

static size_t chats_count_pending(const struct rollcall *client)
{
    int64_t now_ms = client->clock.now_ms;
    size_t count = 0;
    for (const struct chat *at = client->chats; at; at = at->next) {
        count += at->opening.wanted && at->opening.due_ms > now_ms;
        count += at->syncing.wanted && at->syncing.due_ms > now_ms;
    }
    return count;
}

void chats_flush(struct rollcall *client)
{
    int64_t now_ms = client->clock.now_ms;
    size_t pending = chats_count_pending(client);
    for (struct chat *at = client->chats; at && pending < CLIENT_CHAT_COMMANDS_MAX; at = at->next) {
        if (repeated_command_is_due(&at->opening, now_ms)) {
            repeated_command_number(client, &at->opening);
            repeated_command_sent(client, &at->opening,
                                  chats_send_command(client, "open_chat", OPEN_ID, at));
            pending++;
        }
        if (repeated_command_is_due(&at->syncing, now_ms)) {
            at->requested_after = at->sequence;
            repeated_command_sent(client, &at->syncing,
                                  chats_send_command(client, "sync_request", SYNC_ID, at));
            pending++;
        }
    }
}

/* While the maximum of commands is pending, the client waits for an answer to one of them. */
int64_t chats_due_ms(const struct rollcall *client)
{
    int64_t now_ms = client->clock.now_ms;
    int64_t due_ms = INT64_MAX;
    bool full = chats_count_pending(client) >= CLIENT_CHAT_COMMANDS_MAX;
    for (const struct chat *at = client->chats; at; at = at->next) {
        const struct repeated_command *commands[] = {&at->opening, &at->syncing};
        for (size_t i = 0; i < 2; i++)
            if (commands[i]->wanted && commands[i]->due_ms < due_ms &&
                !(full && commands[i]->due_ms <= now_ms))
                due_ms = commands[i]->due_ms;
    }
    return due_ms;
}

/* ---- messages from the server ---- */

static void chats_note_sequence(struct rollcall *client, struct chat *chat, int64_t sequence)
{
    if (sequence <= chat->sequence)
        return;
    if (sequence > chat->seen)
        chat->seen = sequence;
    repeated_command_want(&chat->syncing, client->clock.now_ms);
}

void chats_sync_followed(struct rollcall *client)
{
    for (struct chat *at = client->chats; at; at = at->next)
        if (at->followed)
            repeated_command_want(&at->syncing, client->clock.now_ms);
}

/* The next message goes to the application; an older one was given before; a later one means that some are
 * missing, so they are fetched together with it. */
void chats_message(struct rollcall *client, const struct rollcall_event *event)
{
    struct chat *chat = chats_find(client, slice_of(event->chat_id));
    if (!chat || !chat->followed) {
        client_emit(client, event);
        return;
    }
    if (event->sequence > chat->sequence && event->sequence - chat->sequence == 1) {
        chat->sequence = event->sequence;
        client_emit(client, event);
    } else {
        chats_note_sequence(client, chat, event->sequence);
    }
}

void chats_own(struct rollcall *client, const struct rollcall_event *ack, const char *body)
{
    struct chat *chat = chats_find(client, slice_of(ack->chat_id));
    if (!chat || !chat->followed)
        return;
    if (!body) {
        chats_note_sequence(client, chat, ack->sequence);
        return;
    }
    chats_message(client, &(struct rollcall_event){.type = ROLLCALL_EVENT_MESSAGE,
                                                   .name = "message",
                                                   .chat_id = ack->chat_id,
                                                   .message_id = ack->message_id,
                                                   .client_message_id = ack->client_message_id,
                                                   .user_id = client->user_id,
                                                   .body = body,
                                                   .body_len = strlen(body),
                                                   .sequence = ack->sequence});
}

void chats_page(struct rollcall *client, struct slice chat_id, bool has_more)
{
    struct chat *chat = chats_find(client, chat_id);
    if (!chat || !chat->syncing.wanted)
        return;
    bool progressed = chat->sequence > chat->requested_after;
    if (!has_more && chat->seen <= chat->sequence) {
        repeated_command_answered(&chat->syncing);
    } else if (progressed) {
        repeated_command_answered(&chat->syncing);
        repeated_command_want(&chat->syncing, client->clock.now_ms);
    } else {
        repeated_command_refused(client, &chat->syncing,
                                 0); /* no progress: back off instead of looping */
    }
}

/* If the chat was closed and opened again meanwhile, this answer belongs to the first command. */
void chats_opened(struct rollcall *client, struct slice chat_id)
{
    struct chat *chat = chats_find(client, chat_id);
    if (chat && chat->opening.number)
        repeated_command_answered(&chat->opening);
}

void chats_closed(struct rollcall *client, struct slice chat_id)
{
    struct chat *chat = chats_find(client, chat_id);
    if (!chat)
        return;
    chat->open = false;
    repeated_command_answered(&chat->opening);
    chats_drop_if_unused(client, chat);
}

bool chats_refused(struct rollcall *client, struct slice id, bool for_good, int64_t after_ms,
                   char chat_id[ROLLCALL_ID_BYTES_MAX + 1])
{
    if (id.len <= ID_PREFIX_LEN)
        return false;
    struct slice prefix = {id.data, ID_PREFIX_LEN};
    bool opening = slice_is(prefix, OPEN_ID);
    if (!opening && !slice_is(prefix, SYNC_ID))
        return false;
    struct chat *chat =
        chats_find(client, (struct slice){id.data + ID_PREFIX_LEN, id.len - ID_PREFIX_LEN});
    if (!chat)
        return false;
    memcpy(chat_id, chat->id, strlen(chat->id) + 1);
    struct repeated_command *command = opening ? &chat->opening : &chat->syncing;
    if (for_good)
        repeated_command_answered(command);
    else
        repeated_command_refused(client, command, after_ms);
    return true;
}

/* ---- interface ---- */

bool rollcall_follow(struct rollcall *client, const char *chat_id, int64_t after_sequence)
{
    struct chat *chat = chats_find_or_add(client, chat_id);
    if (!chat)
        return false;
    if (!chat->followed)
        chat->sequence = chat->seen = after_sequence > 0 ? after_sequence : 0;
    chat->followed = true;
    repeated_command_want(&chat->syncing, client->clock.now_ms);
    return true;
}

bool rollcall_unfollow(struct rollcall *client, const char *chat_id)
{
    struct chat *chat = chats_find(client, slice_of(chat_id));
    if (!chat || !chat->followed)
        return false;
    chat->followed = false;
    repeated_command_answered(&chat->syncing);
    chats_drop_if_unused(client, chat);
    return true;
}

bool rollcall_open_chat(struct rollcall *client, const char *chat_id)
{
    struct chat *chat = chats_find_or_add(client, chat_id);
    if (!chat)
        return false;
    chat->open = true;
    repeated_command_want(&chat->opening, client->clock.now_ms);
    return true;
}

bool rollcall_close_chat(struct rollcall *client, const char *chat_id)
{
    struct chat *chat = chats_find(client, slice_of(chat_id));
    if (!chat || !chat->open)
        return false;
    if (client_is_live(client))
        chats_send_command(client, "close_chat", "shut ", chat);
    chats_closed(client, slice_of(chat_id));
    return true;
}
