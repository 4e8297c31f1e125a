#include "bus/mailbox/mailbox_bus.h"

#include "conformance/bus_suite.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS = BUS_SUITE_PORTS };

struct worker {
    struct loop loop;
    struct mailbox mailbox;
    struct metrics metrics;
    struct bus *bus;
    char events[512]; /* "topic=payload;" for each event */
    size_t count;
};

struct fixture {
    struct mailbox_bus_group *group;
    struct worker workers[WORKERS];
};

static void on_worker_event(void *arg, struct slice topic, struct slice payload)
{
    struct worker *worker = arg;
    size_t len = strlen(worker->events);
    worker->count++;
    snprintf(worker->events + len, sizeof(worker->events) - len, "%.*s=%.*s;", SLICE_FORMAT(topic),
             SLICE_FORMAT(payload));
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->group = mailbox_bus_group_make(WORKERS, 11);
    for (size_t i = 0; i < WORKERS; i++) {
        struct worker *worker = &fixture->workers[i];
        assert_true(loop_init(&worker->loop));
        assert_true(mailbox_init(&worker->mailbox, &worker->loop, MAILBOX_MAIL_MAX, worker));
        worker->bus = mailbox_bus_make(fixture->group, i, &worker->mailbox, &worker->metrics,
                                       on_worker_event, worker);
        assert_non_null(worker->bus);
    }
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < WORKERS; i++) {
        mailbox_free(&fixture->workers[i].mailbox);
        bus_free(&fixture->workers[i].bus);
        loop_free(&fixture->workers[i].loop);
    }
    mailbox_bus_group_free(&fixture->group);
    assert_null(fixture->group);
    free(fixture);
    return 0;
}

/* Turns every loop and checks the events that each worker received since the last check. */
static void expect_events(struct fixture *fixture, const char *first, const char *second,
                          const char *third)
{
    const char *expected[WORKERS] = {first, second, third};
    for (size_t i = 0; i < WORKERS; i++) {
        struct worker *worker = &fixture->workers[i];
        loop_turn(&worker->loop, 0);
        assert_string_equal(worker->events, expected[i]);
        worker->events[0] = '\0';
    }
}

static void events_reach_all_subscribers(void **state)
{
    struct fixture *fixture = *state;
    struct bus *first = fixture->workers[0].bus;
    bus_publish(first, SLICE("t"), SLICE("nobody"));
    expect_events(fixture, "", "", "");
    bus_subscribe(first, SLICE("t"));
    bus_subscribe(fixture->workers[2].bus, SLICE("t"));
    bus_publish(first, SLICE("t"), SLICE("1"));
    expect_events(fixture, "t=1;", "", "t=1;");
    bus_publish(fixture->workers[1].bus, SLICE("t"), SLICE("2"));
    expect_events(fixture, "t=2;", "", "t=2;");
    bus_unsubscribe(first, SLICE("t"));
    bus_publish(fixture->workers[2].bus, SLICE("t"), SLICE("3"));
    expect_events(fixture, "", "", "t=3;");
    bus_unsubscribe(fixture->workers[2].bus, SLICE("t"));
    bus_publish(fixture->workers[2].bus, SLICE("t"), SLICE("4"));
    expect_events(fixture, "", "", "");
}

static void own_events_come_at_once_and_others_by_mail(void **state)
{
    struct fixture *fixture = *state;
    bus_subscribe(fixture->workers[0].bus, SLICE("t"));
    bus_subscribe(fixture->workers[1].bus, SLICE("t"));
    bus_publish(fixture->workers[0].bus, SLICE("t"), SLICE("x"));
    assert_int_equal(fixture->workers[0].count, 1);
    assert_int_equal(fixture->workers[1].count, 0);
    expect_events(fixture, "t=x;", "t=x;", "");
}

static void events_of_one_sender_stay_in_order(void **state)
{
    struct fixture *fixture = *state;
    bus_subscribe(fixture->workers[1].bus, SLICE("a"));
    bus_subscribe(fixture->workers[1].bus, SLICE("b"));
    bus_publish(fixture->workers[0].bus, SLICE("a"), SLICE("1"));
    bus_publish(fixture->workers[0].bus, SLICE("b"), SLICE("2"));
    bus_publish(fixture->workers[0].bus, SLICE("a"), SLICE("3"));
    expect_events(fixture, "", "a=1;b=2;a=3;", "");
}

static void empty_payloads_are_delivered(void **state)
{
    struct fixture *fixture = *state;
    bus_subscribe(fixture->workers[1].bus, SLICE("t"));
    bus_publish(fixture->workers[0].bus, SLICE("t"), SLICE_NONE);
    expect_events(fixture, "", "t=;", "");
}

