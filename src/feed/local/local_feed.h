/*
 * The embedded feed, both halves in one: the ledger's outbox makes it durable, and this process consumes it.
 *
 * The transaction that stores a message also puts it into the outbox, so publishing only passes the event to
 * the consumer. After the consumer has settled it, the message leaves the outbox, in batches. A start
 * replays what a crash left there, LOCAL_FEED_START_DELAY_MS after it, when recipients have come back. A periodic
 * sweep replays what was left for another reason (the publish was refused for lack of capacity, or the removal
 * failed): everything older than LOCAL_FEED_SWEEP_AGE_MS. One worker of a process replays (`replays`).
 *
 * Gateways that share a ledger share its outbox and sweep for each other: a message that a crashed gateway
 * left is replayed within LOCAL_FEED_REPLAY_WITHIN_MS by the first one that sweeps, so recipients who are online get
 * it live. Such a gateway also takes only old messages at its start, since younger ones may be under way elsewhere.
 * A feed that has not settled its own messages for that long is behind, and takes none of others. A sweep reads one
 * message first, and a page only if that one is old. Sweeps are spread at random, so that a second gateway usually
 * finds the outbox empty; if both replay a message, consumers tolerate the duplicate.
 *
 * Bound: LOCAL_FEED_EVENTS_MAX items. Replays take only part of it, so that they cannot crowd out new
 * messages.
 */
#ifndef ROLLCALL_FEED_LOCAL_LOCAL_FEED_H
#define ROLLCALL_FEED_LOCAL_LOCAL_FEED_H

#include "base/random.h"
#include "feed/feed_consumer.h"
#include "feed/feed_producer.h"
#include "ledger/ledger_messages.h"
#include "metrics/metrics.h"

enum {
    LOCAL_FEED_EVENTS_MAX = 16384,
    LOCAL_FEED_START_DELAY_MS = 2000,
    LOCAL_FEED_SWEEP_INTERVAL_MS = 2000, /* at most; at least half of it */
    LOCAL_FEED_SWEEP_AGE_MS = 3000,
    LOCAL_FEED_DEAD_LETTERS_INTERVAL_MS = 10000, /* how often they are counted */
    /* after it was sent, if the outbox fits a page and the ledger answers */
    LOCAL_FEED_REPLAY_WITHIN_MS = LOCAL_FEED_SWEEP_AGE_MS + LOCAL_FEED_SWEEP_INTERVAL_MS + 1000,
};

struct local_feed_options {
    struct ledger_client *ledger;
    struct metrics *metrics;
    struct random *random;
    bool replays;
    bool shared;           /* other gateways publish from the same outbox */
    uint32_t replay_page;  /* messages per read of the outbox */
    int64_t started_at_ms; /* wall clock: older messages in the outbox are from before the start */
};

struct local_feed;

/* Makes a feed that hands its items to `on_item`. `options` is copied; what it points to is borrowed. Returns
 * NULL when out of memory. */
struct local_feed *local_feed_make(const struct local_feed_options *options,
                                   feed_item_handler on_item, void *arg);

/* Frees the feed after the ledger was closed. Events under way are dropped and replayed after the next start. */
void local_feed_free(struct local_feed **feed);

/* The halves last as long as the feed. */
struct feed_producer *local_feed_producer(struct local_feed *self);
struct feed_consumer *local_feed_consumer(struct local_feed *self);

/* Replays what is due. Call it periodically. */
void local_feed_tick(struct local_feed *self);

/* Stops the feed: it starts no more operations of the ledger and refuses to publish. */
void local_feed_stop(struct local_feed *self);

#endif
