/*
 * Events of an act among the writes of its transaction (dynamodb_events.c has the operations on queues of events).
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_EVENTS_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_EVENTS_H

#include "ledger/dynamodb/client/dynamodb_write.h"
#include "ledger/ledger_event_derive.h"

enum {
    DYNAMODB_EVENT_SHARDS = 4,    /* partitions of one queue */
    DYNAMODB_EVENT_ITEMS_MAX = 2, /* of one event: itself and its sample (dynamodb_event_bound.h) */
    DYNAMODB_EVENT_WRITES_MAX =
        LEDGER_EVENTS_OF_REQUEST_MAX * LEDGER_EVENT_QUEUES_MAX * DYNAMODB_EVENT_ITEMS_MAX,
};

/* Where events of one subject and millisecond stand among each other: messages by their sequence. */
struct dynamodb_event_order {
    int64_t time_ms; /* of a chat it never decreases */
    uint64_t sequence;
};

/* The partition of one shard of a queue, and the item of its lease. */
struct slice dynamodb_event_shard(struct dynamodb_task *task, struct slice queue, unsigned shard);
struct dynamodb_key dynamodb_event_lease_key(struct slice queue);

/* Returns how many writes dynamodb_events_add() makes for a message at most. */
unsigned dynamodb_events_of_message(const struct ledger_request *request);

/* Adds the events of a request, whose outcome is set as if the transaction had succeeded. */
void dynamodb_events_add(struct dynamodb_transaction *transaction, struct ledger_request *request,
                         struct dynamodb_event_order order);

/* The same for an act that has no order of its own. */
static inline void dynamodb_events_add_now(struct dynamodb_transaction *transaction)
{
    struct ledger_request *request = transaction->task->request;
    if (request->input.queue_count)
        dynamodb_events_add(transaction, request,
                            (struct dynamodb_event_order){.time_ms = request->wall_ms});
}

#endif
