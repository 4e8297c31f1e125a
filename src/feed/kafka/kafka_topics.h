/*
 * The two topics of the feed: durability.kafka.topic with the events and fanout.dlq.topic with the dead letters. For
 * the start of a process and for commands: these functions block, each for a few times KAFKA_TOPICS_TIMEOUT_MS at most.
 */
#ifndef ROLLCALL_FEED_KAFKA_KAFKA_TOPICS_H
#define ROLLCALL_FEED_KAFKA_KAFKA_TOPICS_H

#include "config/config.h"
#include "feed/kafka/kafka_client.h"

#include <stdio.h>

enum { KAFKA_TOPICS_TIMEOUT_MS = 5000, KAFKA_TOPICS_INSYNC_MIN = 2 };

enum kafka_topics_result {
    KAFKA_TOPICS_OK,
    KAFKA_TOPICS_WRONG,      /* a topic is missing, or has other partitions or replicas */
    KAFKA_TOPICS_NO_BROKERS, /* nobody answers, or the login is refused */
};

/* Looks at both topics, and prints what is found to `out` unless that is NULL. `error` says what is wrong with the first
 * one that is wrong. */
enum kafka_topics_result kafka_topics_check(const struct config *config, FILE *out,
                                            char error[KAFKA_CLIENT_ERROR_TEXT_MAX]);

/* Makes the topics that do not exist, and waits until the brokers know them. Returns false and explains in `error`. */
bool kafka_topics_create(const struct config *config, char error[KAFKA_CLIENT_ERROR_TEXT_MAX]);

#endif
