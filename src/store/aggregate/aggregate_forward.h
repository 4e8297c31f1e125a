/*
 * Forwards one operation of a port to an aggregator and its outcome to the caller: the one mechanism of all stores here.
 *
 * A store's operation fills in its arguments and calls aggregate_forward() with a function that completes it. That one gets
 * the outcome, or NULL with the reason that there is none, and runs the caller's completion, whose type it knows.
 */
#ifndef ROLLCALL_STORE_AGGREGATE_AGGREGATE_FORWARD_H
#define ROLLCALL_STORE_AGGREGATE_AGGREGATE_FORWARD_H

#include "aggregate/aggregate_client.h"
#include "store/aggregate/aggregate_codec.h"

/* Any completion of a port; the function that completes casts it back to its own type. */
typedef void (*aggregate_any_done)(void);

struct aggregate_forwarded {
    enum aggregate_operation operation;
    /* Without an outcome: STATE_UNAVAILABLE, nothing was done; STATE_UNKNOWN, it may have been (never of a read). */
    enum state_status status;
    struct slice user_id; /* as given to aggregate_forward() */
    aggregate_any_done done;
    void *arg;
};

/* `outcome` is NULL when there is none. Both are valid until it returns. */
typedef void (*aggregate_complete)(const struct aggregate_forwarded *forwarded,
                                   const union aggregate_outcome *outcome);

/* The slot of an id, as Redis Cluster computes it. */
uint16_t aggregate_slot_of(struct slice id);

/* Sends the operation to the aggregator of `slot_id`'s slot. `user_id` is kept for the completion. `complete` runs exactly
 * once, possibly before this returns; NULL: nobody wants to know. */
void aggregate_forward(struct aggregate_client *client, struct slice slot_id,
                       enum aggregate_operation operation,
                       const union aggregate_arguments *arguments, struct slice user_id,
                       aggregate_complete complete, aggregate_any_done done, void *arg);

/* The same to one aggregator. */
void aggregate_forward_to(struct aggregate_client *client, size_t aggregator,
                          enum aggregate_operation operation,
                          const union aggregate_arguments *arguments, aggregate_complete complete,
                          aggregate_any_done done, void *arg);

#endif
