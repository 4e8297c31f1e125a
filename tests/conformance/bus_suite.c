#include "conformance/bus_suite.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    PATIENCE_POLLS = 3000,
    QUIET_POLLS = 20, /* what would come has come */
    HEARD_MAX = 4096,
    EVENTS = 1000,
    MODEL_TOPICS = 12,
    MODEL_ROUNDS = 25,
    LARGE_BYTES = 1 << 20,
};

struct hall;

struct listener {
    struct hall *hall;
    size_t index;
    char heard[HEARD_MAX]; /* "topic=payload;" for each event, as far as there is room */
    size_t count;
    size_t bytes;
    size_t gaps;
    size_t in_disorder;
    long last;
    struct slice leaves;     /* unsubscribed from within, when it is heard */
    struct slice subscribes; /* likewise */
};

struct hall {
    const struct bus_suite_backend *backend;
    struct listener listeners[BUS_SUITE_PORTS];
};

static struct bus *port(struct hall *hall, size_t index)
{
    return hall->backend->port(hall->backend->context, index);
}

static void received(void *arg, struct slice topic, struct slice payload)
{
    struct listener *listener = arg;
    size_t len = strlen(listener->heard);
    listener->count++;
    listener->bytes += payload.len;
    snprintf(listener->heard + len, sizeof(listener->heard) - len, "%.*s=%.*s;",
             SLICE_FORMAT(topic), payload.len < 64 ? (int)payload.len : 0, payload.data);
    char digits[32] = "";
    if (payload.len && payload.len < sizeof(digits))
        memcpy(digits, payload.data, payload.len);
    long number = strtol(digits, NULL, 10);
    listener->in_disorder += number < listener->last;
    listener->last = number;
    struct slice leaves = listener->leaves, subscribes = listener->subscribes;
    listener->leaves = listener->subscribes = SLICE_NONE;
    if (leaves.data)
        bus_unsubscribe(port(listener->hall, listener->index), leaves);
    if (subscribes.data)
        bus_subscribe(port(listener->hall, listener->index), subscribes);
}

static void gap(void *arg, struct slice topic)
{
    struct listener *listener = arg;
    (void)topic;
    listener->gaps++;
}

/* ---- what tests say ---- */

static void subscribe(struct hall *hall, size_t index, const char *topic)
{
    bus_subscribe(port(hall, index), slice_of(topic));
}

static void unsubscribe(struct hall *hall, size_t index, const char *topic)
{
    bus_unsubscribe(port(hall, index), slice_of(topic));
}

static void publish(struct hall *hall, size_t index, const char *topic, const char *payload)
{
    bus_publish(port(hall, index), slice_of(topic), slice_of(payload));
}

static void settle(struct hall *hall)
{
    hall->backend->settle(hall->backend->context);
}

static void poll_all(struct hall *hall, int times)
{
    for (int i = 0; i < times; i++)
        hall->backend->poll(hall->backend->context);
}

static void await_count(struct hall *hall, size_t index, size_t count)
{
    for (int i = 0; hall->listeners[index].count < count && i < PATIENCE_POLLS; i++)
        poll_all(hall, 1);
    assert_int_equal(hall->listeners[index].count, count);
}

/* What each has heard since the last call, when all is quiet. */
static void expect_heard(struct hall *hall, const char *first, const char *second,
                         const char *third)
{
    const char *expected[BUS_SUITE_PORTS] = {first, second, third};
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        for (int n = 0;
             strlen(hall->listeners[i].heard) < strlen(expected[i]) && n < PATIENCE_POLLS; n++)
            poll_all(hall, 1);
    poll_all(hall, QUIET_POLLS);
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++) {
        assert_string_equal(hall->listeners[i].heard, expected[i]);
        hall->listeners[i].heard[0] = '\0';
    }
}

/* ---- tests ---- */

