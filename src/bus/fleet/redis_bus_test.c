/* The bus on real servers, one and a cluster: what every bus does, and that each moment in which events may
 * have been missed is told. */
#include "bus/fleet/redis_bus.h"

#include "conformance/bus_suite.h"
#include "support/redis_server.h"
#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SOON_MS = 8000, FAILOVER_MS = 15000, POLL_WAIT_MS = 1 };

struct member {
    struct worker_loop worker;
    struct redis_client *client;
    struct bus *bus;
    char gaps[256]; /* "topic;" for each */
    unsigned messages;
};

struct fixture {
    const char *place; /* a URL up to its port */
    struct redis_server servers[REDIS_CLUSTER_SERVERS];
    struct member members[BUS_SUITE_PORTS];
};

static void open_member(struct fixture *fixture, size_t index,
                        const struct bus_suite_subscriber *ear)
{
    struct member *member = &fixture->members[index];
    memset(member, 0, sizeof(*member));
    worker_loop_open(&member->worker);
    member->client = worker_loop_redis(&member->worker, fixture->place, fixture->servers[0].port);
    member->bus = redis_bus_make(member->client, &member->worker.metrics, ear->on_event,
                                 ear->on_gap, ear->arg);
    assert_non_null(member->bus);
}

static void close_member(struct member *member)
{
    bus_free(&member->bus);
    redis_client_free(&member->client);
    worker_loop_close(&member->worker);
}

static bool is_settled(void *arg)
{
    const struct member *member = arg;
    return redis_available(member->client) && redis_bus_settled(member->bus);
}

static void settle(struct member *member, int64_t limit_ms)
{
    assert_true(worker_loop_until(&member->worker, is_settled, member, limit_ms));
}

/* ---- as every bus ---- */

static void suite_start(void *context, const struct bus_suite_subscriber ears[BUS_SUITE_PORTS])
{
    struct fixture *fixture = context;
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++) {
        open_member(fixture, i, &ears[i]);
        settle(&fixture->members[i], SOON_MS);
    }
}

static struct bus *suite_port(void *context, size_t index)
{
    return ((struct fixture *)context)->members[index].bus;
}

static void suite_stop(void *context)
{
    struct fixture *fixture = context;
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        close_member(&fixture->members[i]);
}

static void suite_settle(void *context)
{
    struct fixture *fixture = context;
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        settle(&fixture->members[i], SOON_MS);
}

static void suite_poll(void *context)
{
    struct fixture *fixture = context;
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        loop_turn(&fixture->members[i].worker.loop, POLL_WAIT_MS);
}

static int run_suite(struct fixture *fixture, const char *name)
{
    return bus_suite_run(&(struct bus_suite_backend){.name = name,
                                                     .context = fixture,
                                                     .start = suite_start,
                                                     .port = suite_port,
                                                     .stop = suite_stop,
                                                     .settle = suite_settle,
                                                     .poll = suite_poll});
}

/* ---- gaps ---- */

static void count_message(void *arg, struct slice topic, struct slice payload)
{
    (void)topic, (void)payload;
    ((struct member *)arg)->messages++;
}

static void note_gap(void *arg, struct slice topic)
{
    struct member *member = arg;
    size_t len = strlen(member->gaps);
    snprintf(member->gaps + len, sizeof(member->gaps) - len, "%.*s;", SLICE_FORMAT(topic));
}

static int open_single(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->place = "redis://127.0.0.1";
    redis_server_start(&fixture->servers[0], REDIS_DEFAULTS);
    open_member(fixture, 0,
                &(struct bus_suite_subscriber){count_message, note_gap, &fixture->members[0]});
    *state = fixture;
    return 0;
}

static int close_single(void **state)
{
    struct fixture *fixture = *state;
    close_member(&fixture->members[0]);
    redis_server_stop(&fixture->servers[0]);
    free(fixture);
    return 0;
}

static void a_topic_that_became_live_had_a_gap(void **state)
{
    struct fixture *fixture = *state;
    struct member *member = &fixture->members[0];
    bus_subscribe(member->bus, SLICE("a"));
    assert_string_equal(member->gaps, "");
    settle(member, SOON_MS);
    assert_string_equal(member->gaps, "a;");
    bus_subscribe(member->bus, SLICE("b"));
    settle(member, SOON_MS);
    assert_string_equal(member->gaps, "a;b;");
}

static bool has_three_gaps(void *arg)
{
    return strlen(((struct member *)arg)->gaps) >= strlen("a;a;b;");
}

static bool has_message(void *arg)
{
    return ((struct member *)arg)->messages > 0;
}

/* Whatever takes Redis away: when it is back each topic is told, and what comes then is heard. */
static void await_heal(struct fixture *fixture)
{
    struct member *member = &fixture->members[0];
    assert_true(worker_loop_until(&member->worker, has_three_gaps, member, FAILOVER_MS));
    assert_non_null(strstr(member->gaps + strlen("a;"), "a;"));
    assert_non_null(strstr(member->gaps, "b;"));
    settle(member, SOON_MS);
    bus_publish(member->bus, SLICE("a"), SLICE("x"));
    assert_true(worker_loop_until(&member->worker, has_message, member, SOON_MS));
}

static void a_server_that_died_and_came_back_is_a_gap(void **state)
{
    struct fixture *fixture = *state;
    struct member *member = &fixture->members[0];
    bus_subscribe(member->bus, SLICE("a"));
    settle(member, SOON_MS);
    redis_server_kill(&fixture->servers[0]);
    bus_publish(member->bus, SLICE("a"), SLICE("lost"));
    bus_subscribe(member->bus, SLICE("b")); /* meanwhile */
    worker_loop_run(&member->worker, 300);
    assert_int_equal(member->messages, 0);
    redis_server_restart(&fixture->servers[0]);
    await_heal(fixture);
}

static void a_cut_connection_is_a_gap(void **state)
{
    struct fixture *fixture = *state;
    struct member *member = &fixture->members[0];
    bus_subscribe(member->bus, SLICE("a"));
    settle(member, SOON_MS);
    char reply[REDIS_SERVER_REPLY_MAX];
    redis_server_ask(&fixture->servers[0], reply, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    bus_subscribe(member->bus, SLICE("b"));
    await_heal(fixture);
}

#define with_single(test) cmocka_unit_test_setup_teardown(test, open_single, close_single)

int main(void)
{
    static struct fixture fixture;
    const struct CMUnitTest tests[] = {
        with_single(a_topic_that_became_live_had_a_gap),
        with_single(a_server_that_died_and_came_back_is_a_gap),
        with_single(a_cut_connection_is_a_gap),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fixture.place = "redis://127.0.0.1";
    redis_server_start(&fixture.servers[0], REDIS_DEFAULTS);
    failed += run_suite(&fixture, "one Redis server");
    redis_server_stop(&fixture.servers[0]);
    fixture.place = "redis-cluster://127.0.0.1";
    redis_cluster_start(fixture.servers);
    failed += run_suite(&fixture, "a Redis Cluster");
    redis_cluster_stop(fixture.servers);
    return failed;
}
