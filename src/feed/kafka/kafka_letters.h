/*
 * Dead letters of a Kafka feed, for a caller that may wait: counts and reads the records of fanout.dlq.topic, and puts
 * them back into durability.kafka.topic, from where fan-out takes them again. kafka_dead_letters.h writes them.
 *
 * A letter's id is PARTITION:OFFSET in its topic. Kafka removes records only from the front of a partition: a letter
 * that was put back leaves the topic when all before it have been put back too. Putting one back twice does no harm,
 * because gateways drop a message that comes twice.
 *
 * Bounds: KAFKA_LETTERS_MAX letters a call, KAFKA_LETTERS_LIMIT_MS for each answer of a broker. One thread.
 */
#ifndef ROLLCALL_FEED_KAFKA_KAFKA_LETTERS_H
#define ROLLCALL_FEED_KAFKA_KAFKA_LETTERS_H

#include "base/slice.h"
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KAFKA_LETTERS_MAX = 10000,
    KAFKA_LETTERS_LIMIT_MS = 5000,
    KAFKA_LETTERS_ERROR_TEXT_MAX = 640,
};

struct kafka_letter {
    int32_t partition;
    int64_t offset;
    int64_t stored_at_ms; /* wall clock */
    struct slice reason;
    struct slice key;
    struct slice value;
};

struct kafka_letters;

/* Opens the topic. On failure returns NULL and explains in `error`. */
struct kafka_letters *kafka_letters_open(const struct config *config,
                                         char error[KAFKA_LETTERS_ERROR_TEXT_MAX]);
void kafka_letters_close(struct kafka_letters **letters);

/* Returns how many letters there are now, or -1 with a sentence in `error`. */
int64_t kafka_letters_count(struct kafka_letters *letters,
                            char error[KAFKA_LETTERS_ERROR_TEXT_MAX]);

/* Receives a letter, which lasts for the call. */
typedef void (*kafka_letter_visitor)(void *arg, const struct kafka_letter *letter);

/* Visits the letters, the oldest of each partition first, at most KAFKA_LETTERS_MAX. Returns how many are left unvisited,
 * or -1 with a sentence in `error`. */
int64_t kafka_letters_each(struct kafka_letters *letters, kafka_letter_visitor visit, void *arg,
                           char error[KAFKA_LETTERS_ERROR_TEXT_MAX]);

/* Puts a letter back. It is stored when kafka_letters_flush() has returned true. */
bool kafka_letters_replay(struct kafka_letters *letters, const struct kafka_letter *letter,
                          char error[KAFKA_LETTERS_ERROR_TEXT_MAX]);

/* Drops a letter for ever: it leaves the topic with kafka_letters_flush(). Only the oldest that its partition still has can go; for
 * another one it returns false and explains in `error`. */
bool kafka_letters_drop(struct kafka_letters *letters, const struct kafka_letter *letter,
                        char error[KAFKA_LETTERS_ERROR_TEXT_MAX]);

/* Waits until the brokers have stored what was put back, then removes from the front of the topic what was put back
 * or dropped there. On failure returns false, explains in `error` and removes nothing. */
bool kafka_letters_flush(struct kafka_letters *letters, char error[KAFKA_LETTERS_ERROR_TEXT_MAX]);

#endif
