/* The item of a message. */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_MESSAGE_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_MESSAGE_H

#include "ledger/dynamodb/client/dynamodb_item.h"

static inline struct dynamodb_key dynamodb_message_key(struct slice chat, int64_t sequence)
{
    return (struct dynamodb_key){DYNAMODB_MESSAGES, chat, SLICE_NONE, sequence};
}

/* The texts are those of the item. */
static inline struct ledger_message dynamodb_message_read(const struct dynamodb_item *item)
{
    return (struct ledger_message){
        .chat = dynamodb_item_text(item, "chat_id"),
        .id = dynamodb_item_text(item, "message_id"),
        .sender = dynamodb_item_text(item, "sender_id"),
        .client_message_id = dynamodb_item_text(item, "client_message_id"),
        .body = dynamodb_item_text(item, "body_text"),
        .sequence = (uint64_t)dynamodb_item_number(item, "sequence"),
        .sent_at_ms = dynamodb_item_number(item, "sent_at_ms"),
    };
}

#endif
