/* The feed on Kafka without memory, and without brokers: nothing leaks or crashes, and every publish completes once. */
#include "feed/kafka/kafka_client.h"
#include "feed/kafka/kafka_consumer.h"
#include "feed/kafka/kafka_dead_letters.h"
#include "feed/kafka/kafka_producer.h"
#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct config config;
static struct loop loop;
static struct metrics metrics;

/* Nobody listens at this address. */
static int set_up(void **state)
{
    (void)state;
    static const char *const SETS[] = {"feed.url=kafka://127.0.0.1:1"};
    struct config_inputs inputs = {.assignments = SETS, .assignment_count = 1};
    struct config_error error;
    return config_load(&config, &inputs, &error) && loop_init(&loop) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    loop_free(&loop);
    config_free(&config);
    return 0;
}

static void ignore_item(void *arg, struct feed_item *item)
{
    (void)arg, (void)item;
}

static size_t make_both_halves(alloc_fault_start fail_at, size_t n)
{
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX] = "";
    struct kafka_consumer_options options = {.config = &config, .loop = &loop, .metrics = &metrics};
    fail_at(n);
    struct kafka_producer *producer = kafka_producer_make(&config, &loop, error);
    struct kafka_consumer *consumer = kafka_consumer_make(&options, ignore_item, NULL, error);
    size_t failed = alloc_fault_off();
    assert_true(failed == 0 || !producer || !consumer);
    assert_true(failed == 0 || error[0]);
    kafka_producer_free(&producer);
    kafka_consumer_free(&consumer);
    return failed;
}

static void test_making_the_halves_fails_cleanly(void **state)
{
    (void)state;
    assert_true(alloc_fault_sweep(alloc_fault_after, make_both_halves) > 1);
}

struct completions {
    unsigned count;
    unsigned published;
};

static void on_completed(void *arg, bool published)
{
    struct completions *completions = arg;
    completions->count++;
    completions->published += published;
}

static const struct feed_event EVENT = {.chat = SLICE("c"),
                                        .message_id = SLICE("m"),
                                        .sender = SLICE("alice"),
                                        .body = SLICE("text"),
                                        .sequence = 1};

static size_t publish_without_memory(alloc_fault_start fail_at, size_t n)
{
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX];
    struct completions completions = {0};
    struct kafka_producer *producer = kafka_producer_make(&config, &loop, error);
    assert_non_null(producer);
    fail_at(n);
    feed_publish(kafka_producer_feed(producer), &EVENT, loop.clock.now_ms + 60000, on_completed,
                 &completions);
    size_t failed = alloc_fault_off();
    assert_int_equal(completions.count, failed > 0); /* else it waits for a broker */
    kafka_producer_stop(producer);
    assert_int_equal(completions.count, 1);
    assert_int_equal(completions.published, 0);
    kafka_producer_free(&producer);
    assert_int_equal(completions.count, 1);
    return failed;
}

static void test_publish_without_memory_fails_once(void **state)
{
    (void)state;
    assert_true(alloc_fault_sweep(alloc_fault_after, publish_without_memory) > 1);
}

static void test_publish_without_brokers_fails_at_its_deadline(void **state)
{
    (void)state;
    enum { LIMIT_MS = 200, TURN_MS = 20 };
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX];
    struct completions completions = {0};
    struct kafka_producer *producer = kafka_producer_make(&config, &loop, error);
    assert_non_null(producer);
    loop_turn(&loop, 0);
    int64_t deadline_ms = loop.clock.now_ms + LIMIT_MS;
    feed_publish(kafka_producer_feed(producer), &EVENT, deadline_ms, on_completed, &completions);
    while (loop.clock.now_ms < deadline_ms) {
        assert_int_equal(completions.count, 0);
        loop_turn(&loop, TURN_MS);
    }
    for (int turn = 0; turn < 100 && completions.count == 0; turn++)
        loop_turn(&loop, TURN_MS);
    assert_int_equal(completions.count, 1);
    assert_int_equal(completions.published, 0);
    assert_false(feed_available(kafka_producer_feed(producer)));
    kafka_producer_free(&producer);
    assert_int_equal(completions.count, 1);
}

static void on_letter_done(void *arg, bool stored)
{
    on_completed(arg, stored);
}

static size_t put_letter_without_memory(alloc_fault_start fail_at, size_t n)
{
    struct kafka_dead_letters letters = {.config = &config, .loop = &loop};
    struct kafka_dead_letter letter = {
        .key = SLICE("c"), .value = SLICE("{}"), .reason = "no reason"};
    struct completions completions = {0};
    kafka_dead_letters_init(&letters);
    fail_at(n);
    bool accepted = kafka_dead_letters_put(&letters, &letter, on_letter_done, &completions);
    size_t failed = alloc_fault_off();
    assert_true(accepted || failed);
    kafka_dead_letters_free(&letters);
    assert_int_equal(completions.count, accepted);
    assert_int_equal(completions.published, 0);
    return failed;
}

static void test_dead_letter_without_memory_is_refused_or_completed_once(void **state)
{
    (void)state;
    assert_true(alloc_fault_sweep(alloc_fault_after, put_letter_without_memory) > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_making_the_halves_fails_cleanly, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_publish_without_memory_fails_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_publish_without_brokers_fails_at_its_deadline, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            test_dead_letter_without_memory_is_refused_or_completed_once, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
