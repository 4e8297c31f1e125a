#include "webhooks/webhook_queue.h"

#include "base/container.h"
#include "log/log.h"
#include "webhooks/webhook_undelivered.h"

static struct webhook_event *queue_event_of(struct list *item)
{
    return CONTAINER_OF(item, struct webhook_event, item);
}

static int64_t queue_now_ms(const struct webhook_queue *queue)
{
    return queue->parts.loop->clock.now_ms;
}

static struct slice queue_name(const struct webhook_queue *queue)
{
    return slice_of(queue->parts.name);
}

/* ---- removing ---- */

/* Moves the events of one state on to REMOVING. Returns how many there are; `positions` names them. */
static size_t begin_removal(struct webhook_queue *queue, enum webhook_event_state state,
                            struct slice positions[LEDGER_PAGE_MAX])
{
    size_t count = 0;
    struct list *events = &queue->lane.events;
    for (struct list *at = events->next; at != events && count < LEDGER_PAGE_MAX; at = at->next) {
        struct webhook_event *event = queue_event_of(at);
        if (event->state != state)
            continue;
        event->state = WEBHOOK_EVENT_REMOVING;
        positions[count++] = event->position;
    }
    return count;
}

/* Frees what was removed, or makes it what it was before. Returns how many there were. */
static size_t end_removal(struct webhook_queue *queue, bool removed,
                          enum webhook_event_state before)
{
    struct list *at = queue->lane.events.next;
    size_t count = 0;
    while (at != &queue->lane.events) {
        struct webhook_event *event = queue_event_of(at);
        at = at->next;
        if (event->state != WEBHOOK_EVENT_REMOVING)
            continue;
        count++;
        event->state = before;
        if (!removed)
            continue;
        webhook_lane_detach(&queue->lane, event);
        webhook_event_free(&event);
    }
    queue->is_removing = false;
    return count;
}

static void on_events_removed(void *arg, const struct ledger_change_outcome *outcome)
{
    struct webhook_queue *queue = arg;
    bool removed = outcome->status == LEDGER_OK;
    end_removal(queue, removed, WEBHOOK_EVENT_TAKEN);
    if (removed)
        webhook_queue_proceed(queue); /* else the timer tries again */
}

static void on_events_buried(void *arg, const struct ledger_change_outcome *outcome)
{
    struct webhook_queue *queue = arg;
    bool buried = outcome->status == LEDGER_OK;
    size_t count = end_removal(queue, buried, WEBHOOK_EVENT_GIVEN_UP);
    if (!buried)
        return;
    metrics_add(queue->parts.metrics, METRIC_WEBHOOKS_DEAD, (int64_t)count);
    log_error("webhook_given_up", "queue=%s events=%zu", queue->parts.name, count);
    webhook_queue_proceed(queue);
}

static void remove_settled_events(struct webhook_queue *queue)
{
    struct slice positions[LEDGER_PAGE_MAX];
    struct ledger_client *ledger = queue->parts.ledger;
    size_t count = begin_removal(queue, WEBHOOK_EVENT_TAKEN, positions);
    if (count) {
        queue->is_removing = true;
        ledger_events_remove(ledger, queue_name(queue), positions, count, on_events_removed, queue);
        return;
    }
    count = begin_removal(queue, WEBHOOK_EVENT_GIVEN_UP, positions);
    if (!count)
        return;
    queue->is_removing = true;
    ledger_events_bury(ledger, queue_name(queue), positions, count,
                       SLICE("not taken within webhooks.give_up_seconds"), on_events_buried, queue);
}

/* ---- listing ---- */

/* Returns the item from `at` on that has this position; the head if there is none. */
static struct list *find_position(struct webhook_queue *queue, struct list *at,
                                  struct slice position)
{
    while (at != &queue->lane.events && !slice_equal(queue_event_of(at)->position, position))
        at = at->next;
    return at;
}

