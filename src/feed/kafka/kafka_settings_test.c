/* The consumer's settings that the conformance suite does not show, on a real Kafka whose address is in TEST_KAFKA. */
#include "base/clock.h"
#include "support/kafka_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    RECORDS = 100,
    ITEMS_MAX = 20, /* kafka_backend_make() sets it as max_poll_records */
    WAIT_US = 60 * 1000 * 1000,
    DEADLINE_MS = 600000, /* far later than any test waits */
};

struct settings_test {
    struct feed_backend *backend;
    unsigned completions, published;
    struct feed_item *kept[RECORDS];
    size_t kept_count;
    unsigned arrivals;
};

static void on_settings_item(void *arg, struct feed_item *item)
{
    struct settings_test *test = arg;
    assert_true(test->kept_count < RECORDS);
    test->arrivals++;
    test->kept[test->kept_count++] = item;
}

static void on_settings_published(void *arg, bool published)
{
    struct settings_test *test = arg;
    test->completions++;
    test->published += published;
}

static void begin_settings_test(struct settings_test *test, const char *setting)
{
    *test = (struct settings_test){.backend = kafka_backend_make(setting)};
    test->backend->open(test->backend, on_settings_item, test);
}

static void settle_kept(struct settings_test *test, enum feed_result result)
{
    while (test->kept_count > 0)
        feed_settle(test->kept[--test->kept_count], result, NULL);
}

static void end_settings_test(struct settings_test *test)
{
    settle_kept(test, FEED_DONE);
    test->backend->close(test->backend);
    kafka_backend_free(test->backend);
}

static void publish_records(struct settings_test *test, unsigned count)
{
    char chat[16];
    for (unsigned n = 1; n <= count; n++) {
        snprintf(chat, sizeof(chat), "chat-%u", n);
        struct feed_event event = {.chat = slice_of(chat),
                                   .message_id = SLICE("m"),
                                   .sender = SLICE("alice"),
                                   .body = SLICE("text"),
                                   .sequence = n,
                                   .members_version = 1,
                                   .sent_at_ms = 1700000000000};
        feed_publish(test->backend->producer, &event,
                     test->backend->now_ms(test->backend) + DEADLINE_MS, on_settings_published,
                     test);
    }
}

static void turn_for(struct settings_test *test, int64_t us)
{
    for (int64_t end_us = clock_microseconds() + us; clock_microseconds() < end_us;)
        test->backend->turn(test->backend);
}

#define WAIT_FOR(test, condition)                                                                  \
    do {                                                                                           \
        int64_t end_us = clock_microseconds() + WAIT_US;                                           \
        while (!(condition) && clock_microseconds() < end_us)                                      \
            (test)->backend->turn((test)->backend);                                                \
        assert_true(condition);                                                                    \
    } while (0)

/* ---- fanout.kafka.consumer.max_poll_records ---- */

static void test_no_more_items_are_under_way_than_max_poll_records(void **state)
{
    struct settings_test test;
    (void)state;
    begin_settings_test(&test, NULL);
    publish_records(&test, RECORDS);
    WAIT_FOR(&test, test.completions == RECORDS && test.kept_count >= ITEMS_MAX);
    turn_for(&test, 1000 * 1000); /* for those that must not come */
    assert_int_equal(test.backend->consumer->under_way, ITEMS_MAX);
    while (test.arrivals < RECORDS) {
        unsigned before = test.arrivals;
        settle_kept(&test, FEED_DONE);
        WAIT_FOR(&test, test.arrivals > before);
        assert_in_range(test.backend->consumer->under_way, 1, ITEMS_MAX);
    }
    end_settings_test(&test);
}

/* ---- fanout.kafka.consumer.enable_auto_commit ---- */

/* Takes three records and settles none, as a process does that is killed; then sends three more. `expected` of them
 * arrive after the restart. */
static void expect_records_after_restart(const char *setting, unsigned expected)
{
    struct settings_test test;
    begin_settings_test(&test, setting);
    publish_records(&test, 3);
    WAIT_FOR(&test, test.completions == 3 && test.kept_count == 3);
    test.backend->stop(test.backend);
    settle_kept(&test, FEED_SKIPPED);
    test.backend->close(test.backend);
    test.backend->open(test.backend, on_settings_item, &test);
    test.arrivals = 0;
    publish_records(&test, 3);
    WAIT_FOR(&test, test.completions == 6 && test.arrivals >= expected);
    turn_for(&test, 1000 * 1000); /* for those that must not come */
    assert_int_equal(test.arrivals, expected);
    end_settings_test(&test);
}

static void test_what_was_taken_comes_again(void **state)
{
    (void)state;
    expect_records_after_restart(NULL, 6);
}

static void test_with_auto_commit_what_was_taken_does_not_come_again(void **state)
{
    (void)state;
    expect_records_after_restart("fanout.kafka.consumer.enable_auto_commit=true", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_more_items_are_under_way_than_max_poll_records),
        cmocka_unit_test(test_what_was_taken_comes_again),
        cmocka_unit_test(test_with_auto_commit_what_was_taken_does_not_come_again),
    };
    if (!getenv("TEST_KAFKA")) {
        puts("1..0 # SKIP needs a broker: TEST_KAFKA=HOST:PORT (make test-cloud starts one)");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