static void events_reach_all_who_subscribed_the_sender_too(void **state)
{
    struct hall *hall = *state;
    publish(hall, 0, "t", "nobody");
    expect_heard(hall, "", "", "");
    subscribe(hall, 0, "t");
    subscribe(hall, 2, "t");
    settle(hall);
    publish(hall, 0, "t", "1");
    expect_heard(hall, "t=1;", "", "t=1;");
    publish(hall, 1, "t", "2");
    expect_heard(hall, "t=2;", "", "t=2;");
    unsubscribe(hall, 0, "t");
    settle(hall);
    publish(hall, 2, "t", "3");
    expect_heard(hall, "", "", "t=3;");
    unsubscribe(hall, 2, "t");
    settle(hall);
    publish(hall, 2, "t", "4");
    expect_heard(hall, "", "", "");
}

static void who_comes_back_hears_again(void **state)
{
    struct hall *hall = *state;
    for (int i = 0; i < 3; i++) {
        subscribe(hall, 1, "t");
        settle(hall);
        publish(hall, 0, "t", "x");
        expect_heard(hall, "", "t=x;", "");
        unsubscribe(hall, 1, "t");
    }
    subscribe(hall, 1, "t"); /* before the last word about it is through */
    settle(hall);
    publish(hall, 0, "t", "y");
    expect_heard(hall, "", "t=y;", "");
}

static void all_hear_a_broadcast(void **state)
{
    struct hall *hall = *state;
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        bus_subscribe(port(hall, i), BUS_TOPIC_ALL);
    settle(hall);
    bus_publish(port(hall, 1), BUS_TOPIC_ALL, SLICE("x"));
    expect_heard(hall, "broadcast=x;", "broadcast=x;", "broadcast=x;");
}

static void a_gateways_topic_is_its_own(void **state)
{
    struct hall *hall = *state;
    char text[32];
    for (int i = 0; i < BUS_SUITE_PORTS; i++) {
        snprintf(text, sizeof(text), "server:gw-%d:deliver", i);
        subscribe(hall, (size_t)i, text);
    }
    settle(hall);
    publish(hall, 0, "server:gw-2:deliver", "a");
    publish(hall, 1, "server:gw-1:deliver", "b");
    publish(hall, 1, "server:gw-9:deliver", "c");
    expect_heard(hall, "", "server:gw-1:deliver=b;", "server:gw-2:deliver=a;");
}

static void one_senders_events_keep_their_order(void **state)
{
    struct hall *hall = *state;
    char text[16];
    subscribe(hall, 0, "t");
    subscribe(hall, 1, "t");
    settle(hall);
    for (int i = 0; i < EVENTS; i++) {
        snprintf(text, sizeof(text), "%d", i);
        publish(hall, 0, "t", text);
    }
    await_count(hall, 0, EVENTS);
    await_count(hall, 1, EVENTS);
    assert_int_equal(hall->listeners[0].in_disorder, 0);
    assert_int_equal(hall->listeners[1].in_disorder, 0);
}

/* Ids are anything without a control character, and even those must not become commands. */
static void any_name_is_a_topic(void **state)
{
    static const char *const names[] = {
        "presence:a b",
        "presence:a:b",
        "presence:{a}",
        "presence:{",
        "presence:}{",
        "presence:{}x",
        "presence:a\r\nPING",
        "presence:\xf0\x9f\x98\x80",
        "chat:*:typing",
        "chat:[ab]?:presence",
        "presence:\"'\\",
        "presence:*",
        "presence:0123456789012345678901234567890123456789012345678901234567890123456789012345678901"
        "2345678901234567890123456789012345678901234567"};
    struct hall *hall = *state;
    size_t count = sizeof(names) / sizeof(*names);
    for (size_t i = 0; i < count; i++)
        subscribe(hall, 1, names[i]);
    settle(hall);
    for (size_t i = 0; i < count; i++) {
        char expected[256];
        snprintf(expected, sizeof(expected), "%s=x;", names[i]);
        publish(hall, 0, names[i], "x");
        expect_heard(hall, "", expected, "");
    }
}

static void any_bytes_are_a_payload(void **state)
{
    struct hall *hall = *state;
    char *large = malloc(LARGE_BYTES);
    assert_non_null(large);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        large[i] = (char)(i * 31);
    subscribe(hall, 0, "t");
    subscribe(hall, 1, "t");
    settle(hall);
    bus_publish(port(hall, 0), SLICE("t"), SLICE_NONE);
    bus_publish(port(hall, 0), SLICE("t"), (struct slice){large, LARGE_BYTES});
    bus_publish(port(hall, 0), SLICE("t"), SLICE("\r\n\0$"));
    for (size_t i = 0; i < 2; i++) {
        await_count(hall, i, 3);
        assert_int_equal(hall->listeners[i].bytes, LARGE_BYTES + 4);
    }
    free(large);
}

