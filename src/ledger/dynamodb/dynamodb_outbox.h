/*
 * The outbox on DynamoDB: items that refer to messages, in DYNAMODB_OUTBOX_SHARDS queues by the chat, so that no single
 * partition takes all writes. Within a queue they are ordered by the time at which they were sent.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_OUTBOX_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_OUTBOX_H

#include "ledger/dynamodb/client/dynamodb_item.h"

/* All processes must use the same number. */
enum { DYNAMODB_OUTBOX_SHARDS = 16 };

struct dynamodb_key dynamodb_outbox_key(struct dynamodb_task *task, struct slice chat,
                                        uint64_t sequence, int64_t sent_at_ms);

#endif
