/*
 * A Kafka client (librdkafka) on a loop: what its threads report comes as events to the loop's thread, through an
 * eventfd. Both halves of the feed, and the producer of dead letters, are made of it.
 *
 * The brokers and the security settings come from the configuration (feed.url, durability.kafka.security). What
 * librdkafka logs goes to our log, rate-limited. Secrets reach neither log nor error text.
 *
 * Threading: made, used and freed on the loop's thread. librdkafka has threads of its own: one, one per broker and one
 * for a consumer's group.
 */
#ifndef ROLLCALL_FEED_KAFKA_KAFKA_CLIENT_H
#define ROLLCALL_FEED_KAFKA_KAFKA_CLIENT_H

#include "base/slice.h"
#include "config/config.h"
#include "net/loop.h"

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

enum { KAFKA_CLIENT_ERROR_TEXT_MAX = 640, KAFKA_CLIENT_EVENTS_PER_TURN = 256 };

/* One of librdkafka's properties. */
struct kafka_property {
    const char *name;
    const char *value;
};

/* Receives an event, which it borrows. */
typedef void (*kafka_event_handler)(void *arg, rd_kafka_event_t *event);

struct kafka_client {
    struct loop_source source; /* the eventfd */
    struct loop *loop;
    rd_kafka_t *handle;
    rd_kafka_queue_t *queue;
    bool is_leaving;
    kafka_event_handler on_event;
    void (*on_turn)(
        void *arg); /* after the events of a turn: may end the client, or start another */
    void *arg;
};

struct kafka_client_options {
    const struct config *config;
    struct loop *loop;
    rd_kafka_type_t type;
    const struct kafka_property *properties; /* the last one has no name */
    kafka_event_handler on_event;
    void (*on_turn)(void *arg); /* may be NULL */
    void *arg;
};

/* Returns the brokers of a feed URL ("HOST:PORT,…"), or NULL if the feed is not Kafka. */
const char *kafka_client_brokers(const struct config *config);

/* Makes librdkafka's configuration for the brokers and security settings of `config`. Returns NULL and explains in
 * `error`. rd_kafka_new() takes it. */
rd_kafka_conf_t *kafka_client_configure(const struct config *config,
                                        const struct kafka_property *properties,
                                        char error[KAFKA_CLIENT_ERROR_TEXT_MAX]);

/* Starts a client, which connects by itself. On failure returns false and explains in `error`. */
bool kafka_client_start(struct kafka_client *client, const struct kafka_client_options *options,
                        char error[KAFKA_CLIENT_ERROR_TEXT_MAX]);

/* Lets the client's events, and `on_turn`, run in the next turn of the loop. */
void kafka_client_wake(struct kafka_client *client);

/* Lets a further queue wake the loop; its owner polls it in `on_turn`. */
void kafka_client_watch(struct kafka_client *client, rd_kafka_queue_t *queue);

/* Leaves the consumer group. Returns whether that is complete; call it again until then. */
bool kafka_client_leave_group(struct kafka_client *client);

/* Ends a client: waits for librdkafka's threads, not for brokers. */
void kafka_client_stop(struct kafka_client *client);

/* The same without waiting: a thread of its own ends the client. */
void kafka_client_abandon(struct kafka_client *client);

#endif
