#include "ledger/ledger_request_queue.h"

#include <assert.h>

void ledger_request_queue_init(struct ledger_request_queue *queue, size_t count_max,
                               _Atomic int64_t *gauge)
{
    *queue = (struct ledger_request_queue){.count_max = count_max, .gauge = gauge};
    queue->last_next = &queue->first;
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->not_empty, NULL);
}

void ledger_request_queue_destroy(struct ledger_request_queue *queue)
{
    assert(!queue->first);
    pthread_cond_destroy(&queue->not_empty);
    pthread_mutex_destroy(&queue->mutex);
}

bool ledger_request_queue_put(struct ledger_request_queue *queue, struct ledger_request *request)
{
    pthread_mutex_lock(&queue->mutex);
    bool accepted = !queue->closed && queue->count < queue->count_max;
    if (accepted) {
        request->next = NULL;
        *queue->last_next = request;
        queue->last_next = &request->next;
        queue->count++;
        atomic_store_explicit(queue->gauge, (int64_t)queue->count, memory_order_relaxed);
        pthread_cond_signal(&queue->not_empty);
    }
    pthread_mutex_unlock(&queue->mutex);
    return accepted;
}

/* The caller holds the mutex. */
static struct ledger_request *detach_queue_front(struct ledger_request_queue *queue,
                                                 size_t count_max)
{
    struct ledger_request *chain = queue->first;
    struct ledger_request **end = &queue->first;
    while (*end && count_max > 0) {
        end = &(*end)->next;
        count_max--;
        queue->count--;
    }
    queue->first = *end;
    *end = NULL;
    if (!queue->first)
        queue->last_next = &queue->first;
    atomic_store_explicit(queue->gauge, (int64_t)queue->count, memory_order_relaxed);
    return chain;
}

struct ledger_request *ledger_request_queue_take(struct ledger_request_queue *queue,
                                                 size_t count_max)
{
    assert(count_max > 0);
    pthread_mutex_lock(&queue->mutex);
    while (!queue->first && !queue->closed)
        pthread_cond_wait(&queue->not_empty, &queue->mutex);
    struct ledger_request *chain = queue->first ? detach_queue_front(queue, count_max) : NULL;
    pthread_mutex_unlock(&queue->mutex);
    return chain;
}

struct ledger_request *ledger_request_queue_try_take(struct ledger_request_queue *queue,
                                                     size_t count_max)
{
    pthread_mutex_lock(&queue->mutex);
    struct ledger_request *chain =
        queue->first && count_max > 0 ? detach_queue_front(queue, count_max) : NULL;
    pthread_mutex_unlock(&queue->mutex);
    return chain;
}

void ledger_request_queue_close(struct ledger_request_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->closed = true;
    pthread_cond_broadcast(&queue->not_empty);
    pthread_mutex_unlock(&queue->mutex);
}
