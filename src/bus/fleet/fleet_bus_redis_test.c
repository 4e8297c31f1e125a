/* The fleet bus where only Redis connects its gateways, on a single server and on a cluster: it passes the
 * bus suite, and it reports every gap in which events may have been missed. */
#include "bus/fleet/fleet_bus.h"
#include "bus/fleet/redis_carrier.h"

#include "conformance/bus_suite.h"
#include "support/redis_server.h"
#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SOON_MS = 30000, FAILOVER_MS = 60000, POLL_WAIT_MS = 1 };

struct gateway {
    struct worker_loop worker;
    struct mailbox mailbox;
    struct redis_client *client;
    struct bus *bus;
    char gaps[256]; /* "topic;" for each */
    unsigned messages;
};

struct fixture {
    const char *url_prefix; /* up to the port */
    struct redis_server servers[REDIS_CLUSTER_SERVERS];
    struct gateway gateways[BUS_SUITE_PORTS];
    struct mailbox_bus_group *groups[BUS_SUITE_PORTS];
    size_t gateway_count;
};

/* Makes gateway `index` worker number `worker` of a process without peer links. */
static void open_gateway(struct fixture *fixture, size_t index, struct mailbox_bus_group *group,
                         size_t worker, size_t workers,
                         const struct bus_suite_subscriber *subscriber)
{
    struct gateway *gateway = &fixture->gateways[index];
    memset(gateway, 0, sizeof(*gateway));
    worker_loop_open(&gateway->worker);
    assert_true(mailbox_init(&gateway->mailbox, &gateway->worker.loop, MAILBOX_MAIL_MAX, gateway));
    gateway->client =
        worker_loop_redis(&gateway->worker, fixture->url_prefix, fixture->servers[0].port);
    gateway->bus =
        fleet_bus_make(&(struct fleet_bus_options){.carrier = redis_carrier_make(gateway->client),
                                                   .group = group,
                                                   .index = worker,
                                                   .workers = workers,
                                                   .mailbox = &gateway->mailbox,
                                                   .metrics = &gateway->worker.metrics,
                                                   .process = SLICE("gw"),
                                                   .on_event = subscriber->on_event,
                                                   .on_gap = subscriber->on_gap,
                                                   .arg = subscriber->arg});
    assert_non_null(gateway->bus);
    fixture->gateway_count = index + 1;
}

static void close_gateways(struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->gateway_count; i++)
        mailbox_free(&fixture->gateways[i].mailbox);
    for (size_t i = 0; i < fixture->gateway_count; i++) {
        bus_free(&fixture->gateways[i].bus);
        redis_client_free(&fixture->gateways[i].client);
        worker_loop_close(&fixture->gateways[i].worker);
    }
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        mailbox_bus_group_free(&fixture->groups[i]);
}

static void poll_gateways(void *context)
{
    struct fixture *fixture = context;
    for (size_t i = 0; i < fixture->gateway_count; i++)
        loop_turn(&fixture->gateways[i].worker.loop, POLL_WAIT_MS);
}

static void await(struct fixture *fixture, bool (*holds)(const struct fixture *fixture),
                  int64_t limit_ms)
{
    int64_t end_us = clock_microseconds() + limit_ms * 1000;
    while (!holds(fixture) && clock_microseconds() < end_us)
        poll_gateways(fixture);
    assert_true(holds(fixture));
}

static bool is_settled(const struct fixture *fixture)
{
    bool settled = true;
    for (size_t i = 0; i < fixture->gateway_count; i++)
        settled &= redis_available(fixture->gateways[i].client) &&
                   fleet_bus_is_settled(fixture->gateways[i].bus);
    return settled;
}

static void settle(void *context)
{
    await(context, is_settled, SOON_MS);
}

/* ---- the bus suite ---- */

/* The gateways are three workers of one process: mailboxes carry BUS_TOPIC_ALL, Redis carries the rest. */
static void suite_start(void *context,
                        const struct bus_suite_subscriber subscribers[BUS_SUITE_PORTS])
{
    struct fixture *fixture = context;
    fixture->groups[0] = mailbox_bus_group_make(BUS_SUITE_PORTS, 5);
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        open_gateway(fixture, i, fixture->groups[0], i, BUS_SUITE_PORTS, &subscribers[i]);
    settle(fixture);
}

static struct bus *suite_port(void *context, size_t index)
{
    return ((struct fixture *)context)->gateways[index].bus;
}

/* Redis must have carried all events but the one for a gateway that does not exist. */
static void suite_stop(void *context)
{
    struct fixture *fixture = context;
    int64_t rerouted = 0;
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        rerouted += fixture->gateways[i].worker.metrics.values[METRIC_BUS_REROUTED];
    assert_in_range(rerouted, 0, 1);
    close_gateways(fixture);
}

