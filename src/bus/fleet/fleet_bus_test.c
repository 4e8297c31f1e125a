/* Two workers in one process and one in another: with Redis, without it, and while it fails and returns. */
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

enum { SOON_TURNS = 30000, TURN_MS = 1, EVENTS = 600, PROCESSES = 2 };

#define SECRET SLICE("an open secret of this test")

struct gateway {
    struct worker_loop worker;
    struct mailbox mailbox;
    struct redis_client *client;
    struct bus *bus;
};

/* Gateways 0 and 1 are the workers of the process `gw`, gateway 2 is the process `gw-2`. */
struct fixture {
    const char *url_prefix; /* up to the port */
    bool has_redis;
    atomic_bool is_alone;
    struct redis_server servers[REDIS_CLUSTER_SERVERS];
    struct gateway gateways[BUS_SUITE_PORTS];
    struct mailbox_bus_group *groups[PROCESSES];
    struct peer_hub *hubs[PROCESSES];
    unsigned received[EVENTS]; /* how often gateway 2 received each */
    size_t received_count;
    size_t gaps; /* reported to gateway 2 */
};

static size_t process_of(size_t index)
{
    return index == 2;
}

static struct slice name_of(size_t process)
{
    return process ? SLICE("gw-2") : SLICE("gw");
}

static void open_gateway(struct fixture *fixture, size_t index,
                         const struct bus_suite_subscriber *ear)
{
    struct gateway *gateway = &fixture->gateways[index];
    size_t process = process_of(index);
    memset(gateway, 0, sizeof(*gateway));
    worker_loop_open(&gateway->worker);
    assert_true(mailbox_init(&gateway->mailbox, &gateway->worker.loop, MAILBOX_MAIL_MAX, gateway));
    gateway->client =
        worker_loop_redis(&gateway->worker, fixture->url_prefix, fixture->servers[0].port);
    gateway->bus =
        fleet_bus_make(&(struct fleet_bus_options){.carrier = redis_carrier_make(gateway->client),
                                                   .group = fixture->groups[process],
                                                   .index = process ? 0 : index,
                                                   .workers = process ? 1 : 2,
                                                   .mailbox = &gateway->mailbox,
                                                   .metrics = &gateway->worker.metrics,
                                                   .process = name_of(process),
                                                   .is_alone = &fixture->is_alone,
                                                   .on_event = ear->on_event,
                                                   .on_gap = ear->on_gap,
                                                   .arg = ear->arg});
    assert_non_null(gateway->bus);
}

static void open_hub(struct fixture *fixture, size_t process)
{
    struct gateway *gateway = &fixture->gateways[process ? 2 : 0];
    char error[LISTENER_ERROR_TEXT_MAX];
    fixture->hubs[process] =
        peer_hub_make(&(struct peer_hub_options){.loop = &gateway->worker.loop,
                                                 .streams = &gateway->worker.streams,
                                                 .random = &gateway->worker.random,
                                                 .metrics = &gateway->worker.metrics,
                                                 .mailbox = &gateway->mailbox,
                                                 .name = name_of(process),
                                                 .secret = SECRET,
                                                 .on_event = fleet_bus_relay,
                                                 .arg = gateway->bus});
    assert_non_null(fixture->hubs[process]);
    assert_true(peer_hub_listen(fixture->hubs[process], "127.0.0.1:0", error));
}

static void poll_all(void *context)
{
    struct fixture *fixture = context;
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        loop_turn(&fixture->gateways[i].worker.loop, TURN_MS);
}

static bool is_settled(const struct fixture *fixture)
{
    bool settled = peer_hub_open_links(fixture->hubs[0]) && peer_hub_open_links(fixture->hubs[1]);
    for (size_t i = 0; i < BUS_SUITE_PORTS && fixture->has_redis; i++)
        settled &= redis_available(fixture->gateways[i].client) &&
                   fleet_bus_is_settled(fixture->gateways[i].bus);
    return settled;
}

static void settle(void *context)
{
    struct fixture *fixture = context;
    for (int i = 0; !is_settled(fixture) && i < SOON_TURNS; i++)
        poll_all(context);
    assert_true(is_settled(fixture));
}

