/*
 * Writes dead letters: records of fanout.dlq.topic with the bytes and the key of the event, and with the headers
 * `reason`, `topic`, `partition` and `offset` that say why and from where.
 *
 * Its producer is started with the first dead letter, because most consumers never need one. A record that the brokers
 * did not store is produced again, so a completion means that it is stored.
 *
 * Bound: the consumer's items. One thread.
 */
#ifndef ROLLCALL_FEED_KAFKA_KAFKA_DEAD_LETTERS_H
#define ROLLCALL_FEED_KAFKA_KAFKA_DEAD_LETTERS_H

#include "base/list.h"
#include "base/slice.h"
#include "config/config.h"
#include "feed/kafka/kafka_client.h"

struct kafka_dead_letters {
    const struct config *config;
    struct loop *loop;
    /* ---- */
    struct kafka_client client;
    struct list letters; /* not stored yet */
};

struct kafka_dead_letter {
    struct slice key;
    struct slice value;
    const char *reason;
    int32_t partition;
    int64_t offset;
};

/* Receives whether the dead letter is stored; if not, the producer was freed. */
typedef void (*kafka_dead_letter_done)(void *arg, bool stored);

/* The caller sets the fields above the line first. */
void kafka_dead_letters_init(struct kafka_dead_letters *letters);

/* Completes what is not stored. */
void kafka_dead_letters_free(struct kafka_dead_letters *letters);

/* Copies the letter. Returns false, and never calls `done`, when out of memory. */
bool kafka_dead_letters_put(struct kafka_dead_letters *letters,
                            const struct kafka_dead_letter *letter, kafka_dead_letter_done done,
                            void *arg);

#endif