static int run_suite(struct fixture *fixture, const char *name)
{
    return bus_suite_run(&(struct bus_suite_backend){.name = name,
                                                     .context = fixture,
                                                     .start = suite_start,
                                                     .port = suite_port,
                                                     .stop = suite_stop,
                                                     .settle = settle,
                                                     .poll = poll_gateways});
}

/* ---- gaps ---- */

static void count_message(void *arg, struct slice topic, struct slice payload)
{
    (void)topic, (void)payload;
    ((struct gateway *)arg)->messages++;
}

static void note_gap(void *arg, struct slice topic)
{
    struct gateway *gateway = arg;
    size_t len = strlen(gateway->gaps);
    snprintf(gateway->gaps + len, sizeof(gateway->gaps) - len, "%.*s;", SLICE_FORMAT(topic));
}

/* Gateway 0 subscribes, gateway 1 publishes; each is a process of its own, so only Redis connects them. */
static int open_two_processes(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->url_prefix = "redis://127.0.0.1";
    redis_server_start(&fixture->servers[0], REDIS_DEFAULTS);
    for (size_t i = 0; i < 2; i++) {
        fixture->groups[i] = mailbox_bus_group_make(1, 5);
        open_gateway(
            fixture, i, fixture->groups[i], 0, 1,
            &(struct bus_suite_subscriber){count_message, note_gap, &fixture->gateways[i]});
    }
    *state = fixture;
    return 0;
}

static int close_two_processes(void **state)
{
    struct fixture *fixture = *state;
    close_gateways(fixture);
    redis_server_stop(&fixture->servers[0]);
    free(fixture);
    return 0;
}

static void each_topic_reports_a_gap_when_it_becomes_live(void **state)
{
    struct fixture *fixture = *state;
    struct gateway *gateway = &fixture->gateways[0];
    bus_subscribe(gateway->bus, SLICE("a"));
    assert_string_equal(gateway->gaps, "");
    settle(fixture);
    assert_string_equal(gateway->gaps, "a;");
    bus_subscribe(gateway->bus, SLICE("b"));
    settle(fixture);
    assert_string_equal(gateway->gaps, "a;b;");
}

static bool has_three_gaps(const struct fixture *fixture)
{
    return strlen(fixture->gateways[0].gaps) >= strlen("a;a;b;");
}

static bool has_message(const struct fixture *fixture)
{
    return fixture->gateways[0].messages > 0;
}

/* Once Redis is back, each topic reports a gap and events arrive again. */
static void await_recovery(struct fixture *fixture)
{
    struct gateway *gateway = &fixture->gateways[0];
    await(fixture, has_three_gaps, FAILOVER_MS);
    assert_non_null(strstr(gateway->gaps + strlen("a;"), "a;"));
    assert_non_null(strstr(gateway->gaps, "b;"));
    settle(fixture);
    bus_publish(fixture->gateways[1].bus, SLICE("a"), SLICE("x"));
    await(fixture, has_message, SOON_MS);
}

static void a_restarted_server_causes_a_gap_of_each_topic(void **state)
{
    struct fixture *fixture = *state;
    struct gateway *gateway = &fixture->gateways[0];
    bus_subscribe(gateway->bus, SLICE("a"));
    settle(fixture);
    redis_server_kill(&fixture->servers[0]);
    bus_publish(fixture->gateways[1].bus, SLICE("a"), SLICE("lost"));
    bus_subscribe(gateway->bus, SLICE("b")); /* while the server is down */
    int64_t end_us = clock_microseconds() + 300 * 1000;
    while (clock_microseconds() < end_us)
        poll_gateways(fixture);
    assert_int_equal(gateway->messages, 0);
    redis_server_restart(&fixture->servers[0]);
    await_recovery(fixture);
}

static void a_cut_connection_causes_a_gap_of_each_topic(void **state)
{
    struct fixture *fixture = *state;
    struct gateway *gateway = &fixture->gateways[0];
    bus_subscribe(gateway->bus, SLICE("a"));
    settle(fixture);
    char reply[REDIS_SERVER_REPLY_MAX];
    redis_server_ask(&fixture->servers[0], reply, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    bus_subscribe(gateway->bus, SLICE("b"));
    await_recovery(fixture);
}

#define with_two_processes(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, open_two_processes, close_two_processes)

int main(void)
{
    static struct fixture fixture;
    const struct CMUnitTest tests[] = {
        with_two_processes(each_topic_reports_a_gap_when_it_becomes_live),
        with_two_processes(a_restarted_server_causes_a_gap_of_each_topic),
        with_two_processes(a_cut_connection_causes_a_gap_of_each_topic),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fixture.url_prefix = "redis://127.0.0.1";
    redis_server_start(&fixture.servers[0], REDIS_DEFAULTS);
    failed += run_suite(&fixture, "one Redis server");
    redis_server_stop(&fixture.servers[0]);
    fixture.url_prefix = "redis-cluster://127.0.0.1";
    redis_cluster_start(fixture.servers);
    failed += run_suite(&fixture, "a Redis Cluster");
    redis_cluster_stop(fixture.servers);
    return failed;
}