static void one_may_leave_and_come_from_within(void **state)
{
    struct hall *hall = *state;
    subscribe(hall, 0, "a");
    subscribe(hall, 1, "a");
    settle(hall);
    for (size_t i = 0; i < 2; i++) {
        hall->listeners[i].leaves = SLICE("a");
        hall->listeners[i].subscribes = SLICE("b");
    }
    publish(hall, 0, "a", "1");
    expect_heard(hall, "a=1;", "a=1;", "");
    settle(hall);
    publish(hall, 0, "a", "2");
    publish(hall, 0, "b", "3");
    expect_heard(hall, "b=3;", "b=3;", "");
}

/* Random comings and goings: each hears exactly what was published while it was subscribed. */
static void nothing_is_missed_once_it_is_live(void **state)
{
    struct hall *hall = *state;
    bool subscribed[BUS_SUITE_PORTS][MODEL_TOPICS] = {{false}};
    size_t expected[BUS_SUITE_PORTS] = {0};
    struct random random;
    random_init_seeded(&random, 77);
    for (int round = 0; round < MODEL_ROUNDS; round++) {
        char topic[32];
        for (int i = 0; i < 8; i++) {
            size_t who = random_below(&random, BUS_SUITE_PORTS);
            size_t what = random_below(&random, MODEL_TOPICS);
            snprintf(topic, sizeof(topic), "presence:%zu", what);
            subscribed[who][what] ? unsubscribe(hall, who, topic) : subscribe(hall, who, topic);
            subscribed[who][what] = !subscribed[who][what];
        }
        settle(hall);
        for (size_t what = 0; what < MODEL_TOPICS; what++) {
            snprintf(topic, sizeof(topic), "presence:%zu", what);
            publish(hall, random_below(&random, BUS_SUITE_PORTS), topic, "x");
            for (size_t who = 0; who < BUS_SUITE_PORTS; who++)
                expected[who] += subscribed[who][what];
        }
        for (size_t who = 0; who < BUS_SUITE_PORTS; who++)
            await_count(hall, who, expected[who]);
        poll_all(hall, QUIET_POLLS); /* what is still under way reaches nobody who comes later */
    }
}

/* ---- running ---- */

static int open_hall(void **state)
{
    const struct bus_suite_backend *backend = *state;
    struct bus_suite_subscriber ears[BUS_SUITE_PORTS];
    struct hall *hall = calloc(1, sizeof(*hall));
    assert_non_null(hall);
    hall->backend = backend;
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++) {
        hall->listeners[i].hall = hall;
        hall->listeners[i].index = i;
        ears[i] = (struct bus_suite_subscriber){received, gap, &hall->listeners[i]};
    }
    backend->start(backend->context, ears);
    *state = hall;
    return 0;
}

static int close_hall(void **state)
{
    struct hall *hall = *state;
    hall->backend->stop(hall->backend->context);
    free(hall);
    return 0;
}

int bus_suite_run(const struct bus_suite_backend *backend)
{
    void *initial = (void *)(uintptr_t)backend;
#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name, open_hall, close_hall, initial                                                \
    }
    const struct CMUnitTest tests[] = {
        TEST(events_reach_all_who_subscribed_the_sender_too),
        TEST(who_comes_back_hears_again),
        TEST(all_hear_a_broadcast),
        TEST(a_gateways_topic_is_its_own),
        TEST(one_senders_events_keep_their_order),
        TEST(any_name_is_a_topic),
        TEST(any_bytes_are_a_payload),
        TEST(one_may_leave_and_come_from_within),
        TEST(nothing_is_missed_once_it_is_live),
    };
#undef TEST
    print_message("bus suite on %s\n", backend->name);
    return cmocka_run_group_tests_name("bus_suite", tests, NULL, NULL);
}
