/*
 * The consuming half of the feed on Kafka: a member of the consumer group fanout.kafka.consumer.group_id, which hands
 * the records of its partitions to fan-out as items.
 *
 *   record ──► item (under way) ──► settled ──► watermark of its partition ──► committed offset
 *         └──► cannot be read ──► dead letter
 *
 * Offsets are committed only behind what is settled (kafka_watermark.h), every KAFKA_CONSUMER_COMMIT_INTERVAL_MS and
 * before a partition goes to another consumer. So a crash repeats events and loses none. Rebalancing is cooperative:
 * partitions that stay are not interrupted. Items of a partition that was taken away are delivered to their end, but
 * count for nothing: the next owner gets their events again.
 *
 * An item settled as FEED_POISON, or a record that is not an event, becomes a record of fanout.dlq.topic, and its
 * offset is passed only after the brokers have stored that.
 *
 * A fatal error (the group or topic is forbidden, the login is refused) ends the client. Then `on_fatal` is called, or
 * without one a new client is started, with growing waits (fanout.consumer.restarts).
 *
 * Bounds: fanout.kafka.consumer.max_poll_records items under way, and KAFKA_WATERMARK_WINDOW per partition. Beyond
 * them partitions are paused: nothing is taken from their queues, which hold at most KAFKA_CONSUMER_QUEUE_KILOBYTES each.
 *
 * Threading: the loop's thread. Nothing blocks but kafka_consumer_free(), which waits for librdkafka's threads.
 */
#ifndef ROLLCALL_FEED_KAFKA_KAFKA_CONSUMER_H
#define ROLLCALL_FEED_KAFKA_KAFKA_CONSUMER_H

#include "config/config.h"
#include "feed/feed_consumer.h"
#include "metrics/metrics.h"
#include "net/loop.h"

enum {
    KAFKA_CONSUMER_COMMIT_INTERVAL_MS = 500,
    KAFKA_CONSUMER_QUEUE_KILOBYTES = 2048,
    KAFKA_CONSUMER_RESTART_MIN_MS = 1000,
    KAFKA_CONSUMER_RESTART_MAX_MS = 30000,
};

struct kafka_consumer;

/* The client met an error that a new one would meet too, unless somebody changes something. */
typedef void (*kafka_fatal_hook)(void *arg, const char *reason);

/* All borrowed for the consumer's life. */
struct kafka_consumer_options {
    const struct config *config;
    struct loop *loop;
    struct metrics *metrics;
    kafka_fatal_hook on_fatal; /* NULL: the consumer starts a new client */
    void *on_fatal_arg;
};

/* Makes a consumer, which joins its group by itself. On failure returns NULL and explains in `error`
 * (KAFKA_CLIENT_ERROR_TEXT_MAX bytes). */
struct kafka_consumer *kafka_consumer_make(const struct kafka_consumer_options *options,
                                           feed_item_handler on_item, void *arg, char *error);

/* Frees the consumer when no item is under way. Without kafka_consumer_leave() the group notices that after
 * fanout.kafka.consumer.session_timeout_ms. */
void kafka_consumer_free(struct kafka_consumer **consumer);

struct feed_consumer *kafka_consumer_feed(struct kafka_consumer *self);

/* Returns whether the consumer is a member of its group and knows its partitions, of which it may have none. */
bool kafka_consumer_is_joined(const struct kafka_consumer *consumer);

/* Takes no more records, and leaves the group when the items under way are settled. Returns whether it has left. Call
 * it until then. */
bool kafka_consumer_leave(struct kafka_consumer *self);

/* From now on a settled item counts for nothing: its event comes to another consumer. */
void kafka_consumer_stop(struct kafka_consumer *self);

#endif
