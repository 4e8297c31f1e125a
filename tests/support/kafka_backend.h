/*
 * Both halves of the feed on a real Kafka, whose address is in TEST_KAFKA, for tests: each backend has topics and a
 * group of its own.
 */
#ifndef ROLLCALL_TESTS_KAFKA_BACKEND_H
#define ROLLCALL_TESTS_KAFKA_BACKEND_H

#include "conformance/feed_suite.h"
#include "feed/kafka/kafka_client.h"
#include "feed/kafka/kafka_consumer.h"
#include "feed/kafka/kafka_producer.h"
#include "feed/kafka/kafka_topics.h"

struct kafka_backend {
    struct feed_backend backend;
    struct config config;
    struct loop loop;
    struct metrics metrics;
    struct kafka_producer *producer;
    struct kafka_consumer *consumer;
    char url[128], topic[64], letters[64], group[64];
};

/* Makes the topics. `more` is one more setting ("name=value"), or NULL. */
struct feed_backend *kafka_backend_make(const char *more);
void kafka_backend_free(struct feed_backend *backend);

#endif
