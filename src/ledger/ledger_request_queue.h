/*
 * A bounded queue of requests between the workers and the threads of a backend, fair among users.
 *
 * It has two lanes (ledger_lane.h), which take turns: one for messages and the server's own requests, one for
 * everything else that users ask for. So no amount of the latter delays a message by more than its turn. A request
 * that costs more than `slice_cost` is executed in slices: its taker does one slice, commits it and puts the request
 * back, so that what else waits is taken between any two slices. A chain of requests has about the cost of one slice.
 *
 * Many threads put, many take. A full queue refuses a request, and so does a user's share of it; the caller
 * answers with BUSY, so that a slow disk costs a bounded amount of memory and its callers fail fast. After
 * ledger_request_queue_close() the takers empty the queue and then end.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_REQUEST_QUEUE_H
#define ROLLCALL_LEDGER_LEDGER_REQUEST_QUEUE_H

#include "ledger/ledger_lane.h"

#include <pthread.h>

enum { LEDGER_LANES = 2 };

struct ledger_request_queue {
    pthread_mutex_t mutex;
    pthread_cond_t not_empty;
    struct ledger_lane lanes[LEDGER_LANES];
    unsigned next_lane;
    size_t count;
    size_t count_max;
    bool closed;
    _Atomic int64_t *gauge;       /* shows `count` */
    _Atomic uint64_t *over_share; /* counts what a user's share refused */
};

struct ledger_request_queue_options {
    size_t count_max;    /* a user has at most a quarter of it in each lane */
    uint64_t slice_cost; /* UINT64_MAX: no slices */
    uint64_t seed;       /* random */
    _Atomic int64_t *gauge;
    _Atomic uint64_t *over_share;
};

/* Returns false when out of memory. */
bool ledger_request_queue_init(struct ledger_request_queue *queue,
                               const struct ledger_request_queue_options *options);

/* The queue must be empty. */
void ledger_request_queue_destroy(struct ledger_request_queue *queue);

/* Returns false when the queue is full or closed, or the user's share is; the caller then keeps the request. */
bool ledger_request_queue_put(struct ledger_request_queue *queue, struct ledger_request *request);

/* Adds a request that was taken and of which a part remains, also when the queue is full or closed. Returns false when
 * there is no memory; the caller then keeps it. */
bool ledger_request_queue_put_back(struct ledger_request_queue *queue,
                                   struct ledger_request *request);

/* Waits for requests and detaches a chain of at most `count_max`. Returns NULL when the queue is closed and empty. */
struct ledger_request *ledger_request_queue_take(struct ledger_request_queue *queue,
                                                 size_t count_max);

/* Does the same without waiting. Returns NULL when there is none. */
struct ledger_request *ledger_request_queue_try_take(struct ledger_request_queue *queue,
                                                     size_t count_max);

void ledger_request_queue_close(struct ledger_request_queue *queue);

#endif
