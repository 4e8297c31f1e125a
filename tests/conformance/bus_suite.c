#include "conformance/bus_suite.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    PATIENCE_POLLS = 30000,
    QUIET_POLLS = 20, /* after these no more events are expected */
    RECEIVED_MAX = 4096,
    EVENTS = 1000,
    MODEL_TOPICS = 12,
    MODEL_ROUNDS = 25,
    LARGE_BYTES = 1 << 20,
};

struct fixture;

struct subscriber {
    struct fixture *fixture;
    size_t index;
    char received[RECEIVED_MAX]; /* "topic=payload;" for each event, as far as they fit */
    size_t count;
    size_t bytes;
    size_t gaps;
    size_t out_of_order;
    long last;
    struct slice unsubscribe_next; /* a topic to unsubscribe from inside the next event's hook */
    struct slice subscribe_next;   /* likewise, to subscribe to */
};

struct fixture {
    const struct bus_suite_backend *backend;
    struct subscriber subscribers[BUS_SUITE_PORTS];
};

static struct bus *port(struct fixture *fixture, size_t index)
{
    return fixture->backend->port(fixture->backend->context, index);
}

static void on_event(void *arg, struct slice topic, struct slice payload)
{
    struct subscriber *subscriber = arg;
    size_t len = strlen(subscriber->received);
    subscriber->count++;
    subscriber->bytes += payload.len;
    snprintf(subscriber->received + len, sizeof(subscriber->received) - len, "%.*s=%.*s;",
             SLICE_FORMAT(topic), payload.len < 64 ? (int)payload.len : 0, payload.data);
    char digits[32] = "";
    if (payload.len && payload.len < sizeof(digits))
        memcpy(digits, payload.data, payload.len);
    long number = strtol(digits, NULL, 10);
    subscriber->out_of_order += number < subscriber->last;
    subscriber->last = number;
    struct slice from = subscriber->unsubscribe_next, to = subscriber->subscribe_next;
    subscriber->unsubscribe_next = subscriber->subscribe_next = SLICE_NONE;
    if (from.data)
        bus_unsubscribe(port(subscriber->fixture, subscriber->index), from);
    if (to.data)
        bus_subscribe(port(subscriber->fixture, subscriber->index), to);
}

static void on_gap(void *arg, struct slice topic)
{
    struct subscriber *subscriber = arg;
    (void)topic;
    subscriber->gaps++;
}

/* ---- operations ---- */

static void subscribe(struct fixture *fixture, size_t index, const char *topic)
{
    bus_subscribe(port(fixture, index), slice_of(topic));
}

static void unsubscribe(struct fixture *fixture, size_t index, const char *topic)
{
    bus_unsubscribe(port(fixture, index), slice_of(topic));
}

static void publish(struct fixture *fixture, size_t index, const char *topic, const char *payload)
{
    bus_publish(port(fixture, index), slice_of(topic), slice_of(payload));
}

static void settle(struct fixture *fixture)
{
    fixture->backend->settle(fixture->backend->context);
}

static void poll_all(struct fixture *fixture, int times)
{
    for (int i = 0; i < times; i++)
        fixture->backend->poll(fixture->backend->context);
}

static void await_count(struct fixture *fixture, size_t index, size_t count)
{
    for (int i = 0; fixture->subscribers[index].count < count && i < PATIENCE_POLLS; i++)
        poll_all(fixture, 1);
    assert_int_equal(fixture->subscribers[index].count, count);
}

/* Expects the events that each subscriber received since the last expectation, and no others. */
static void expect_received(struct fixture *fixture, const char *first, const char *second,
                            const char *third)
{
    const char *expected[BUS_SUITE_PORTS] = {first, second, third};
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        for (int n = 0;
             strlen(fixture->subscribers[i].received) < strlen(expected[i]) && n < PATIENCE_POLLS;
             n++)
            poll_all(fixture, 1);
    poll_all(fixture, QUIET_POLLS);
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++) {
        assert_string_equal(fixture->subscribers[i].received, expected[i]);
        fixture->subscribers[i].received[0] = '\0';
    }
}

/* ---- tests ---- */

