/*
 * The producing half of the feed on Kafka: an event becomes a record of durability.kafka.topic, with the chat as the
 * key. A publish succeeds when the brokers report the record as delivered (acks=all: by all replicas in sync), and not
 * before. The producer is idempotent, so its own retries make no duplicates.
 *
 *   feed_publish() ──► in flight ──┬─ delivery report ──────────────────────────► completion
 *                                  └─ deadline ──► completion (false) ··· delivery report, ignored
 *
 * An event that missed its deadline stays with librdkafka until durability.kafka.producer.timeout_ms, and may still be
 * delivered; the sender has been told to send again, and consumers tolerate duplicates.
 *
 * Health: the brokers are asked every KAFKA_PRODUCER_PROBE_INTERVAL_MS. The feed is available while they answer and no
 * record has failed since the last one that was delivered, or in the last KAFKA_PRODUCER_FAILURE_MS.
 *
 * Bounds: KAFKA_PRODUCER_EVENTS_MAX events and KAFKA_PRODUCER_BYTES_MAX in flight; further ones are refused at once.
 */
#ifndef ROLLCALL_FEED_KAFKA_KAFKA_PRODUCER_H
#define ROLLCALL_FEED_KAFKA_KAFKA_PRODUCER_H

#include "config/config.h"
#include "feed/feed_producer.h"
#include "net/loop.h"

enum {
    KAFKA_PRODUCER_EVENTS_MAX = 16384,
    KAFKA_PRODUCER_BYTES_MAX = 32 * 1024 * 1024,
    KAFKA_PRODUCER_PROBE_INTERVAL_MS = 2000,
    KAFKA_PRODUCER_FAILURE_MS = 10000,
};

struct kafka_producer;

/* Makes a producer, which connects by itself. `config` and `loop` are borrowed. On failure returns NULL and explains in
 * `error` (KAFKA_CLIENT_ERROR_TEXT_MAX bytes). */
struct kafka_producer *kafka_producer_make(const struct config *config, struct loop *loop,
                                           char *error);

/* Frees a stopped producer, and waits for librdkafka's threads. */
void kafka_producer_free(struct kafka_producer **producer);

struct feed_producer *kafka_producer_feed(struct kafka_producer *self);

/* Asks the brokers whether they answer, when that is due. Call it once a second. */
void kafka_producer_tick(struct kafka_producer *self);

/* Fails what is in flight, and refuses further events. */
void kafka_producer_stop(struct kafka_producer *self);

#endif
