#include "ledger/dynamodb/append/dynamodb_append_chat.h"

#include <stdio.h>

void dynamodb_append_chat_forget_members(struct dynamodb_append_chat *chat)
{
    chat->members_version = 0;
    id_list_free(&chat->pair);
    id_list_free(&chat->senders);
}

void dynamodb_append_chat_forget(struct dynamodb_append_chat *chat)
{
    dynamodb_append_chat_forget_members(chat);
    *chat = (struct dynamodb_append_chat){0};
}

void dynamodb_append_chat_set(struct dynamodb_append_chat *chat, const struct dynamodb_item *item)
{
    int64_t version = dynamodb_item_number(item, "members_version");
    if (version != chat->members_version)
        dynamodb_append_chat_forget_members(chat);
    chat->members_version = version;
    chat->member_count = dynamodb_item_number(item, "member_count");
    snprintf(chat->draft, sizeof(chat->draft), "%.*s",
             SLICE_FORMAT(dynamodb_item_text(item, "draft_id")));
}

void dynamodb_append_chat_set_counter(struct dynamodb_append_chat *chat,
                                      const struct dynamodb_item *item)
{
    chat->has_counter = dynamodb_item_has(item, "sequence_counter");
    chat->is_in_order = false;
    chat->sequence = dynamodb_item_number(item, "sequence_counter");
    chat->activity_ms = dynamodb_item_number(item, "activity_ms");
}

void dynamodb_append_chat_add_sender(struct dynamodb_append_chat *chat, struct slice user)
{
    struct slice ids[DYNAMODB_APPEND_SENDERS_MAX];
    struct id_list senders;
    size_t count = 0;
    if (id_list_contains(&chat->senders, user))
        return;
    if (chat->senders.count < DYNAMODB_APPEND_SENDERS_MAX)
        for (; count < chat->senders.count; count++)
            ids[count] = chat->senders.ids[count];
    ids[count++] = user;
    if (!id_list_copy(&senders, ids, count))
        return; /* it is read again next time */
    id_list_free(&chat->senders);
    chat->senders = senders;
}
