#include "feed/local/local_feed.h"

#include "base/container.h"
#include "log/log.h"

#include <stdlib.h>

struct local_feed {
    struct feed_producer producer;
    struct feed_consumer consumer;
    struct local_feed_options options;
    struct list removing;  /* settled items whose removal from the outbox is in flight */
    struct list removable; /* settled items that wait for it */
    struct list under_way; /* all items, the oldest first */
    bool stopped;
    bool listing;    /* a read of the outbox is in flight */
    bool peeking;    /* it reads one message only, to learn whether that is old */
    size_t replayed; /* items of the last page that have not ended */
    bool page_has_more;
    bool page_failed; /* a message of the page stayed in the outbox */
    bool swept;       /* the replay at the start is over: only old messages are replayed */
    int64_t sweep_at_ms;
    int64_t dead_letters_at_ms; /* when they are counted next */
    int64_t dead_letters;
};

struct local_item {
    struct feed_item item;
    struct list under_way;
    bool replayed;
    char bytes[];
};

static struct local_feed *local_feed_of(const struct local_item *item)
{
    return CONTAINER_OF(item->item.consumer, struct local_feed, consumer);
}

static struct local_item *local_item_of(struct list *link)
{
    return CONTAINER_OF(CONTAINER_OF(link, struct feed_item, link), struct local_item, item);
}

static void replay_outbox(struct local_feed *self, uint32_t limit);

/* ---- items ---- */

static struct local_item *make_local_item(struct local_feed *self, const struct feed_event *event)
{
    size_t bytes = event->chat.len + event->message_id.len + event->sender.len + event->body.len;
    struct local_item *made = calloc(1, sizeof(*made) + bytes);
    if (!made)
        return NULL;
    char *at = made->bytes;
    made->item.consumer = &self->consumer;
    made->item.event = *event;
    made->item.event.chat = slice_copy_to(&at, event->chat);
    made->item.event.message_id = slice_copy_to(&at, event->message_id);
    made->item.event.sender = slice_copy_to(&at, event->sender);
    made->item.event.body = slice_copy_to(&at, event->body);
    list_init(&made->item.link);
    list_append(&self->under_way, &made->under_way);
    self->consumer.under_way++;
    return made;
}

/* Frees an item that is in no list, or in a list that its caller clears. */
static void end_local_item(struct local_item *ended, bool left_outbox)
{
    struct local_feed *self = local_feed_of(ended);
    self->consumer.under_way--;
    list_remove(&ended->under_way);
    if (ended->replayed) {
        self->page_failed |= !left_outbox;
        self->replayed--;
    }
    free(ended);
    if (self->replayed == 0 && self->page_has_more && !self->page_failed && !self->listing)
        replay_outbox(self, self->options.replay_page);
}

static void end_local_items(struct list *items, bool left_outbox)
{
    struct list *at = items->next;
    while (at != items) {
        struct local_item *item = local_item_of(at);
        at = at->next;
        end_local_item(item, left_outbox);
    }
    list_init(items);
}

/* ---- leaving the outbox ---- */

static void remove_settled_items(struct local_feed *self);

static void on_outbox_removed(void *arg, const struct ledger_change_outcome *outcome)
{
    struct local_feed *self = arg;
    bool left_outbox = outcome->status == LEDGER_OK;
    if (!left_outbox)
        log_warn("outbox_removal_failed", "status=%s", ledger_status_name(outcome->status));
    end_local_items(&self->removing, left_outbox);
    remove_settled_items(self);
}

/* Removes one batch at a time; items that are settled meanwhile form the next one. */
static void remove_settled_items(struct local_feed *self)
{
    struct ledger_position positions[LEDGER_OUTBOX_BATCH_MAX];
    size_t count = 0;
    if (self->stopped || !list_empty(&self->removing))
        return;
    while (!list_empty(&self->removable) && count < LEDGER_OUTBOX_BATCH_MAX) {
        struct feed_item *item = &local_item_of(self->removable.next)->item;
        list_remove(&item->link);
        list_append(&self->removing, &item->link);
        positions[count++] = (struct ledger_position){item->event.chat, item->event.sequence,
                                                      item->event.sent_at_ms};
    }
    if (count)
        ledger_outbox_remove(self->options.ledger, positions, count, on_outbox_removed, self);
}

