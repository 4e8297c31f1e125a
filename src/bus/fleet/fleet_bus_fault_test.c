/* The fleet bus while memory runs out, with Redis and without: an event comes once or is lost, those after it
 * come, and nothing leaks. */
#include "bus/fleet/fleet_bus.h"
#include "bus/fleet/redis_carrier.h"

#include "support/alloc_fault.h"
#include "support/redis_server.h"
#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SOON_TURNS = 30000, SHORT_OF_MEMORY_TURNS = 10, ALLOCATIONS_MAX = 300, CLOSED_PORT = 1 };

#define TOPIC SLICE("server:gw:deliver")

static struct redis_server redis;

struct fixture {
    struct worker_loop worker;
    struct mailbox mailbox;
    struct mailbox_bus_group *group;
    struct redis_client *client;
    struct bus *bus;
    unsigned received_count;
};

static void on_bus_event(void *arg, struct slice topic, struct slice payload)
{
    (void)topic, (void)payload;
    ((struct fixture *)arg)->received_count++;
}

static void ignore_gap(void *arg, struct slice topic)
{
    (void)arg, (void)topic;
}

static void open_worker(struct fixture *fixture, uint16_t port)
{
    *fixture = (struct fixture){0};
    worker_loop_open(&fixture->worker);
    assert_true(mailbox_init(&fixture->mailbox, &fixture->worker.loop, MAILBOX_MAIL_MAX, fixture));
    fixture->group = mailbox_bus_group_make(1, 5);
    assert_non_null(fixture->group);
    fixture->client = worker_loop_redis(&fixture->worker, "redis://127.0.0.1", port);
    for (int i = 0; port != CLOSED_PORT && i < SOON_TURNS && !redis_available(fixture->client); i++)
        loop_turn(&fixture->worker.loop, 1);
}

static void close_worker(struct fixture *fixture)
{
    mailbox_free(&fixture->mailbox);
    bus_free(&fixture->bus);
    redis_client_free(&fixture->client);
    worker_loop_close(&fixture->worker);
    mailbox_bus_group_free(&fixture->group);
}

static bool open_bus(struct fixture *fixture)
{
    fixture->bus =
        fleet_bus_make(&(struct fleet_bus_options){.carrier = redis_carrier_make(fixture->client),
                                                   .group = fixture->group,
                                                   .workers = 1,
                                                   .mailbox = &fixture->mailbox,
                                                   .metrics = &fixture->worker.metrics,
                                                   .process = SLICE("gw"),
                                                   .on_event = on_bus_event,
                                                   .on_gap = ignore_gap,
                                                   .arg = fixture});
    return fixture->bus != NULL;
}

/* Subscribes and publishes while memory is short. Returns false when the bus could not be made. */
static bool use_bus(struct fixture *fixture)
{
    if (!open_bus(fixture))
        return false;
    bus_subscribe(fixture->bus, TOPIC);
    bus_subscribe(fixture->bus, SLICE("presence:somebody"));
    for (int i = 0; i < SHORT_OF_MEMORY_TURNS; i++)
        loop_turn(&fixture->worker.loop, 1);
    bus_publish(fixture->bus, TOPIC, SLICE("during"));
    for (int i = 0; i < SHORT_OF_MEMORY_TURNS; i++)
        loop_turn(&fixture->worker.loop, 1);
    bus_unsubscribe(fixture->bus, SLICE("presence:somebody"));
    return true;
}

static void await_events(struct fixture *fixture, unsigned count)
{
    for (int i = 0; i < SOON_TURNS && fixture->received_count < count; i++)
        loop_turn(&fixture->worker.loop, 1);
    for (int i = 0; i < SHORT_OF_MEMORY_TURNS; i++) /* a second copy would come now */
        loop_turn(&fixture->worker.loop, 1);
    assert_int_equal(fixture->received_count, count);
}

static size_t use_bus_with_failures(uint16_t port, alloc_fault_start fail_at, size_t n)
{
    struct fixture fixture;
    open_worker(&fixture, port);
    fail_at(n);
    bool made = use_bus(&fixture);
    size_t failed = alloc_fault_off();
    assert_true(made || failed > 0);
    if (made && failed == 0)
        await_events(&fixture, 1);
    if (made) {
        for (int i = 0; i < SHORT_OF_MEMORY_TURNS; i++)
            loop_turn(&fixture.worker.loop, 1);
        unsigned before = fixture.received_count;
        assert_in_range(before, 0, 1);
        bus_publish(fixture.bus, TOPIC, SLICE("after"));
        await_events(&fixture, before + 1);
    }
    close_worker(&fixture);
    return failed;
}

static size_t use_bus_on_redis(alloc_fault_start fail_at, size_t n)
{
    return use_bus_with_failures(redis.port, fail_at, n);
}

static size_t use_bus_without_redis(alloc_fault_start fail_at, size_t n)
{
    return use_bus_with_failures(CLOSED_PORT, fail_at, n);
}

static void bus_on_redis_survives_any_failed_allocation(void **state)
{
    (void)state;
    assert_in_range(alloc_fault_sweep(alloc_fault_after, use_bus_on_redis), 5, ALLOCATIONS_MAX);
}

static void bus_on_redis_survives_a_time_without_memory(void **state)
{
    (void)state;
    assert_in_range(alloc_fault_sweep(alloc_fault_from, use_bus_on_redis), 5, ALLOCATIONS_MAX);
}

static void bus_without_redis_survives_any_failed_allocation(void **state)
{
    (void)state;
    assert_in_range(alloc_fault_sweep(alloc_fault_after, use_bus_without_redis), 5,
                    ALLOCATIONS_MAX);
}

static int start_redis(void **state)
{
    (void)state;
    redis_server_start(&redis, REDIS_DEFAULTS);
    return 0;
}

static int stop_redis(void **state)
{
    (void)state;
    redis_server_stop(&redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bus_on_redis_survives_any_failed_allocation),
        cmocka_unit_test(bus_on_redis_survives_a_time_without_memory),
        cmocka_unit_test(bus_without_redis_survives_any_failed_allocation),
    };
    return cmocka_run_group_tests_name("fleet_bus_fault", tests, start_redis, stop_redis);
}
