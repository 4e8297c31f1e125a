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
#ifndef ROLLCALL_LEDGER_DYNAMODB_APPEND_DYNAMODB_APPEND_H
#define ROLLCALL_LEDGER_DYNAMODB_APPEND_DYNAMODB_APPEND_H

#include "ledger/dynamodb/append/dynamodb_append_batch.h"

/* How often a batch is written when other processes are faster, or messages repeat earlier ones; its time limit is usually over
 * before. */
enum { DYNAMODB_APPEND_ATTEMPTS_MAX = 64 };

/* Stores the batch, which is not empty, and completes the outcome of each request. The task uses the memory of one of
 * them. */
void dynamodb_append_write(struct dynamodb_append_batch *batch, struct dynamodb_task *task,
                           struct dynamodb_append_chat *chat);

#endif
