/*
 * The bound of a queue of events (ledger_event_queue.count_max) on DynamoDB.
 *
 * A count that every act changes would be where all acts meet. So one event of DYNAMODB_EVENT_SAMPLE, by chance, has a sample: an
 * item in a partition of its own, written and removed with the event. Their number tells about how many events wait, and the
 * place of one of them tells where the surplus ends. Who holds the queue reads them every DYNAMODB_EVENT_BOUND_RENEWALS renewals of
 * its lease, and at each one while there is a surplus, and removes the oldest events, which are counted as dropped.
 *
 * So the bound is not exact: it is held up to the chance of the samples (of a million events about a percent) and to what comes
 * within a minute.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_EVENT_BOUND_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_EVENT_BOUND_H

#include "ledger/dynamodb/dynamodb_operations.h"

enum {
    DYNAMODB_EVENT_SAMPLE = 64,            /* a power of two, at most 256 */
    DYNAMODB_EVENT_BOUND_RENEWALS = 32,    /* about a minute */
    DYNAMODB_EVENT_DROPS_MAX = 500,        /* of one shard at one renewal */
    DYNAMODB_EVENT_SAMPLES_SURPLUS = 1024, /* that are read beyond those of a full queue */
};

/* Returns whether the event at this position has a sample. */
bool dynamodb_event_has_sample(struct slice position);

struct dynamodb_key dynamodb_event_sample_key(struct dynamodb_task *task, struct slice queue,
                                              struct slice position);

/* Removes the surplus, if it is time to look for one; `lease` is the item of the queue's lease, of which the request's user is the
 * holder. */
void dynamodb_event_bound_hold(struct dynamodb_task *task, struct slice queue, uint32_t count_max,
                               const struct dynamodb_item *lease);

#endif
