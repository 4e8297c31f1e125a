/*
 * The producing half of the feed (feed_event.h): publishes events.
 *
 * What every backend promises
 *   - feed_publish() runs its completion exactly once, possibly before it returns. `true` means that the
 *     event will reach a consumer at least once. `false` means that the outcome is unknown; the sender
 *     publishes again.
 *   - It holds a bounded number of events and refuses further ones.
 *
 * Threading: one producer per worker, used on the worker's thread only. Who made it frees it, with the
 * backend's function.
 */
#ifndef ROLLCALL_FEED_FEED_PRODUCER_H
#define ROLLCALL_FEED_FEED_PRODUCER_H

#include "feed/feed_event.h"

struct feed_producer;

/* Receives whether the event will reach a consumer. */
typedef void (*feed_publish_done)(void *arg, bool published);

struct feed_producer_operations {
    void (*publish)(struct feed_producer *producer, const struct feed_event *event,
                    int64_t deadline_ms, feed_publish_done done, void *arg);
    bool (*available)(const struct feed_producer *producer);
};

struct feed_producer {
    const struct feed_producer_operations *operations;
    bool
        uses_outbox; /* a message that is in the ledger's outbox needs no other publish to be safe */
};

/* Publishes an event, which is borrowed until this function returns. At `deadline_ms` (monotonic) a publish that
 * is not complete fails. */
static inline void feed_publish(struct feed_producer *producer, const struct feed_event *event,
                                int64_t deadline_ms, feed_publish_done done, void *arg)
{
    producer->operations->publish(producer, event, deadline_ms, done, arg);
}

/* Returns whether the feed accepts events. */
static inline bool feed_available(const struct feed_producer *producer)
{
    return producer->operations->available(producer);
}

#endif
