/* Resync while memory runs out: a missed change is delivered later, or the connection is closed with a reason;
 * no change is lost and nothing leaks. */
#include "presence/resync.h"

#include "support/alloc_fault.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { RESYNC_TIME_MS = 2000, ALLOCATIONS_MAX = 200 };

static struct world world;
static struct client alice, bob;

static void lose_event(struct bus *bus, struct slice topic, struct slice payload)
{
    (void)bus, (void)topic, (void)payload;
}

/* Bob connects, and alice, who has subscribed to him, misses the event. */
static void miss_a_change(void)
{
    static const struct bus_operations LOSING_OPERATIONS = {.publish = lose_event};
    static struct bus losing_bus = {.operations = &LOSING_OPERATIONS};
    struct bus *real_bus = world.presence->bus;
    fake_ledger_show(&world.ledger, "bob", LEDGER_VISIBLE_EVERYONE, LEDGER_VISIBLE_EVERYONE);
    client_connect(&alice, &world, "alice");
    client_send(&alice, "{\"type\":\"subscribe_presence\",\"user_ids\":[\"bob\"]}");
    client_expect(&alice, "presence_snapshot");
    world.presence->bus = &losing_bus;
    client_connect(&bob, &world, "bob");
    world.presence->bus = real_bus;
    client_expect_nothing(&alice);
}

/* Returns whether alice was told bob's state (offline if there was no memory to tell bob to sync) or that it is hidden (there was no memory to decide whether she
 * may see it), or her connection was closed. */
static bool is_told(void)
{
    bool told = false;
    enum client_event event;
    while ((event = client_next(&alice)) == CLIENT_TEXT)
        told |= client_has(&alice, "\"status\":\"online\"") ||
                client_has(&alice, "\"status\":\"offline\"") ||
                client_has(&alice, "\"reason\":\"privacy\"");
    return told || event == CLIENT_CLOSE;
}

static size_t resync_with_failures(alloc_fault_start fail_at, size_t n)
{
    world_open(&world, WORLD_DEFAULTS);
    miss_a_change();
    fail_at(n);
    resync_gap(world.presence, SLICE_NONE);
    world_advance(&world, RESYNC_TIME_MS);
    size_t failed = alloc_fault_off();
    bool told = is_told();
    assert_true(told || failed > 0);
    world_advance(&world, RESYNC_TIME_MS);
    assert_true(told || is_told());
    assert_true(resync_is_idle(world.presence));
    client_hang_up(&alice);
    client_hang_up(&bob);
    world_close(&world);
    return failed;
}

static void a_resync_survives_any_failed_allocation(void **unused)
{
    (void)unused;
    assert_in_range(alloc_fault_sweep(alloc_fault_after, resync_with_failures), 4, ALLOCATIONS_MAX);
}

static void a_resync_survives_a_time_without_memory(void **unused)
{
    (void)unused;
    assert_in_range(alloc_fault_sweep(alloc_fault_from, resync_with_failures), 4, ALLOCATIONS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resync_survives_any_failed_allocation),
        cmocka_unit_test(a_resync_survives_a_time_without_memory),
    };
    return cmocka_run_group_tests_name("resync_fault", tests, NULL, NULL);
}