static void on_dead_letter_stored(void *arg, const struct ledger_change_outcome *outcome)
{
    struct local_item *item = arg;
    struct local_feed *self = local_feed_of(item);
    if (outcome->status == LEDGER_OK) {
        metrics_count(self->options.metrics, METRIC_FANOUT_DEAD_LETTERS);
        metrics_set(self->options.metrics, METRIC_FANOUT_DLQ_DEPTH, ++self->dead_letters);
    }
    end_local_item(item, outcome->status == LEDGER_OK);
}

static void local_feed_settle(struct feed_item *item, enum feed_result result, const char *reason)
{
    struct local_item *settled = CONTAINER_OF(item, struct local_item, item);
    struct local_feed *self = local_feed_of(settled);
    const struct feed_event *event = &item->event;
    list_remove(&item->link);
    if (self->stopped || result != FEED_POISON) {
        list_append(&self->removable, &item->link);
        remove_settled_items(self);
        return;
    }
    log_error("poison_event", "chat=%s sequence=%llu reason=%s", log_quote(event->chat),
              (unsigned long long)event->sequence, log_sentence(slice_of(reason)));
    ledger_dead_letter_put(self->options.ledger, event->chat, event->sequence, slice_of(reason),
                           on_dead_letter_stored, settled);
}

/* ---- publishing ---- */

static bool local_feed_available(const struct feed_producer *producer)
{
    const struct local_feed *self = CONTAINER_OF(producer, struct local_feed, producer);
    return !self->stopped && self->consumer.under_way < LOCAL_FEED_EVENTS_MAX;
}

static void local_feed_publish(struct feed_producer *producer, const struct feed_event *event,
                               int64_t deadline_ms, feed_publish_done done, void *arg)
{
    (void)deadline_ms; /* it is complete before this function returns */
    struct local_feed *self = CONTAINER_OF(producer, struct local_feed, producer);
    struct local_item *made = local_feed_available(producer) ? make_local_item(self, event) : NULL;
    if (made)
        self->consumer.on_item(self->consumer.on_item_arg, &made->item);
    done(arg, made != NULL);
}

static size_t local_feed_lag(const struct feed_consumer *consumer)
{
    return consumer->under_way;
}

/* ---- replaying ---- */

static void replay_outbox_message(struct local_feed *self, const struct ledger_message *message)
{
    struct feed_event event = {
        .chat = message->chat,
        .message_id = message->id,
        .sender = message->sender,
        .body = message->body,
        .sequence = message->sequence,
        .sent_at_ms = message->sent_at_ms,
    };
    struct local_item *made = make_local_item(self, &event);
    if (!made) {
        self->page_failed = true;
        return;
    }
    made->replayed = true;
    self->replayed++;
    self->consumer.on_item(self->consumer.on_item_arg, &made->item);
}

/* Returns whether a message is so recent that it may still be under way. A message from far in the future
 * was sent before the clock was set back; it counts as old, or it would delay everything behind it. */
static bool outbox_message_may_be_under_way(const struct local_feed *self,
                                            const struct ledger_message *message)
{
    int64_t age_ms = self->options.ledger->clock->wall_ms - message->sent_at_ms;
    if (age_ms <= -LOCAL_FEED_SWEEP_AGE_MS)
        return false;
    if (!self->swept && !self->options.shared)
        return message->sent_at_ms >= self->options.started_at_ms;
    return age_ms <= LOCAL_FEED_SWEEP_AGE_MS;
}

/* Reads a page if the oldest message of the outbox is not under way. */
static void on_outbox_peeked(struct local_feed *self, const struct ledger_messages_outcome *outcome)
{
    bool is_old = outcome->count && !outbox_message_may_be_under_way(self, &outcome->messages[0]);
    self->listing = false;
    self->swept |= outcome->status == LEDGER_OK && !is_old;
    if (is_old)
        replay_outbox(self, self->options.replay_page);
}