static void event_reaches_all_subscribers_including_its_sender(void **state)
{
    struct fixture *fixture = *state;
    publish(fixture, 0, "t", "nobody");
    expect_received(fixture, "", "", "");
    subscribe(fixture, 0, "t");
    subscribe(fixture, 2, "t");
    settle(fixture);
    publish(fixture, 0, "t", "1");
    expect_received(fixture, "t=1;", "", "t=1;");
    publish(fixture, 1, "t", "2");
    expect_received(fixture, "t=2;", "", "t=2;");
    unsubscribe(fixture, 0, "t");
    settle(fixture);
    publish(fixture, 2, "t", "3");
    expect_received(fixture, "", "", "t=3;");
    unsubscribe(fixture, 2, "t");
    settle(fixture);
    publish(fixture, 2, "t", "4");
    expect_received(fixture, "", "", "");
}

static void repeated_subscription_receives_events_again(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 3; i++) {
        subscribe(fixture, 1, "t");
        settle(fixture);
        publish(fixture, 0, "t", "x");
        expect_received(fixture, "", "t=x;", "");
        unsubscribe(fixture, 1, "t");
    }
    subscribe(fixture, 1, "t"); /* before the unsubscription has taken effect */
    settle(fixture);
    publish(fixture, 0, "t", "y");
    expect_received(fixture, "", "t=y;", "");
}

static void broadcast_reaches_every_gateway(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        bus_subscribe(port(fixture, i), BUS_TOPIC_ALL);
    settle(fixture);
    bus_publish(port(fixture, 1), BUS_TOPIC_ALL, SLICE("x"));
    expect_received(fixture, "broadcast=x;", "broadcast=x;", "broadcast=x;");
}

static void topic_of_a_gateway_reaches_only_that_gateway(void **state)
{
    struct fixture *fixture = *state;
    char text[32];
    for (int i = 0; i < BUS_SUITE_PORTS; i++) {
        snprintf(text, sizeof(text), "server:gw-%d:deliver", i);
        subscribe(fixture, (size_t)i, text);
    }
    settle(fixture);
    publish(fixture, 0, "server:gw-2:deliver", "a");
    publish(fixture, 1, "server:gw-1:deliver", "b");
    publish(fixture, 1, "server:gw-9:deliver", "c");
    expect_received(fixture, "", "server:gw-1:deliver=b;", "server:gw-2:deliver=a;");
}

static void events_of_one_sender_keep_their_order(void **state)
{
    struct fixture *fixture = *state;
    char text[16];
    subscribe(fixture, 0, "t");
    subscribe(fixture, 1, "t");
    settle(fixture);
    for (int i = 0; i < EVENTS; i++) {
        snprintf(text, sizeof(text), "%d", i);
        publish(fixture, 0, "t", text);
    }
    await_count(fixture, 0, EVENTS);
    await_count(fixture, 1, EVENTS);
    assert_int_equal(fixture->subscribers[0].out_of_order, 0);
    assert_int_equal(fixture->subscribers[1].out_of_order, 0);
}

/* Topics contain ids, which may have any characters; even control characters must not become commands. */
static void topic_may_have_any_characters(void **state)
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
    struct fixture *fixture = *state;
    size_t count = sizeof(names) / sizeof(*names);
    for (size_t i = 0; i < count; i++)
        subscribe(fixture, 1, names[i]);
    settle(fixture);
    for (size_t i = 0; i < count; i++) {
        char expected[256];
        snprintf(expected, sizeof(expected), "%s=x;", names[i]);
        publish(fixture, 0, names[i], "x");
        expect_received(fixture, "", expected, "");
    }
}

static void payload_may_have_any_bytes_and_a_megabyte(void **state)
{
    struct fixture *fixture = *state;
    char *large = malloc(LARGE_BYTES);
    assert_non_null(large);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        large[i] = (char)(i * 31);
    subscribe(fixture, 0, "t");
    subscribe(fixture, 1, "t");
    settle(fixture);
    bus_publish(port(fixture, 0), SLICE("t"), SLICE_NONE);
    bus_publish(port(fixture, 0), SLICE("t"), (struct slice){large, LARGE_BYTES});
    bus_publish(port(fixture, 0), SLICE("t"), SLICE("\r\n\0$"));
    for (size_t i = 0; i < 2; i++) {
        await_count(fixture, i, 3);
        assert_int_equal(fixture->subscribers[i].bytes, LARGE_BYTES + 4);
    }
    free(large);
}

