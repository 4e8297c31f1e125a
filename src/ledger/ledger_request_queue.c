#include "ledger/ledger_request_queue.h"

#include <assert.h>

enum { LANE_MESSAGES, LANE_OTHERS, USER_SHARE = 4 };

bool ledger_request_queue_init(struct ledger_request_queue *queue,
                               const struct ledger_request_queue_options *options)
{
    *queue = (struct ledger_request_queue){.count_max = options->count_max,
                                           .gauge = options->gauge,
                                           .over_share = options->over_share};
    size_t user_count_max = (options->count_max + USER_SHARE - 1) / USER_SHARE;
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->not_empty, NULL);
    bool made = true;
    for (unsigned i = 0; i < LEDGER_LANES; i++)
        made &= ledger_lane_init(&queue->lanes[i], user_count_max, options->slice_cost,
                                 options->seed + i);
    if (!made)
        ledger_request_queue_destroy(queue);
    return made;
}

void ledger_request_queue_destroy(struct ledger_request_queue *queue)
{
    assert(queue->count == 0);
    for (unsigned i = 0; i < LEDGER_LANES; i++)
        ledger_lane_free(&queue->lanes[i]);
    pthread_cond_destroy(&queue->not_empty);
    pthread_mutex_destroy(&queue->mutex);
}

static struct ledger_lane *find_request_lane(struct ledger_request_queue *queue,
                                             const struct ledger_request *request)
{
    bool is_first =
        request->operation == LEDGER_MESSAGE_APPEND || ledger_request_user(request).len == 0;
    return &queue->lanes[is_first ? LANE_MESSAGES : LANE_OTHERS];
}

/* The caller holds the mutex. */
static void set_queue_count(struct ledger_request_queue *queue, size_t count)
{
    queue->count = count;
    atomic_store_explicit(queue->gauge, (int64_t)count, memory_order_relaxed);
}

bool ledger_request_queue_put(struct ledger_request_queue *queue, struct ledger_request *request)
{
    enum ledger_lane_refusal refusal = LEDGER_LANE_FULL;
    pthread_mutex_lock(&queue->mutex);
    if (!queue->closed && queue->count < queue->count_max)
        refusal = ledger_lane_put(find_request_lane(queue, request), request);
    if (refusal == LEDGER_LANE_TAKEN) {
        set_queue_count(queue, queue->count + 1);
        pthread_cond_signal(&queue->not_empty);
    }
    pthread_mutex_unlock(&queue->mutex);
    if (refusal == LEDGER_LANE_OVER_SHARE)
        ledger_count(queue->over_share);
    return refusal == LEDGER_LANE_TAKEN;
}

bool ledger_request_queue_put_back(struct ledger_request_queue *queue,
                                   struct ledger_request *request)
{
    pthread_mutex_lock(&queue->mutex);
    bool kept = ledger_lane_put_back(find_request_lane(queue, request), request);
    if (kept) {
        set_queue_count(queue, queue->count + 1);
        pthread_cond_signal(&queue->not_empty);
    }
    pthread_mutex_unlock(&queue->mutex);
    return kept;
}

/* Detaches a request, the lanes taking turns. */
static struct ledger_request *take_next_request(struct ledger_request_queue *queue, bool others_too)
{
    for (unsigned i = 0; i < LEDGER_LANES; i++) {
        unsigned at = queue->next_lane;
        queue->next_lane = (queue->next_lane + 1) % LEDGER_LANES;
        if (at == LANE_OTHERS && !others_too)
            continue;
        struct ledger_request *request = ledger_lane_take(&queue->lanes[at]);
        if (request)
            return request;
    }
    return NULL;
}

/* The caller holds the mutex. */
static struct ledger_request *take_queue_chain(struct ledger_request_queue *queue, size_t count_max)
{
    const struct ledger_lane *others = &queue->lanes[LANE_OTHERS];
    struct ledger_request *chain = NULL, **end = &chain;
    size_t count = 0;
    uint64_t ids = 0;
    while (count < count_max && (*end = take_next_request(queue, ids + 1 < others->slice_cost))) {
        ids += ledger_lane_price(others, *end) - 1;
        end = &(*end)->next;
        count++;
    }
    set_queue_count(queue, queue->count - count);
    return chain;
}

struct ledger_request *ledger_request_queue_take(struct ledger_request_queue *queue,
                                                 size_t count_max)
{
    assert(count_max > 0);
    pthread_mutex_lock(&queue->mutex);
    while (queue->count == 0 && !queue->closed)
        pthread_cond_wait(&queue->not_empty, &queue->mutex);
    struct ledger_request *chain = take_queue_chain(queue, count_max);
    pthread_mutex_unlock(&queue->mutex);
    return chain;
}

struct ledger_request *ledger_request_queue_try_take(struct ledger_request_queue *queue,
                                                     size_t count_max)
{
    pthread_mutex_lock(&queue->mutex);
    struct ledger_request *chain = take_queue_chain(queue, count_max);
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
