/* What a batch of messages is decided on (dynamodb_append.h): who may send, the counter, and earlier sends. */
#ifndef ROLLCALL_LEDGER_DYNAMODB_APPEND_DYNAMODB_APPEND_READ_H
#define ROLLCALL_LEDGER_DYNAMODB_APPEND_DYNAMODB_APPEND_READ_H

#include "ledger/dynamodb/append/dynamodb_append_batch.h"

/* Reads what is not known of the chat and the senders. Decides the senders who are no members, and all messages of a chat that
 * does not exist or has no counter. Returns whether messages are left and all is known that their transaction needs. */
bool dynamodb_append_read_facts(struct dynamodb_append_batch *batch);

/* The members have changed: who may send is read again. */
void dynamodb_append_forget_members(struct dynamodb_append_batch *batch);

/* Answers the entries whose first send was found. */
void dynamodb_append_decide_duplicates(struct dynamodb_append_batch *batch);

/* Answers repeated sends with their first one, and all others with `status`. */
void dynamodb_append_refuse_new(struct dynamodb_append_batch *batch, enum ledger_status status);

/* The same in a halted chat. */
void dynamodb_append_refuse_halted(struct dynamodb_append_batch *batch, bool is_sequence_taken);

#endif