static void subscriptions_may_change_inside_an_event_hook(void **state)
{
    struct fixture *fixture = *state;
    subscribe(fixture, 0, "a");
    subscribe(fixture, 1, "a");
    settle(fixture);
    for (size_t i = 0; i < 2; i++) {
        fixture->subscribers[i].unsubscribe_next = SLICE("a");
        fixture->subscribers[i].subscribe_next = SLICE("b");
    }
    publish(fixture, 0, "a", "1");
    expect_received(fixture, "a=1;", "a=1;", "");
    settle(fixture);
    publish(fixture, 0, "a", "2");
    publish(fixture, 0, "b", "3");
    expect_received(fixture, "b=3;", "b=3;", "");
}

/* Gateways subscribe and unsubscribe at random, and receive exactly what is published while they are subscribed. */
static void subscribers_receive_exactly_what_is_published(void **state)
{
    struct fixture *fixture = *state;
    bool subscribed[BUS_SUITE_PORTS][MODEL_TOPICS] = {{false}};
    size_t expected[BUS_SUITE_PORTS] = {0};
    struct random random;
    random_init_seeded(&random, 77);
    for (int round = 0; round < MODEL_ROUNDS; round++) {
        char topic[32];
        for (int i = 0; i < 8; i++) {
            size_t gateway = random_below(&random, BUS_SUITE_PORTS);
            size_t topic_number = random_below(&random, MODEL_TOPICS);
            snprintf(topic, sizeof(topic), "presence:%zu", topic_number);
            subscribed[gateway][topic_number] ? unsubscribe(fixture, gateway, topic)
                                              : subscribe(fixture, gateway, topic);
            subscribed[gateway][topic_number] = !subscribed[gateway][topic_number];
        }
        settle(fixture);
        for (size_t topic_number = 0; topic_number < MODEL_TOPICS; topic_number++) {
            snprintf(topic, sizeof(topic), "presence:%zu", topic_number);
            publish(fixture, random_below(&random, BUS_SUITE_PORTS), topic, "x");
            for (size_t gateway = 0; gateway < BUS_SUITE_PORTS; gateway++)
                expected[gateway] += subscribed[gateway][topic_number];
        }
        for (size_t gateway = 0; gateway < BUS_SUITE_PORTS; gateway++)
            await_count(fixture, gateway, expected[gateway]);
        poll_all(fixture, QUIET_POLLS); /* no event is under way when somebody subscribes next */
    }
}

/* ---- running ---- */

static int set_up(void **state)
{
    const struct bus_suite_backend *backend = *state;
    struct bus_suite_subscriber hooks[BUS_SUITE_PORTS];
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture->backend = backend;
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++) {
        fixture->subscribers[i].fixture = fixture;
        fixture->subscribers[i].index = i;
        hooks[i] = (struct bus_suite_subscriber){on_event, on_gap, &fixture->subscribers[i]};
    }
    backend->start(backend->context, hooks);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    fixture->backend->stop(fixture->backend->context);
    free(fixture);
    return 0;
}

int bus_suite_run(const struct bus_suite_backend *backend)
{
    void *initial = (void *)(uintptr_t)backend;
#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name, set_up, tear_down, initial                                                    \
    }
    const struct CMUnitTest tests[] = {
        TEST(event_reaches_all_subscribers_including_its_sender),
        TEST(repeated_subscription_receives_events_again),
        TEST(broadcast_reaches_every_gateway),
        TEST(topic_of_a_gateway_reaches_only_that_gateway),
        TEST(events_of_one_sender_keep_their_order),
        TEST(topic_may_have_any_characters),
        TEST(payload_may_have_any_bytes_and_a_megabyte),
        TEST(subscriptions_may_change_inside_an_event_hook),
        TEST(subscribers_receive_exactly_what_is_published),
    };
#undef TEST
    print_message("bus suite on %s\n", backend->name);
    return cmocka_run_group_tests_name("bus_suite", tests, NULL, NULL);
}
