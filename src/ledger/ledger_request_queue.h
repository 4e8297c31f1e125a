/*
 * A bounded queue of requests between the workers and the threads of a backend.
 *
 * Many threads put, many take. A full queue refuses a request, which the caller then answers with BUSY, so
 * that a slow disk costs a bounded amount of memory and its callers fail fast. After
 * ledger_request_queue_close() the takers empty the queue and then end.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_REQUEST_QUEUE_H
#define ROLLCALL_LEDGER_LEDGER_REQUEST_QUEUE_H

#include "ledger/ledger_request.h"

#include <pthread.h>

struct ledger_request_queue {
    pthread_mutex_t mutex;
    pthread_cond_t not_empty;
    struct ledger_request *first;
    struct ledger_request **last_next;
    size_t count;
    size_t count_max;
    bool closed;
    _Atomic int64_t *gauge; /* shows `count` */
};

void ledger_request_queue_init(struct ledger_request_queue *queue, size_t count_max,
                               _Atomic int64_t *gauge);

/* The queue must be empty. */
void ledger_request_queue_destroy(struct ledger_request_queue *queue);

/* Returns false when the queue is full or closed; the caller then keeps the request. */
bool ledger_request_queue_put(struct ledger_request_queue *queue, struct ledger_request *request);

/* Waits for requests and detaches a chain of at most `count_max`. Returns NULL when the queue is closed and
 * empty. */
struct ledger_request *ledger_request_queue_take(struct ledger_request_queue *queue,
                                                 size_t count_max);

/* Does the same without waiting. Returns NULL when the queue is empty. */
struct ledger_request *ledger_request_queue_try_take(struct ledger_request_queue *queue,
                                                     size_t count_max);

void ledger_request_queue_close(struct ledger_request_queue *queue);

#endif
