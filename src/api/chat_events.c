#include "api/chat_events.h"

#include "api/chat_json.h"

/* `kind` may be SLICE_NONE. */
static void send_chat_event(struct session_context *sessions, const struct slice *users,
                            size_t count, struct slice name, struct slice chat, struct slice kind)
{
    struct buffer fields = BUFFER_INIT;
    json_write_object(&fields);
    json_write_key_string(&fields, SLICE("chat_id"), chat);
    if (kind.data)
        json_write_key_string(&fields, SLICE("kind"), kind);
    json_write_object_end(&fields);
    struct message message = {.type = MESSAGE_RELAY,
                              .relay = {.name = name, .fields = buffer_slice(&fields)}};
    if (!fields.failed)
        delivery_send(sessions->delivery, users, count, &message, NULL);
    buffer_free(&fields);
}

void chat_events_created(struct session_context *sessions, const struct ledger_chat *chat,
                         bool changed)
{
    for (size_t i = 0; i < chat->member_count; i++)
        graph_reader_drop(&sessions->presence->graphs, chat->members[i]);
    if (changed)
        send_chat_event(sessions, chat->members, chat->member_count, RELAY_CHAT_ADDED, chat->id,
                        chat_json_kind(chat->kind));
}

void chat_events_member_added(struct session_context *sessions, struct slice chat,
                              struct slice user, bool changed)
{
    graph_reader_drop(&sessions->presence->graphs, user);
    if (!changed)
        return;
    send_chat_event(sessions, &user, 1, RELAY_CHAT_ADDED, chat, chat_json_kind(LEDGER_CHAT_GROUP));
    chat_publish_changed(sessions->chats, chat, user);
}

void chat_events_member_removed(struct session_context *sessions, struct slice chat,
                                struct slice user, bool changed)
{
    graph_reader_drop(&sessions->presence->graphs, user);
    chat_publish_removal(sessions->chats, chat, user);
    if (!changed)
        return;
    send_chat_event(sessions, &user, 1, RELAY_CHAT_REMOVED, chat, SLICE_NONE);
    chat_publish_changed(sessions->chats, chat, user);
}

void chat_events_role_changed(struct session_context *sessions, struct slice chat,
                              struct slice user)
{
    send_chat_event(sessions, &user, 1, RELAY_CHAT_CHANGED, chat, SLICE_NONE);
    chat_publish_changed(sessions->chats, chat, user);
}