/* Adds what is not there yet, and refreshes what is. Both are in the same order, except that events may have appeared late. */
static void merge_listed_events(struct webhook_queue *queue,
                                const struct ledger_events_outcome *outcome)
{
    struct list *at = queue->lane.events.next;
    for (size_t i = 0; i < outcome->count; i++) {
        struct list *found = find_position(queue, at, outcome->events[i].position);
        if (found != &queue->lane.events) {
            webhook_event_refresh(queue_event_of(found), &outcome->events[i], queue->listed_at_ms);
            at = found->next;
            continue;
        }
        struct webhook_event *event = webhook_event_make(&outcome->events[i], queue->listed_at_ms);
        if (!event)
            return; /* they are listed again */
        if (queue->parts.store)
            webhook_undelivered_prepare(queue, event);
        webhook_lane_add(&queue->lane, event, at->prev);
    }
}

static void on_events_listed(void *arg, const struct ledger_events_outcome *outcome)
{
    struct webhook_queue *queue = arg;
    queue->is_listing = false;
    queue->has_more = outcome->status == LEDGER_OK && outcome->has_more;
    if (queue->stopped || !queue->is_held || outcome->status != LEDGER_OK)
        return;
    merge_listed_events(queue, outcome);
    if (queue->parts.store)
        webhook_undelivered_resolve(queue);
    webhook_lane_pump(&queue->lane);
    webhook_queue_proceed(queue);
}

/* While the endpoint fails, events are listed for the metrics only. */
static bool is_listing_due(const struct webhook_queue *queue)
{
    int64_t now_ms = queue_now_ms(queue), age_ms = now_ms - queue->listed_at_ms;
    if (queue->lane.must_read)
        return age_ms >= WEBHOOK_TICK_MS_MAX;
    if (queue->lane.wait_until_ms > now_ms)
        return age_ms >= WEBHOOK_READ_AGE_MAX_MS;
    return queue->has_more || age_ms >= queue->parts.config->webhooks.batch_ms;
}

static void list_more_events(struct webhook_queue *queue)
{
    bool has_space = queue->lane.count <= WEBHOOK_WINDOW_MAX / 2;
    if (!queue->is_held || !is_listing_due(queue) || !(has_space || queue->lane.must_read))
        return;
    queue->is_listing = true;
    queue->listed_at_ms = queue_now_ms(queue);
    ledger_events_list(queue->parts.ledger, queue_name(queue), WEBHOOK_WINDOW_MAX, on_events_listed,
                       queue);
}

void webhook_queue_proceed(struct webhook_queue *queue)
{
    if (queue->stopped || queue->is_listing || queue->is_removing)
        return;
    remove_settled_events(queue);
    if (!queue->is_removing)
        list_more_events(queue);
}

/* ---- the lease ---- */

static void set_queue_held(struct webhook_queue *queue, bool is_held)
{
    if (queue->is_held == is_held)
        return;
    queue->is_held = is_held;
    queue->listed_at_ms = 0;
    log_info("webhook_queue", "queue=%s held=%s", queue->parts.name, is_held ? "true" : "false");
    if (is_held)
        webhook_lane_open(&queue->lane);
    else
        webhook_lane_close(&queue->lane);
}

static void note_queue_counts(struct webhook_queue *queue,
                              const struct ledger_event_queue_outcome *outcome)
{
    if (queue->knows_dropped && outcome->dropped > queue->dropped)
        metrics_add(queue->parts.metrics, METRIC_WEBHOOKS_DROPPED,
                    (int64_t)(outcome->dropped - queue->dropped));
    queue->dropped = outcome->dropped;
    queue->knows_dropped = true;
    queue->event_count = outcome->event_count;
}

static void note_lease_version(struct webhook_queue *queue, uint64_t version)
{
    if (queue->lease_version == version)
        return;
    queue->lease_version = version;
    queue->version_seen_at_ms = queue_now_ms(queue);
}

static void on_lease_taken(void *arg, const struct ledger_event_queue_outcome *outcome)
{
    struct webhook_queue *queue = arg;
    queue->is_leasing = false;
    if (queue->stopped || outcome->status != LEDGER_OK)
        return;
    note_lease_version(queue, outcome->lease_version);
    bool is_mine = slice_equal(outcome->holder, queue->parts.holder);
    if (is_mine) {
        note_queue_counts(queue, outcome);
        queue->renewed_at_ms = queue->lease_asked_at_ms;
    }
    set_queue_held(queue, is_mine);
    webhook_queue_proceed(queue);
}