static void start(void *context, const struct bus_suite_subscriber subscribers[BUS_SUITE_PORTS])
{
    struct fixture *fixture = context;
    char address[32];
    fixture->groups[0] = mailbox_bus_group_make(2, 5);
    fixture->groups[1] = mailbox_bus_group_make(1, 6);
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        open_gateway(fixture, i, &subscribers[i]);
    for (size_t i = 0; i < PROCESSES; i++)
        open_hub(fixture, i);
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        fleet_bus_use_hub(fixture->gateways[i].bus, fixture->hubs[process_of(i)]);
    snprintf(address, sizeof(address), "127.0.0.1:%u", peer_hub_port(fixture->hubs[0]));
    assert_true(peer_hub_add(fixture->hubs[1], address));
    settle(fixture);
}

static struct bus *port(void *context, size_t index)
{
    return ((struct fixture *)context)->gateways[index].bus;
}

static void stop(void *context)
{
    struct fixture *fixture = context;
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        mailbox_free(&fixture->gateways[i].mailbox);
    for (size_t i = 0; i < PROCESSES; i++)
        peer_hub_free(&fixture->hubs[i]);
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++) {
        bus_free(&fixture->gateways[i].bus);
        redis_client_free(&fixture->gateways[i].client);
        worker_loop_close(&fixture->gateways[i].worker);
    }
    for (size_t i = 0; i < PROCESSES; i++)
        mailbox_bus_group_free(&fixture->groups[i]);
}

static int run_suite(struct fixture *fixture, const char *name)
{
    return bus_suite_run(&(struct bus_suite_backend){.name = name,
                                                     .context = fixture,
                                                     .start = start,
                                                     .port = port,
                                                     .stop = stop,
                                                     .settle = settle,
                                                     .poll = poll_all});
}

/* ---- while Redis fails and returns ---- */

static void ignore_event(void *arg, struct slice topic, struct slice payload)
{
    (void)arg, (void)topic, (void)payload;
}

static void ignore_gap(void *arg, struct slice topic)
{
    (void)arg, (void)topic;
}

static void note_gap(void *arg, struct slice topic)
{
    struct fixture *fixture = arg;
    assert_true(!topic.data || slice_is(topic, "server:gw-2:deliver"));
    fixture->gaps++;
}

static void note_event(void *arg, struct slice topic, struct slice payload)
{
    struct fixture *fixture = arg;
    char digits[16] = "";
    (void)topic;
    memcpy(digits, payload.data, payload.len);
    fixture->received[strtoul(digits, NULL, 10)]++;
    fixture->received_count++;
}

static int open_fleet(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct bus_suite_subscriber subscribers[BUS_SUITE_PORTS] = {{ignore_event, ignore_gap, NULL},
                                                                {ignore_event, ignore_gap, NULL},
                                                                {note_event, note_gap, fixture}};
    fixture->url_prefix = "redis://127.0.0.1";
    fixture->has_redis = true;
    redis_server_start(&fixture->servers[0], REDIS_DEFAULTS);
    start(fixture, subscribers);
    bus_subscribe(fixture->gateways[2].bus, SLICE("server:gw-2:deliver"));
    settle(fixture);
    *state = fixture;
    return 0;
}

static int close_fleet(void **state)
{
    struct fixture *fixture = *state;
    stop(fixture);
    redis_server_stop(&fixture->servers[0]);
    free(fixture);
    return 0;
}

static void publish(struct fixture *fixture, size_t from, unsigned number)
{
    char text[16];
    int len = snprintf(text, sizeof(text), "%u", number);
    bus_publish(fixture->gateways[from].bus, SLICE("server:gw-2:deliver"),
                (struct slice){text, (size_t)len});
    poll_all(fixture);
}

static void expect_each_once(struct fixture *fixture)
{
    for (int i = 0; fixture->received_count < EVENTS && i < SOON_TURNS; i++)
        poll_all(fixture);
    for (int i = 0; i < 200; i++) /* second copies would come now */
        poll_all(fixture);
    for (unsigned i = 0; i < EVENTS; i++)
        if (fixture->received[i] != 1)
            fail_msg("event %u came %u times", i, fixture->received[i]);
}

static int64_t sum(const struct fixture *fixture, enum metric metric)
{
    int64_t total = 0;
    for (size_t i = 0; i < BUS_SUITE_PORTS; i++)
        total += fixture->gateways[i].worker.metrics.values[metric];
    return total;
}

static void redis_carries_all_events_while_it_is_available(void **state)
{
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < EVENTS; i++)
        publish(fixture, i % 2, i);
    expect_each_once(fixture);
    assert_int_equal(sum(fixture, METRIC_BUS_REROUTED), 0);
    assert_int_equal(sum(fixture, METRIC_PEER_FRAMES_SENT), 0);
}

