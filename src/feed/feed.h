/*
 * The feed carries MessagePersisted events from the durability plane to the fan-out plane: the port
 * behind which the ledger's own outbox, or Kafka, does the work.
 *
 * Promises
 *   - feed_publish() answers exactly once, also before it returns. `true` means that the event will
 *     reach a consumer at least once, crashes included. `false` means that this is not known; the
 *     sender asks again, and duplicates are the consumer's to bear.
 *   - Each event is given to `consume` as an item, which is the feed's and lasts until feed_settle().
 *     What was not settled when the process ended comes again.
 *   - An event that was settled as POISON is kept as a dead letter; FEED_DONE and FEED_SKIPPED end it.
 *
 * Bounded: no more than the backend's bound of events are under way; further ones are refused.
 * One port per worker, one thread.
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

/* MessagePersisted */
struct feed_event {
    struct slice chat;
    struct slice message_id;
    struct slice sender;
    struct slice body;
    uint64_t sequence;
    uint64_t members_version; /* of the chat at that time; 0: not known */
    int64_t sent_at_ms;
    bool has_except;
    struct ulid except; /* the connection that sent it, which was answered instead */
};

/* An event on its way. Between consume and feed_settle() `link`, `timer`, `attempts` and `owner` are
 * the consumer's. */
struct feed_item {
    struct feed_event event;
    struct list link;
    struct wheel_timer timer;
    uint32_t attempts;
    void *owner;
};

enum feed_result {
    FEED_DONE,
    FEED_SKIPPED, /* tried often enough; syncing heals */
    FEED_POISON,  /* no try can ever succeed */
};

struct feed;

/* Receives whether the event will reach a consumer, exactly once. */
typedef void (*feed_publish_done)(void *arg, bool published);

/* Takes an item; the consumer ends it with feed_settle(). */
typedef void (*feed_consumer)(void *arg, struct feed_item *item);

struct feed_operations {
    void (*publish)(struct feed *feed, const struct feed_event *event, feed_publish_done done,
                    void *arg);
    void (*settle)(struct feed *feed, struct feed_item *item, enum feed_result result,
                   const char *reason);
    /* Whether events are being taken. */
    bool (*available)(const struct feed *feed);
    /* Events published and not settled. */
    size_t (*lag)(const struct feed *feed);
    void (*free)(struct feed *feed);
};

struct feed {
    const struct feed_operations *operations;
    feed_consumer consume;
    void *consume_arg;
};

static inline void feed_publish(struct feed *feed, const struct feed_event *event,
                                feed_publish_done done, void *arg)
{
    feed->operations->publish(feed, event, done, arg);
}

/* Ends an item; `reason` (of POISON) is copied. */
static inline void feed_settle(struct feed *feed, struct feed_item *item, enum feed_result result,
                               const char *reason)
{
    feed->operations->settle(feed, item, result, reason);
}

static inline bool feed_available(const struct feed *feed)
{
    return feed->operations->available(feed);
}

static inline size_t feed_lag(const struct feed *feed)
{
    return feed->operations->lag(feed);
}

/* The ledger is closed by now; what is under way is forgotten here and comes again after a start. */
static inline void feed_free(struct feed **feed)
{
    struct feed *freed = *feed;
    *feed = NULL;
    if (freed)
        freed->operations->free(freed);
}

#endif
