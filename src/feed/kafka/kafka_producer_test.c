/* What the producer does with an event that a broker refuses for now, on librdkafka's own test broker: the real one
 * cannot be told to refuse. */
#include "base/clock.h"
#include "feed/kafka/kafka_client.h"
#include "feed/kafka/kafka_producer.h"

#include <librdkafka/rdkafka_mock.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum {
    PRODUCE = 0, /* the number of that request in Kafka's protocol */
    REFUSALS_MAX = 3,
    TURN_MS = 20,
    WAIT_US = 60 * 1000 * 1000,
    DEADLINE_MS = 600000, /* far later than the test waits: it is the refusal that ends a publish */
};

struct refused_publish {
    unsigned completions;
    bool published;
};

static void on_refused_publish_done(void *arg, bool published)
{
    struct refused_publish *publish = arg;
    publish->completions++;
    publish->published = published;
}

static void load_producer_config(struct config *config, const char *brokers, const char *retries)
{
    char url[128];
    snprintf(url, sizeof(url), "feed.url=kafka://%s", brokers);
    const char *const assignments[] = {url, retries,
                                       "durability.kafka.producer.retry_backoff_ms=10",
                                       "durability.kafka.producer.timeout_ms=300000"};
    struct config_inputs inputs = {.assignments = assignments, .assignment_count = 4};
    struct config_error wrong;
    if (!config_load(config, &inputs, &wrong))
        fail_msg("%s", wrong.text);
}

static void refuse_next(rd_kafka_mock_cluster_t *brokers, unsigned count)
{
    rd_kafka_resp_err_t refusals[REFUSALS_MAX];
    for (unsigned i = 0; i < count; i++)
        refusals[i] = RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS;
    rd_kafka_mock_push_request_errors_array(brokers, PRODUCE, count, refusals);
}

/* Publishes an event that is refused `refusals` times. Returns whether it was published in the end. */
static bool publish_with_refusals(const char *retries, unsigned refusals)
{
    struct config config;
    struct loop loop;
    struct refused_publish publish = {0};
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX] = "";
    struct feed_event event = {.chat = SLICE("c"),
                               .message_id = SLICE("m"),
                               .sender = SLICE("alice"),
                               .body = SLICE("text"),
                               .sequence = 1};
    rd_kafka_conf_t *quiet = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(quiet, NULL);
    rd_kafka_t *owner = rd_kafka_new(RD_KAFKA_PRODUCER, quiet, NULL, 0);
    rd_kafka_mock_cluster_t *brokers = rd_kafka_mock_cluster_new(owner, 1);
    load_producer_config(&config, rd_kafka_mock_cluster_bootstraps(brokers), retries);
    rd_kafka_mock_topic_create(brokers, config.durability.kafka.topic, 1, 1);
    refuse_next(brokers, refusals);
    assert_true(loop_init(&loop));
    struct kafka_producer *producer = kafka_producer_make(&config, &loop, error);
    assert_non_null(producer);
    feed_publish(kafka_producer_feed(producer), &event, loop.clock.now_ms + DEADLINE_MS,
                 on_refused_publish_done, &publish);
    for (int64_t end_us = clock_microseconds() + WAIT_US;
         publish.completions == 0 && clock_microseconds() < end_us;) {
        loop_turn(&loop, TURN_MS);
        kafka_producer_tick(producer);
    }
    assert_int_equal(publish.completions, 1);
    kafka_producer_stop(producer);
    kafka_producer_free(&producer);
    loop_free(&loop);
    config_free(&config);
    rd_kafka_mock_cluster_destroy(brokers);
    rd_kafka_destroy(owner);
    return publish.published;
}

static void test_refusals_are_tried_again_as_often_as_retries_says(void **state)
{
    (void)state;
    assert_true(publish_with_refusals("durability.kafka.producer.retries=2", 2));
    assert_false(publish_with_refusals("durability.kafka.producer.retries=2", 3));
}

static void test_without_retries_the_first_refusal_is_the_answer(void **state)
{
    (void)state;
    assert_true(publish_with_refusals("durability.kafka.producer.retries=0", 0));
    assert_false(publish_with_refusals("durability.kafka.producer.retries=0", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals_are_tried_again_as_often_as_retries_says),
        cmocka_unit_test(test_without_retries_the_first_refusal_is_the_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
