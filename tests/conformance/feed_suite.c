#include "conformance/feed_suite.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { EVENTS = 200, WAIT_US = 60 * 1000 * 1000 };

static struct feed_backend *(*make_backend)(void);
static void (*free_backend)(struct feed_backend *backend);

/* A consumer that settles what comes, as a test tells it to. */
struct feed_test {
    struct feed_backend *backend;
    unsigned completions;
    unsigned published;
    unsigned arrivals;
    unsigned seen[EVENTS + 1]; /* arrivals by sequence */
    bool keeps;
    struct feed_item *kept[EVENTS];
    size_t kept_count;
    enum feed_result result;
    char last[128];
};

static void on_suite_item(void *arg, struct feed_item *item)
{
    struct feed_test *test = arg;
    const struct feed_event *event = &item->event;
    test->arrivals++;
    assert_in_range(event->sequence, 1, EVENTS);
    test->seen[event->sequence]++;
    snprintf(test->last, sizeof(test->last), "%.*s %.*s %.*s %.*s %lld", SLICE_FORMAT(event->chat),
             SLICE_FORMAT(event->message_id), SLICE_FORMAT(event->sender),
             SLICE_FORMAT(event->body), (long long)event->sent_at_ms);
    if (test->keeps)
        test->kept[test->kept_count++] = item;
    else
        feed_settle(item, test->result, "the suite says so");
}

static void on_suite_published(void *arg, bool published)
{
    struct feed_test *test = arg;
    test->completions++;
    test->published += published;
}

static void open_suite_feed(struct feed_test *test)
{
    test->backend->open(test->backend, on_suite_item, test);
}

static int set_up(void **state)
{
    static struct feed_test test;
    test = (struct feed_test){.backend = make_backend()};
    open_suite_feed(&test);
    *state = &test;
    return 0;
}

static int tear_down(void **state)
{
    struct feed_test *test = *state;
    test->backend->close(test->backend);
    free_backend(test->backend);
    return 0;
}

static void publish(struct feed_test *test, uint64_t sequence)
{
    struct feed_event event = {.chat = SLICE("c"),
                               .message_id = SLICE("m"),
                               .sender = SLICE("alice"),
                               .body = SLICE("text"),
                               .sequence = sequence,
                               .members_version = 1,
                               .sent_at_ms = 1700000000000};
    test->backend->store(test->backend, &event);
    feed_publish(test->backend->producer, &event, test->backend->now_ms(test->backend) + 30000,
                 on_suite_published, test);
}

/* Turns the backend until the condition holds. */
#define WAIT_FOR(test, condition)                                                                  \
    do {                                                                                           \
        int64_t end_us = clock_microseconds() + WAIT_US;                                           \
        while (!(condition) && clock_microseconds() < end_us)                                      \
            (test)->backend->turn((test)->backend);                                                \
        assert_true(condition);                                                                    \
    } while (0)

static bool all_seen(const struct feed_test *test)
{
    for (size_t i = 1; i <= EVENTS; i++)
        if (test->seen[i] == 0)
            return false;
    return true;
}

static void test_event_arrives_as_it_was_published(void **state)
{
    struct feed_test *test = *state;
    publish(test, 1);
    WAIT_FOR(test, test->arrivals >= 1 && test->completions == 1);
    assert_int_equal(test->published, 1);
    assert_string_equal(test->last, "c m alice text 1700000000000");
    WAIT_FOR(test, test->backend->consumer->under_way == 0);
    WAIT_FOR(test, feed_lag(test->backend->consumer) == 0);
}

static void test_every_publish_completes_once_and_every_event_arrives(void **state)
{
    struct feed_test *test = *state;
    for (uint64_t n = 1; n <= EVENTS; n++)
        publish(test, n);
    WAIT_FOR(test, all_seen(test) && test->completions >= EVENTS);
    WAIT_FOR(test, test->backend->consumer->under_way == 0);
    assert_int_equal(test->completions, EVENTS);
    assert_int_equal(test->published, EVENTS);
    assert_true(feed_available(test->backend->producer));
}

static void test_item_that_was_not_settled_comes_again(void **state)
{
    struct feed_test *test = *state;
    test->keeps = true;
    for (uint64_t n = 1; n <= 3; n++)
        publish(test, n);
    WAIT_FOR(test, test->kept_count == 3);
    assert_true(feed_lag(test->backend->consumer) >= 3);
    feed_settle(test->kept[2], FEED_DONE,
                NULL); /* the last first: nothing before it may be passed */
    test->backend->turn(test->backend);
    test->backend->stop(test->backend);
    feed_settle(test->kept[0], FEED_SKIPPED, NULL);
    feed_settle(test->kept[1], FEED_SKIPPED, NULL);
    test->backend->close(test->backend);
    test->keeps = false;
    unsigned before[2] = {test->seen[1], test->seen[2]};
    open_suite_feed(test);
    WAIT_FOR(test, test->seen[1] > before[0] && test->seen[2] > before[1]);
}

static void test_poison_becomes_a_dead_letter(void **state)
{
    struct feed_test *test = *state;
    size_t before = test->backend->dead_letters(test->backend);
    test->result = FEED_POISON;
    publish(test, 1);
    WAIT_FOR(test, test->arrivals >= 1);
    WAIT_FOR(test, test->backend->consumer->under_way == 0);
    WAIT_FOR(test, test->backend->dead_letters(test->backend) == before + 1);
}

static void test_stopped_feed_refuses_events(void **state)
{
    struct feed_test *test = *state;
    test->backend->stop(test->backend);
    assert_false(feed_available(test->backend->producer));
    publish(test, 1);
    assert_int_equal(test->completions, 1);
    assert_int_equal(test->published, 0);
}

int feed_suite_run(struct feed_backend *(*make)(void), void (*free)(struct feed_backend *backend))
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_event_arrives_as_it_was_published, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_publish_completes_once_and_every_event_arrives,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_item_that_was_not_settled_comes_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_poison_becomes_a_dead_letter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stopped_feed_refuses_events, set_up, tear_down),
    };
    make_backend = make;
    free_backend = free;
    return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
