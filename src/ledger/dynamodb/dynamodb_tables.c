#include "ledger/dynamodb/dynamodb_tables.h"

#include <stddef.h>

const struct dynamodb_table_description dynamodb_tables[DYNAMODB_TABLE_COUNT] = {
    [DYNAMODB_MESSAGES] = {"messages", "chat_id", "sequence", .sort_is_number = true},
    [DYNAMODB_CHAT_COUNTERS] = {"chat_counters", "chat_id", NULL},
    [DYNAMODB_SENDS] = {"sends", "sender_key", "client_message_id"},
    [DYNAMODB_CHATS] = {"chats", "chat_id", "part_key", .expires = "expires_at_s"},
    [DYNAMODB_USERS] = {"users", "user_id", "part_key", .expires = "expires_at_s"},
    [DYNAMODB_QUEUES] = {"queues", "queue_name", "item_position"},
};
