/*
 * The feed of one worker, as feed.url and fanout.in_gateway choose it: the local one, or a Kafka producer and, unless
 * fan-out runs elsewhere, a Kafka consumer. Runs on the gateway's thread.
 */
#ifndef ROLLCALL_APP_GATEWAY_GATEWAY_FEED_H
#define ROLLCALL_APP_GATEWAY_GATEWAY_FEED_H

#include "feed/kafka/kafka_consumer.h"
#include "feed/kafka/kafka_producer.h"
#include "feed/local/local_feed.h"

/* Borrowed for the feed's life. */
struct gateway_feed_parts {
    const struct config *config;
    struct loop *loop;
    struct random *random;
    struct metrics *metrics;
    struct ledger_client *client;
    int64_t started_at_ms;
    bool replays; /* this gateway replays what is left in the outbox */
};

struct gateway_feed {
    struct feed_producer *producer;
    struct feed_consumer *consumer; /* NULL: fan-out runs elsewhere */
    const struct config *config;
    struct metrics *metrics;
    /* what is behind them; NULL: the other backend */
    struct local_feed *local;
    struct kafka_producer *kafka_producer;
    struct kafka_consumer *kafka_consumer;
};

/* Makes the feed and tells the ledger's client whether to fill the outbox. On failure prints why and returns false. */
bool gateway_feed_make(struct gateway_feed *feed, const struct gateway_feed_parts *parts,
                       feed_item_handler on_item, void *arg);

/* Call it once a second. */
void gateway_feed_tick(struct gateway_feed *feed);

/* Sets the gauges. */
void gateway_feed_sample(const struct gateway_feed *feed);

/* Takes no more events of others, and gives up what only this gateway holds. Returns whether nothing is left to do.
 * Call it until then. */
bool gateway_feed_leave(struct gateway_feed *feed);

/* Publishes and consumes nothing more; completes what is in flight. */
void gateway_feed_stop(struct gateway_feed *feed);

/* Call it when no item is under way. */
void gateway_feed_free(struct gateway_feed *feed);

#endif
