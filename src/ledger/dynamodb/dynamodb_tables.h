/*
 * The tables of the ledger on DynamoDB, described once: `rollcall tables` makes and checks them from this description, and
 * deploy/ holds the same as a CloudFormation template.
 *
 * An item has a key of one or two parts. Text keys are opaque ids; where several kinds of items share a table, the
 * second part of the key begins with the kind ("member#alice"). Attributes are texts and numbers only. Their names avoid the
 * words that DynamoDB reserves in expressions, so they hold an underscore; `sequence`, the key of a message, is written by
 * its alias (dynamodb_read.h).
 *
 *   table           key                            what an item is
 *   messages        chat_id, sequence              a message; its body goes when it is deleted
 *   chat_counters   chat_id                        the chat's last sequence and what else an append changes
 *   sends           sender_key, client_message_id  the first send of a client_message_id: idempotency, kept for ever
 *   chats           chat_id, part_key              a chat, its members, its read marks
 *   users           user_id, part_key              settings, contacts, contact requests, blocks, chats, calls of a user
 *   queues          queue_name, item_position      outbox, dead letters, revocations, events for the application, API keys
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_TABLES_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_TABLES_H

#include <stdbool.h>

enum dynamodb_table {
    DYNAMODB_MESSAGES,
    DYNAMODB_CHAT_COUNTERS,
    DYNAMODB_SENDS,
    DYNAMODB_CHATS,
    DYNAMODB_USERS,
    DYNAMODB_QUEUES,
    DYNAMODB_TABLE_COUNT,
};

struct dynamodb_table_description {
    const char *name;      /* without the installation's prefix */
    const char *partition; /* the name of the key's first part, a text */
    const char *sort;      /* the name of its second part; NULL: there is none */
    bool sort_is_number;
    const char *
        expires; /* the attribute with the time, in seconds, after which DynamoDB removes an item; NULL: none */
};

extern const struct dynamodb_table_description dynamodb_tables[DYNAMODB_TABLE_COUNT];

#endif
