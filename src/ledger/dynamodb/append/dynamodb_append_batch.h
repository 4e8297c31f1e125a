/*
 * A batch: requests of one chat to store messages that share a transaction (dynamodb_append.h), in the order of their arrival.
 * Each request is decided once; those that are not yet go into the next transaction.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_APPEND_DYNAMODB_APPEND_BATCH_H
#define ROLLCALL_LEDGER_DYNAMODB_APPEND_DYNAMODB_APPEND_BATCH_H

#include "ledger/dynamodb/append/dynamodb_append_chat.h"

enum { DYNAMODB_APPEND_BATCH_MAX = 48 };

struct dynamodb_append_sender {
    struct slice user;
    struct slice sends; /* the partition of the sender's sends in this chat */
    bool is_read;
    bool is_member;
    bool is_accepted;
};

struct dynamodb_append_entry {
    struct ledger_request *request;
    struct dynamodb_append_sender *sender;
    struct dynamodb_item first_send; /* of this client_message_id, if there was one */
    bool is_decided;
    enum ledger_status status;
    unsigned message_place; /* in the transaction */
    unsigned send_place;
};

struct dynamodb_append_batch {
    struct dynamodb_append_entry entries[DYNAMODB_APPEND_BATCH_MAX];
    size_t count;
    struct dynamodb_append_sender senders[DYNAMODB_APPEND_BATCH_MAX];
    size_t sender_count;
    unsigned writes; /* items of the transaction, at most */
    /* ---- while it is written ---- */
    struct dynamodb_task *task;
    struct dynamodb_append_chat *chat;
    struct slice id; /* of the chat */
};

/* Adds a request. Returns false when the batch is full, or has a request of the same client_message_id. */
bool dynamodb_append_batch_add(struct dynamodb_append_batch *batch, struct ledger_request *request);

/* Returns the next entry that is not decided, from `*at` on; NULL: there is none. */
struct dynamodb_append_entry *dynamodb_append_batch_next(struct dynamodb_append_batch *batch,
                                                         size_t *at);

bool dynamodb_append_batch_is_decided(struct dynamodb_append_batch *batch);

/* Returns how many entries of this sender (NULL: of all) are not decided. */
unsigned dynamodb_append_batch_count(struct dynamodb_append_batch *batch,
                                     const struct dynamodb_append_sender *sender);

static inline void dynamodb_append_decide(struct dynamodb_append_entry *entry,
                                          enum ledger_status status)
{
    entry->is_decided = true;
    entry->status = status;
}

/* Decides all entries that are not. */
void dynamodb_append_batch_decide_rest(struct dynamodb_append_batch *batch,
                                       enum ledger_status status);

/* ---- keys ---- */

struct dynamodb_key dynamodb_append_counter_key(const struct dynamodb_append_batch *batch);
struct dynamodb_key dynamodb_append_chat_key(const struct dynamodb_append_batch *batch);
struct dynamodb_key dynamodb_append_chat_part_key(const struct dynamodb_append_batch *batch,
                                                  const char *prefix, struct slice user);
/* What the keys of the chat's members rest on (dynamodb_chats.h), once the chat was read. */
struct dynamodb_chat dynamodb_append_chat_name(const struct dynamodb_append_batch *batch);
struct dynamodb_key dynamodb_append_send_key(const struct dynamodb_append_entry *entry);

#endif
