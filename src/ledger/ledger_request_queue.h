/*
 * A bounded queue of requests between the workers and the threads of a backend, fair among users.
 *
 * It has two lanes (ledger_lane.h), which take turns: one for messages and the server's own requests, one for
 * everything else that users ask for. So no amount of the latter delays a message by more than its turn. A large
 * request, one that costs more than `large_cost`, is taken alone: what else waits is taken, and its transaction
 * committed, between any two large ones. Nor does a chain of requests name more ids than a large one.
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
    struct ledger_request *large; /* taken from its lane; it leaves alone */
    bool large_is_next;
    uint64_t large_cost; /* UINT64_MAX: none is large */
    size_t count;
    size_t count_max;
    bool closed;
    _Atomic int64_t *gauge;       /* shows `count` */
    _Atomic uint64_t *over_share; /* counts what a user's share refused */
};

struct ledger_request_queue_options {
    size_t count_max; /* a user has at most a quarter of it in each lane */
    uint64_t large_cost;
    uint64_t seed; /* random */
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

/* Waits for requests and detaches a chain of at most `count_max`, or one large request. Returns NULL when the queue
 * is closed and empty. */
struct ledger_request *ledger_request_queue_take(struct ledger_request_queue *queue,
                                                 size_t count_max);

/* Does the same without waiting, and takes no large request. Returns NULL when there is none. */
struct ledger_request *ledger_request_queue_try_take(struct ledger_request_queue *queue,
                                                     size_t count_max);

void ledger_request_queue_close(struct ledger_request_queue *queue);

#endif