static void on_outbox_listed(void *arg, const struct ledger_messages_outcome *outcome)
{
    struct local_feed *self = arg;
    size_t old = 0;
    if (self->stopped)
        return;
    if (self->peeking) {
        on_outbox_peeked(self, outcome);
        return;
    }
    self->page_has_more = outcome->has_more;
    self->page_failed = outcome->status != LEDGER_OK;
    for (; old < outcome->count; old++) {
        if (outbox_message_may_be_under_way(self, &outcome->messages[old])) {
            self->page_has_more = false;
            break;
        }
        replay_outbox_message(self, &outcome->messages[old]);
    }
    self->listing = false;
    self->swept |= outcome->status == LEDGER_OK && !self->page_has_more;
    if (old)
        log_info("outbox_replayed", "messages=%zu more=%d", old, self->page_has_more);
    if (old && self->replayed == 0 && self->page_has_more && !self->page_failed)
        replay_outbox(self, self->options.replay_page);
}

/* `limit` 1: only looks whether there is something to replay. */
static void replay_outbox(struct local_feed *self, uint32_t limit)
{
    uint64_t spread_ms = LOCAL_FEED_SWEEP_INTERVAL_MS / 2;
    if (self->stopped || self->listing || self->replayed)
        return;
    self->listing = true;
    self->peeking = limit == 1;
    self->sweep_at_ms = self->options.ledger->clock->now_ms + (int64_t)spread_ms +
                        (int64_t)random_below(self->options.random, spread_ms + 1);
    ledger_outbox_list(self->options.ledger, limit, on_outbox_listed, self);
}

static void on_dead_letters_listed(void *arg, const struct ledger_dead_letters_outcome *outcome)
{
    struct local_feed *self = arg;
    if (outcome->status != LEDGER_OK)
        return;
    self->dead_letters = (int64_t)outcome->count;
    metrics_set(self->options.metrics, METRIC_FANOUT_DLQ_DEPTH, self->dead_letters);
}

/* Returns whether messages of this feed itself have been under way for long. */
static bool is_local_feed_behind(const struct local_feed *self)
{
    if (list_empty(&self->under_way))
        return false;
    const struct local_item *oldest =
        CONTAINER_OF(self->under_way.next, struct local_item, under_way);
    return self->options.ledger->clock->wall_ms - oldest->item.event.sent_at_ms >
           LOCAL_FEED_SWEEP_AGE_MS;
}

void local_feed_tick(struct local_feed *self)
{
    int64_t now_ms = self->options.ledger->clock->now_ms;
    if (!self->options.replays || self->stopped)
        return;
    if (now_ms >= self->dead_letters_at_ms) {
        self->dead_letters_at_ms = now_ms + LOCAL_FEED_DEAD_LETTERS_INTERVAL_MS;
        ledger_dead_letters_list(self->options.ledger, 0, on_dead_letters_listed, self);
    }
    if (now_ms >= self->sweep_at_ms && !is_local_feed_behind(self))
        replay_outbox(self, 1);
}

void local_feed_stop(struct local_feed *self)
{
    self->stopped = true;
}

/* ---- life ---- */

void local_feed_free(struct local_feed **feed)
{
    struct local_feed *self = *feed;
    *feed = NULL;
    if (!self)
        return;
    self->page_has_more = false;
    end_local_items(&self->removing, false);
    end_local_items(&self->removable, false);
    free(self);
}

struct feed_producer *local_feed_producer(struct local_feed *self)
{
    return &self->producer;
}

struct feed_consumer *local_feed_consumer(struct local_feed *self)
{
    return &self->consumer;
}

static const struct feed_producer_operations PRODUCER = {
    .publish = local_feed_publish,
    .available = local_feed_available,
};

static const struct feed_consumer_operations CONSUMER = {
    .settle = local_feed_settle,
    .lag = local_feed_lag,
};

struct local_feed *local_feed_make(const struct local_feed_options *options,
                                   feed_item_handler on_item, void *arg)
{
    struct local_feed *self = calloc(1, sizeof(*self));
    if (!self)
        return NULL;
    self->producer = (struct feed_producer){.operations = &PRODUCER, .uses_outbox = true};
    self->consumer =
        (struct feed_consumer){.operations = &CONSUMER, .on_item = on_item, .on_item_arg = arg};
    self->options = *options;
    self->sweep_at_ms = options->ledger->clock->now_ms + LOCAL_FEED_START_DELAY_MS;
    list_init(&self->under_way);
    list_init(&self->removing);
    list_init(&self->removable);
    return self;
}