static void no_event_is_lost_when_redis_is_killed(void **state)
{
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < EVENTS; i++) {
        if (i == EVENTS / 3)
            redis_server_kill(&fixture->servers[0]);
        if (i == 2 * EVENTS / 3)
            redis_server_restart(&fixture->servers[0]);
        publish(fixture, i % 2, i);
    }
    expect_each_once(fixture);
    assert_true(sum(fixture, METRIC_BUS_REROUTED) > 0);
}

/* Redis publishes the events it took before the pause when it resumes; by then they have come by a peer link. */
static void no_event_is_repeated_when_redis_is_paused(void **state)
{
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < EVENTS; i++) {
        if (i == EVENTS / 3)
            redis_server_pause(&fixture->servers[0]);
        publish(fixture, i % 2, i);
    }
    for (int i = 0; fixture->received_count < EVENTS && i < SOON_TURNS; i++)
        poll_all(fixture);
    assert_int_equal(fixture->received_count, EVENTS); /* without Redis */
    redis_server_resume(&fixture->servers[0]);
    settle(fixture);
    expect_each_once(fixture);
    print_message("rerouted %ld, dropped as duplicates %ld\n",
                  (long)sum(fixture, METRIC_BUS_REROUTED),
                  (long)sum(fixture, METRIC_BUS_DUPLICATES));
}

/* Redis has lost the subscription of the other process and counts no receiver. */
static void an_event_without_a_receiver_goes_by_peer_link(void **state)
{
    struct fixture *fixture = *state;
    char reply[REDIS_SERVER_REPLY_MAX];
    for (unsigned i = 0; i < EVENTS; i++) {
        if (i % 100 == 50)
            redis_server_ask(&fixture->servers[0], reply, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
        publish(fixture, i % 2, i);
    }
    expect_each_once(fixture);
    assert_true(sum(fixture, METRIC_BUS_REROUTED) > 0);
}

/* Events may have been missed while the subscription was broken. */
static void a_broken_subscription_reports_a_gap(void **state)
{
    struct fixture *fixture = *state;
    char reply[REDIS_SERVER_REPLY_MAX];
    size_t before = fixture->gaps;
    assert_true(before > 0); /* it became live */
    redis_server_ask(&fixture->servers[0], reply, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    for (int i = 0; fixture->gaps == before && i < SOON_TURNS; i++)
        poll_all(fixture);
    assert_true(fixture->gaps > before);
}

/* By a link, or because there is nobody else. */
static void a_bus_reaches_all_by_a_link_or_alone(void **state)
{
    struct fixture *fixture = *state;
    struct bus *bus = fixture->gateways[0].bus;
    assert_true(bus_reaches_all(bus));
    fleet_bus_use_hub(bus, NULL);
    assert_false(bus_reaches_all(bus));
    fixture->is_alone = true;
    assert_true(bus_reaches_all(bus));
}

/* Their answers come after the bus was freed. */
static void unanswered_publications_end_with_the_bus(void **state)
{
    struct fixture *fixture = *state;
    redis_server_pause(&fixture->servers[0]);
    for (unsigned i = 0; i < 10; i++)
        publish(fixture, 0, i);
    redis_server_resume(&fixture->servers[0]);
}

#define with_fleet(test) cmocka_unit_test_setup_teardown(test, open_fleet, close_fleet)

int main(void)
{
    static struct fixture fixture;
    const struct CMUnitTest tests[] = {
        with_fleet(redis_carries_all_events_while_it_is_available),
        with_fleet(no_event_is_lost_when_redis_is_killed),
        with_fleet(no_event_is_repeated_when_redis_is_paused),
        with_fleet(an_event_without_a_receiver_goes_by_peer_link),
        with_fleet(a_broken_subscription_reports_a_gap),
        with_fleet(a_bus_reaches_all_by_a_link_or_alone),
        with_fleet(unanswered_publications_end_with_the_bus),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fixture.url_prefix = "redis://127.0.0.1";
    redis_server_start(&fixture.servers[0], REDIS_DEFAULTS);
    fixture.has_redis = true;
    failed += run_suite(&fixture, "a fleet on one Redis server");
    redis_server_kill(&fixture.servers[0]);
    fixture.has_redis = false;
    failed += run_suite(&fixture, "a fleet without Redis");
    redis_server_stop(&fixture.servers[0]);
    fixture.url_prefix = "redis-cluster://127.0.0.1";
    fixture.has_redis = true;
    redis_cluster_start(fixture.servers);
    failed += run_suite(&fixture, "a fleet on a Redis Cluster");
    redis_cluster_stop(fixture.servers);
    return failed;
}
