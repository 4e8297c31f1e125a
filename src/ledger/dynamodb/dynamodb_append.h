/*
 * Storing messages of one chat, several in one transaction:
 *
 *   the counter      moves from the expected sequence to the last new one
 *   the chat         has the members_version under which the senders are members
 *   blocks           in a chat of two: none, in either direction
 *   each sender      the count of messages grows; the first message accepts the chat
 *   each message     the message, the record of its client_message_id, its place in the outbox
 *
 * A refused transaction has stored nothing and names what did not hold: the answer of a repeated client_message_id is its first
 * send; what was remembered of the chat (dynamodb_append_chat.h) is read again where it was out of date; the messages that are
 * still without an answer go into the next transaction.
 *
 * A chat is halted when its counter is missing, or the message of the counter's sequence is missing (the counter is ahead), or
 * the next one exists (it is behind). The first transaction after a read of the counter checks the former; every one checks
 * the latter. Either is confirmed by a read of both as they are at one instant.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_APPEND_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_APPEND_H

#include "ledger/dynamodb/dynamodb_append_chat.h"
#include "ledger/dynamodb/dynamodb_write.h"

enum {
    DYNAMODB_APPEND_BATCH_MAX = 48,
    /* How often a batch is written when other processes are faster, or messages repeat earlier ones; its time limit is
     * usually over before. */
    DYNAMODB_APPEND_ATTEMPTS_MAX = 64,
};

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

/* Requests of one chat that are stored together, in the order of their arrival. */
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

/* Stores the batch, which is not empty, and completes the outcome of each request. The task uses the memory of one of
 * them. */
void dynamodb_append_batch_write(struct dynamodb_append_batch *batch, struct dynamodb_task *task,
                                 struct dynamodb_append_chat *chat);

#endif
