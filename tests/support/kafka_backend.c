#include "support/kafka_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { TURN_MS = 50 };

static void open_kafka_backend(struct feed_backend *backend, feed_item_handler on_item, void *arg)
{
    struct kafka_backend *self = (struct kafka_backend *)backend;
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX];
    struct kafka_consumer_options options = {
        .config = &self->config, .loop = &self->loop, .metrics = &self->metrics};
    self->producer = kafka_producer_make(&self->config, &self->loop, error);
    self->consumer = kafka_consumer_make(&options, on_item, arg, error);
    if (!self->producer || !self->consumer)
        fail_msg("%s", error);
    backend->producer = kafka_producer_feed(self->producer);
    backend->consumer = kafka_consumer_feed(self->consumer);
}

static void turn_kafka_backend(struct feed_backend *backend)
{
    struct kafka_backend *self = (struct kafka_backend *)backend;
    loop_turn(&self->loop, TURN_MS);
    kafka_producer_tick(self->producer);
}

static void stop_kafka_backend(struct feed_backend *backend)
{
    struct kafka_backend *self = (struct kafka_backend *)backend;
    kafka_producer_stop(self->producer);
    kafka_consumer_stop(self->consumer);
}

/* Leaves the group, so that the next consumer need not wait for the session to expire. */
static void close_kafka_backend(struct feed_backend *backend)
{
    struct kafka_backend *self = (struct kafka_backend *)backend;
    kafka_producer_stop(self->producer);
    for (int turns = 0; turns < 400 && !kafka_consumer_leave(self->consumer); turns++)
        turn_kafka_backend(backend);
    kafka_producer_free(&self->producer);
    kafka_consumer_free(&self->consumer);
}

static void store_for_kafka(struct feed_backend *backend, const struct feed_event *event)
{
    (void)backend, (void)event; /* Kafka stores it */
}

static size_t count_kafka_dead_letters(struct feed_backend *backend)
{
    struct kafka_backend *self = (struct kafka_backend *)backend;
    return (size_t)self->metrics.values[METRIC_FANOUT_DEAD_LETTERS];
}

static int64_t kafka_backend_now_ms(struct feed_backend *backend)
{
    return ((struct kafka_backend *)backend)->loop.clock.now_ms;
}

struct feed_backend *kafka_backend_make(const char *more)
{
    static unsigned made;
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX];
    struct kafka_backend *self = calloc(1, sizeof(*self));
    assert_non_null(self);
    snprintf(self->topic, sizeof(self->topic), "durability.kafka.topic=events.%d.%u", getpid(),
             ++made);
    snprintf(self->letters, sizeof(self->letters), "fanout.dlq.topic=letters.%d.%u", getpid(),
             made);
    snprintf(self->group, sizeof(self->group), "fanout.kafka.consumer.group_id=group.%d.%u",
             getpid(), made);
    snprintf(self->url, sizeof(self->url), "feed.url=kafka://%s", getenv("TEST_KAFKA"));
    const char *const assignments[] = {self->url,
                                       self->topic,
                                       self->letters,
                                       self->group,
                                       "durability.kafka.partitions=3",
                                       "durability.kafka.replication=1",
                                       "fanout.kafka.consumer.max_poll_records=20",
                                       more};
    size_t count = sizeof(assignments) / sizeof(assignments[0]);
    struct config_inputs inputs = {.assignments = assignments,
                                   .assignment_count = more ? count : count - 1};
    struct config_error wrong;
    if (!config_load(&self->config, &inputs, &wrong))
        fail_msg("%s", wrong.text);
    for (int tries = 0; !kafka_topics_create(&self->config, error) && tries < 10; tries++)
        sleep(1);
    if (kafka_topics_check(&self->config, NULL, error) != KAFKA_TOPICS_OK)
        fail_msg("%s", error);
    assert_true(loop_init(&self->loop));
    self->backend = (struct feed_backend){
        .open = open_kafka_backend,
        .close = close_kafka_backend,
        .stop = stop_kafka_backend,
        .store = store_for_kafka,
        .turn = turn_kafka_backend,
        .dead_letters = count_kafka_dead_letters,
        .now_ms = kafka_backend_now_ms,
    };
    return &self->backend;
}

void kafka_backend_free(struct feed_backend *backend)
{
    struct kafka_backend *self = (struct kafka_backend *)backend;
    loop_free(&self->loop);
    config_free(&self->config);
    free(self);
}