/* Topics that share a slot of the filter: an extra event may come, none may be missed. */
static void topics_that_share_a_filter_slot_lose_no_events(void **state)
{
    enum { TOPICS = 3 * MAILBOX_BUS_FILTER_SLOTS };
    struct fixture *fixture = *state;
    char text[16];
    for (int t = 0; t < TOPICS; t++) {
        struct slice topic = {text, (size_t)snprintf(text, sizeof(text), "t%d", t)};
        bus_subscribe(fixture->workers[1].bus, topic);
    }
    for (int t = 0; t < TOPICS; t += 2) {
        struct slice topic = {text, (size_t)snprintf(text, sizeof(text), "t%d", t)};
        bus_unsubscribe(fixture->workers[1].bus, topic);
    }
    for (int t = 1; t < TOPICS; t += 2) {
        struct slice topic = {text, (size_t)snprintf(text, sizeof(text), "t%d", t)};
        bus_publish(fixture->workers[0].bus, topic, SLICE("x"));
    }
    while (fixture->workers[1].count < TOPICS / 2) {
        size_t before = fixture->workers[1].count;
        loop_turn(&fixture->workers[1].loop, 0);
        assert_true(fixture->workers[1].count > before);
    }
    assert_int_equal(fixture->workers[1].count, TOPICS / 2);
}

/* Some of the topics share a slot with the topic of the worker itself. */
static void an_event_for_another_gateway_is_dropped(void **state)
{
    struct fixture *fixture = *state;
    char text[32];
    for (size_t i = 0; i < 2; i++)
        bus_subscribe(fixture->workers[i].bus, SLICE("server:gw:deliver"));
    for (int t = 0; t < 3 * MAILBOX_BUS_FILTER_SLOTS; t++) {
        struct slice topic = {text, (size_t)snprintf(text, sizeof(text), "server:g%d:deliver", t)};
        bus_publish(fixture->workers[0].bus, topic, SLICE("x"));
    }
    expect_events(fixture, "", "", "");
    bus_publish(fixture->workers[0].bus, SLICE("server:gw:deliver"), SLICE("1"));
    expect_events(fixture, "server:gw:deliver=1;", "server:gw:deliver=1;", "");
}

static void a_full_mailbox_drops_and_counts_events(void **state)
{
    struct fixture *fixture = *state;
    bus_subscribe(fixture->workers[1].bus, SLICE("t"));
    for (int i = 0; i < MAILBOX_MAIL_MAX + 3; i++)
        bus_publish(fixture->workers[0].bus, SLICE("t"), SLICE("x"));
    assert_int_equal(fixture->workers[0].metrics.values[METRIC_BUS_DROPPED], 3);
}

/* ---- threads ---- */

enum { EVENTS = 2000 };

static void *publish_and_subscribe(void *arg)
{
    struct worker *worker = arg;
    bus_subscribe(worker->bus, SLICE("all"));
    for (int i = 0; i < EVENTS; i++) {
        bus_subscribe(worker->bus, SLICE("some"));
        bus_publish(worker->bus, SLICE("all"), SLICE("x"));
        bus_unsubscribe(worker->bus, SLICE("some"));
        loop_turn(&worker->loop, 0);
    }
    return NULL;
}

static void workers_publish_to_each_other_across_threads(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[WORKERS];
    for (size_t i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, publish_and_subscribe, &fixture->workers[i]);
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < WORKERS; i++) {
        loop_turn(&fixture->workers[i].loop, 0);
        assert_in_range(fixture->workers[i].count, EVENTS, EVENTS * WORKERS);
        assert_int_equal(fixture->workers[i].metrics.values[METRIC_BUS_DROPPED], 0);
    }
}

/* ---- the bus suite ---- */

static void suite_start(void *context,
                        const struct bus_suite_subscriber subscribers[BUS_SUITE_PORTS])
{
    struct fixture **fixture = context;
    void *made;
    set_up(&made);
    *fixture = made;
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++) {
        struct bus *bus = (*fixture)->workers[i].bus;
        bus->on_event = subscribers[i].on_event;
        bus->on_gap = subscribers[i].on_gap;
        bus->arg = subscribers[i].arg;
    }
}

static struct bus *suite_port(void *context, size_t index)
{
    struct fixture **fixture = context;
    return (*fixture)->workers[index].bus;
}

static void suite_stop(void *context)
{
    struct fixture **fixture = context;
    void *made = *fixture;
    tear_down(&made);
}

static void suite_settle(void *context)
{
    (void)context;
}

static void suite_poll(void *context)
{
    struct fixture **fixture = context;
    for (size_t i = 0; i < WORKERS; i++)
        loop_turn(&(*fixture)->workers[i].loop, 0);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fixture(events_reach_all_subscribers),
        with_fixture(own_events_come_at_once_and_others_by_mail),
        with_fixture(events_of_one_sender_stay_in_order),
        with_fixture(empty_payloads_are_delivered),
        with_fixture(topics_that_share_a_filter_slot_lose_no_events),
        with_fixture(an_event_for_another_gateway_is_dropped),
        with_fixture(a_full_mailbox_drops_and_counts_events),
        with_fixture(workers_publish_to_each_other_across_threads),
    };
    struct fixture *fixture = NULL;
    const struct bus_suite_backend backend = {.name = "mailboxes",
                                              .context = &fixture,
                                              .start = suite_start,
                                              .port = suite_port,
                                              .stop = suite_stop,
                                              .settle = suite_settle,
                                              .poll = suite_poll};
    return cmocka_run_group_tests(tests, NULL, NULL) + bus_suite_run(&backend);
}
