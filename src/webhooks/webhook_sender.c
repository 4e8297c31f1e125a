#include "webhooks/webhook_sender.h"

#include <stdlib.h>

enum { LANES_PER_ENDPOINT = 3 };

/* What one endpoint gets. */
struct sender_endpoint {
    const struct webhook_endpoint *endpoint;
    struct webhook_lane best_effort;
    struct webhook_queue queue;
    struct webhook_queue undelivered;
    bool has_queue;
    bool has_undelivered;
};

struct webhook_sender {
    struct webhook_sender_parts parts;
    struct http_client *client;
    uint32_t types;
    struct sender_endpoint endpoints[];
};

/* ---- best effort ---- */

static void on_volatile_taken(void *arg, struct webhook_event *event)
{
    struct sender_endpoint *target = arg;
    webhook_lane_detach(&target->best_effort, event);
    webhook_event_free(&event);
}

static void on_volatile_given_up(void *arg, struct webhook_event *event)
{
    struct sender_endpoint *target = arg;
    metrics_count(target->best_effort.parts.metrics, METRIC_WEBHOOKS_DROPPED);
    on_volatile_taken(arg, event);
}

static void offer_to_endpoint(struct sender_endpoint *target, const struct ledger_event *event)
{
    struct webhook_lane *lane = &target->best_effort;
    struct webhook_event *copy = lane->count < WEBHOOK_VOLATILE_MAX
                                     ? webhook_event_make(event, lane->parts.loop->clock.now_ms)
                                     : NULL;
    if (!copy) {
        metrics_count(lane->parts.metrics, METRIC_WEBHOOKS_DROPPED);
        return;
    }
    webhook_lane_add(lane, copy, lane->events.prev);
    webhook_lane_pump(lane);
}

void webhook_sender_offer(struct webhook_sender *sender, const struct ledger_event *event)
{
    for (size_t i = 0; i < sender->parts.endpoints->count; i++)
        if (sender->endpoints[i].endpoint->types & (1u << event->type))
            offer_to_endpoint(&sender->endpoints[i], event);
}

bool webhook_sender_wants(const struct webhook_sender *sender, enum ledger_event_type type)
{
    return sender->types & (1u << type);
}

/* ---- life ---- */

static void init_sender_queue(struct webhook_sender *sender, struct webhook_queue *queue,
                              const struct webhook_endpoint *endpoint, const char *name,
                              struct state_store *store)
{
    const struct webhook_sender_parts *parts = &sender->parts;
    webhook_queue_init(queue, &(struct webhook_queue_parts){.config = parts->config,
                                                            .endpoint = endpoint,
                                                            .name = name,
                                                            .holder = parts->holder,
                                                            .loop = parts->loop,
                                                            .random = parts->random,
                                                            .metrics = parts->metrics,
                                                            .client = sender->client,
                                                            .ledger = parts->ledger,
                                                            .store = store});
}

static void init_sender_endpoint(struct webhook_sender *sender, struct sender_endpoint *target,
                                 const struct webhook_endpoint *endpoint)
{
    const struct webhook_sender_parts *parts = &sender->parts;
    target->endpoint = endpoint;
    webhook_lane_init(&target->best_effort,
                      &(struct webhook_lane_parts){.config = parts->config,
                                                   .endpoint = endpoint,
                                                   .loop = parts->loop,
                                                   .random = parts->random,
                                                   .metrics = parts->metrics,
                                                   .client = sender->client,
                                                   .on_taken = on_volatile_taken,
                                                   .on_given_up = on_volatile_given_up,
                                                   .arg = target,
                                                   .gathers = true});
    target->has_queue = parts->holds_queues && (endpoint->types & WEBHOOK_TYPES_DURABLE);
    target->has_undelivered = parts->holds_queues && (endpoint->types & WEBHOOK_TYPES_UNDELIVERED);
    init_sender_queue(sender, &target->queue, endpoint, endpoint->queue, NULL);
    init_sender_queue(sender, &target->undelivered, endpoint, endpoint->undelivered_queue,
                      parts->store);
}

struct webhook_sender *webhook_sender_make(const struct webhook_sender_parts *parts)
{
    size_t count = parts->endpoints->count;
    struct webhook_sender *sender =
        calloc(1, sizeof(*sender) + count * sizeof(struct sender_endpoint));
    if (!sender)
        return NULL;
    sender->parts = *parts;
    sender->types = webhook_endpoints_types(parts->endpoints);
    sender->client = http_client_make(parts->loop, count * LANES_PER_ENDPOINT);
    if (!sender->client) {
        free(sender);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        init_sender_endpoint(sender, &sender->endpoints[i], &parts->endpoints->items[i]);
    return sender;
}

void webhook_sender_start(struct webhook_sender *sender)
{
    for (size_t i = 0; i < sender->parts.endpoints->count; i++) {
        struct sender_endpoint *target = &sender->endpoints[i];
        webhook_lane_open(&target->best_effort);
        if (target->has_queue)
            webhook_queue_start(&target->queue);
        if (target->has_undelivered)
            webhook_queue_start(&target->undelivered);
    }
}

/* What waits for the end of its two seconds is not late. */
void webhook_sender_sample(struct webhook_sender *sender)
{
    uint64_t backlog = 0;
    int64_t oldest_ms = 0;
    for (size_t i = 0; i < sender->parts.endpoints->count; i++) {
        const struct sender_endpoint *target = &sender->endpoints[i];
        const struct webhook_lane *lanes[] = {&target->best_effort, &target->queue.lane};
        backlog += target->best_effort.count + webhook_queue_backlog(&target->queue) +
                   webhook_queue_backlog(&target->undelivered);
        for (size_t j = 0; j < sizeof(lanes) / sizeof(lanes[0]); j++) {
            int64_t time_ms = webhook_lane_oldest_ms(lanes[j]);
            if (time_ms && (!oldest_ms || time_ms < oldest_ms))
                oldest_ms = time_ms;
        }
    }
    int64_t age_ms = oldest_ms ? sender->parts.loop->clock.wall_ms - oldest_ms : 0;
    metrics_set(sender->parts.metrics, METRIC_WEBHOOKS_BACKLOG, (int64_t)backlog);
    metrics_set(sender->parts.metrics, METRIC_WEBHOOKS_OLDEST_AGE, age_ms > 0 ? age_ms : 0);
}

void webhook_sender_stop(struct webhook_sender *sender)
{
    for (size_t i = 0; i < sender->parts.endpoints->count; i++) {
        struct sender_endpoint *target = &sender->endpoints[i];
        metrics_add(sender->parts.metrics, METRIC_WEBHOOKS_DROPPED,
                    (int64_t)target->best_effort.count);
        webhook_lane_close(&target->best_effort);
        webhook_queue_stop(&target->queue);
        webhook_queue_stop(&target->undelivered);
    }
}

void webhook_sender_free(struct webhook_sender **sender)
{
    struct webhook_sender *freed = *sender;
    *sender = NULL;
    if (!freed)
        return;
    http_client_free(&freed->client);
    for (size_t i = 0; i < freed->parts.endpoints->count; i++) {
        webhook_lane_free(&freed->endpoints[i].best_effort);
        webhook_queue_free(&freed->endpoints[i].queue);
        webhook_queue_free(&freed->endpoints[i].undelivered);
    }
    free(freed);
}