static void take_queue_lease(struct webhook_queue *queue)
{
    queue->is_leasing = true;
    queue->lease_asked_at_ms = queue_now_ms(queue);
    ledger_event_lease(queue->parts.ledger, queue_name(queue), queue->parts.holder,
                       queue->lease_version, on_lease_taken, queue);
}

static void on_lease_seen(void *arg, const struct ledger_event_queue_outcome *outcome)
{
    struct webhook_queue *queue = arg;
    queue->is_leasing = false;
    if (queue->stopped || outcome->status != LEDGER_OK)
        return;
    note_lease_version(queue, outcome->lease_version);
    bool is_free = outcome->holder.len == 0 || slice_equal(outcome->holder, queue->parts.holder);
    if (is_free || queue_now_ms(queue) - queue->version_seen_at_ms >= LEDGER_EVENT_LEASE_MS)
        take_queue_lease(queue);
}

static void tend_queue_lease(struct webhook_queue *queue)
{
    int64_t now_ms = queue_now_ms(queue);
    if (queue->is_held && now_ms - queue->renewed_at_ms >= WEBHOOK_LEASE_LOST_MS)
        set_queue_held(queue, false);
    if (queue->is_leasing)
        return;
    if (queue->is_held && now_ms - queue->renewed_at_ms >= WEBHOOK_LEASE_RENEW_MS) {
        take_queue_lease(queue);
    } else if (!queue->is_held && now_ms - queue->lease_asked_at_ms >= WEBHOOK_LEASE_LOOK_MS) {
        queue->is_leasing = true;
        queue->lease_asked_at_ms = now_ms;
        ledger_event_queue_get(queue->parts.ledger, queue_name(queue), on_lease_seen, queue);
    }
}

/* ---- life ---- */

static void on_queue_timer(struct wheel_timer *timer)
{
    struct webhook_queue *queue = CONTAINER_OF(timer, struct webhook_queue, timer);
    int64_t period_ms = queue->parts.config->webhooks.batch_ms;
    if (queue->stopped)
        return;
    tend_queue_lease(queue);
    if (queue->parts.store)
        webhook_undelivered_resolve(queue);
    webhook_queue_proceed(queue);
    loop_set_timer(queue->parts.loop, timer,
                   queue_now_ms(queue) +
                       (period_ms < WEBHOOK_TICK_MS_MAX ? period_ms : WEBHOOK_TICK_MS_MAX));
}

/* What was taken stays in the lane until it is removed from the ledger. */
static void on_queue_event_settled(void *arg, struct webhook_event *event)
{
    (void)arg, (void)event;
}

static void on_queue_batch_settled(void *arg)
{
    webhook_queue_proceed(arg);
}

void webhook_queue_init(struct webhook_queue *queue, const struct webhook_queue_parts *parts)
{
    *queue = (struct webhook_queue){.parts = *parts,
                                    .timer.fire = on_queue_timer,
                                    .lease_version = UINT64_MAX,
                                    .lease_asked_at_ms = INT64_MIN / 2};
    webhook_lane_init(&queue->lane,
                      &(struct webhook_lane_parts){.config = parts->config,
                                                   .endpoint = parts->endpoint,
                                                   .loop = parts->loop,
                                                   .random = parts->random,
                                                   .metrics = parts->metrics,
                                                   .client = parts->client,
                                                   .on_taken = on_queue_event_settled,
                                                   .on_given_up = on_queue_event_settled,
                                                   .on_settled = on_queue_batch_settled,
                                                   .arg = queue});
}

void webhook_queue_start(struct webhook_queue *queue)
{
    on_queue_timer(&queue->timer);
}

void webhook_queue_stop(struct webhook_queue *queue)
{
    queue->stopped = true;
    loop_cancel_timer(queue->parts.loop, &queue->timer);
    webhook_lane_close(&queue->lane);
}

void webhook_queue_free(struct webhook_queue *queue)
{
    webhook_lane_free(&queue->lane);
}

uint64_t webhook_queue_backlog(const struct webhook_queue *queue)
{
    if (!queue->is_held)
        return 0;
    return queue->event_count == UINT64_MAX || queue->event_count < queue->lane.count
               ? queue->lane.count
               : queue->event_count;
}
