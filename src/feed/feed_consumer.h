/*
 * The consuming half of the feed (feed_event.h): hands events to fan-out as items.
 *
 * What every backend promises
 *   - `on_item` receives each event as an item. The consumer owns the item; the item lasts until
 *     feed_settle(). An item that was not settled when its process ended comes to some consumer again later.
 *   - An item settled as FEED_POISON is kept as a dead letter. FEED_DONE and FEED_SKIPPED end the event.
 *   - It holds a bounded number of items.
 *
 * Threading: used on one thread only. Who made it frees it, with the backend's function.
 */
#ifndef ROLLCALL_FEED_FEED_CONSUMER_H
#define ROLLCALL_FEED_FEED_CONSUMER_H

#include "base/list.h"
#include "base/wheel.h"
#include "feed/feed_event.h"

#include <stddef.h>

struct feed_consumer;

/* How far fan-out is with an item. fanout.h draws how it moves from stage to stage. */
enum feed_item_stage {
    FEED_ITEM_ARRIVED,  /* waits for the chat's members; no read of them began since it arrived */
    FEED_ITEM_READING,  /* waits for the chat's members; the latest read began after it arrived */
    FEED_ITEM_SENDING,  /* passed to delivery, whose completion has not run yet */
    FEED_ITEM_RETRYING, /* waits for its timer */
};

/* An event under way. The consumer sets `event` and `consumer`. The other fields belong to fan-out from
 * `on_item` until feed_settle(). */
struct feed_item {
    struct feed_event event;
    struct feed_consumer *consumer; /* borrowed */
    struct list link;
    struct wheel_timer timer;
    uint32_t attempts;
    enum feed_item_stage stage;
};

enum feed_result {
    FEED_DONE,
    FEED_SKIPPED, /* the attempts are used up; clients get the message when they sync */
    FEED_POISON,  /* no attempt can ever succeed */
};

/* Receives an item, which it ends with feed_settle(). */
typedef void (*feed_item_handler)(void *arg, struct feed_item *item);

struct feed_consumer_operations {
    void (*settle)(struct feed_item *item, enum feed_result result, const char *reason);
    size_t (*lag)(const struct feed_consumer *consumer);
};

struct feed_consumer {
    const struct feed_consumer_operations *operations;
    feed_item_handler on_item;
    void *on_item_arg;
    size_t
        under_way; /* items that this process holds, the settled ones included until the feed forgot them */
};

/* Ends an item and gives it back to its consumer. `reason` is copied; only FEED_POISON needs one. */
static inline void feed_settle(struct feed_item *item, enum feed_result result, const char *reason)
{
    item->consumer->operations->settle(item, result, reason);
}

/* Returns how many events were published and not settled, as far as the consumer knows. */
static inline size_t feed_lag(const struct feed_consumer *consumer)
{
    return consumer->operations->lag(consumer);
}

#endif
