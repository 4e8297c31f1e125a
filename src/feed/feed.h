/*
 * The feed carries MessagePersisted events from the message plane to fan-out. It is a port: the ledger's
 * own outbox (feed/local), or Kafka, does the work behind it.
 *
 * What every backend promises
 *   - feed_publish() runs its completion exactly once, possibly before it returns. `true` means that the
 *     event will reach a consumer at least once, even if a process crashes. `false` means that
 *     the outcome is unknown; the sender publishes again, and consumers tolerate duplicates.
 *   - The consumer (`on_item`) receives each event as an item, possibly before feed_publish() returns.
 *     The feed owns the item; the item lasts until feed_settle(). An item that was not settled when its
 *     process ended comes to a consumer again later.
 *   - An item settled as FEED_POISON is kept as a dead letter. FEED_DONE and FEED_SKIPPED end the event.
 *   - No order is promised: `sequence` orders the messages of a chat.
 *
 * Bounds: a backend holds a bounded number of events and refuses further ones.
 * Threading: one feed per worker, used on the worker's thread only.
 */
#ifndef ROLLCALL_FEED_FEED_H
#define ROLLCALL_FEED_FEED_H

#include "base/list.h"
#include "base/slice.h"
#include "base/ulid.h"
#include "base/wheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct feed;

/* MessagePersisted */
struct feed_event {
    struct slice chat;
    struct slice message_id;
    struct slice sender;
    struct slice body;
    uint64_t sequence;
    uint64_t members_version; /* of the chat when the message was stored; 0: unknown */
    int64_t sent_at_ms;
    bool has_except;
    struct ulid except; /* the sender's connection, which receives an acknowledgement instead */
};

/* How far the consumer is with an item. fanout.h draws how it moves from stage to stage. */
enum feed_item_stage {
    FEED_ITEM_ARRIVED,  /* waits for the chat's members; no read of them began since it arrived */
    FEED_ITEM_READING,  /* waits for the chat's members; the latest read began after it arrived */
    FEED_ITEM_SENDING,  /* passed to delivery, whose completion has not run yet */
    FEED_ITEM_RETRYING, /* waits for its timer */
};

/* An event under way. The feed sets `event` and `feed`. The other fields belong to the consumer from
 * `on_item` until feed_settle(). */
struct feed_item {
    struct feed_event event;
    struct feed *feed; /* borrowed */
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

/* Receives whether the event will reach a consumer. */
typedef void (*feed_publish_done)(void *arg, bool published);

/* Receives an item, which it ends with feed_settle(). */
typedef void (*feed_consumer)(void *arg, struct feed_item *item);

struct feed_operations {
    void (*publish)(struct feed *feed, const struct feed_event *event, feed_publish_done done,
                    void *arg);
    void (*settle)(struct feed *feed, struct feed_item *item, enum feed_result result,
                   const char *reason);
    bool (*available)(const struct feed *feed);
    size_t (*lag)(const struct feed *feed);
    void (*free)(struct feed *feed);
};

struct feed {
    const struct feed_operations *operations;
    feed_consumer on_item;
    void *on_item_arg;
};

/* Publishes an event, which is borrowed until this function returns. */
static inline void feed_publish(struct feed *feed, const struct feed_event *event,
                                feed_publish_done done, void *arg)
{
    feed->operations->publish(feed, event, done, arg);
}

/* Ends an item and gives it back to the feed. `reason` is copied; only FEED_POISON needs one. */
static inline void feed_settle(struct feed *feed, struct feed_item *item, enum feed_result result,
                               const char *reason)
{
    feed->operations->settle(feed, item, result, reason);
}

/* Returns whether the feed accepts events. */
static inline bool feed_available(const struct feed *feed)
{
    return feed->operations->available(feed);
}

/* Returns how many events were published and not settled. */
static inline size_t feed_lag(const struct feed *feed)
{
    return feed->operations->lag(feed);
}

/* Frees the feed after the ledger was closed. Events under way are dropped and replayed after the next
 * start. */
static inline void feed_free(struct feed **feed)
{
    struct feed *freed = *feed;
    *feed = NULL;
    if (freed)
        freed->operations->free(freed);
}

#endif
