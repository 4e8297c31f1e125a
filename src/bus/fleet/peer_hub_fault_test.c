/* Two hubs while memory runs out: each allocation fails once, and all from some point on for a while. They
 * find each other afterwards, an event comes once or not at all, and nothing leaks. */
#include "bus/fleet/peer_hub.h"

#include "support/alloc_fault.h"
#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { SOON_TURNS = 5000, SHORT_OF_MEMORY_TURNS = 30, ALLOCATIONS_MAX = 200 };

struct office {
    struct worker_loop worker;
    struct mailbox mailbox;
    struct peer_hub *hub;
    unsigned heard;
};

static void received(void *arg, struct slice topic, struct slice payload)
{
    (void)topic, (void)payload;
    ((struct office *)arg)->heard++;
}

static void open_office(struct office *office)
{
    *office = (struct office){0};
    worker_loop_open(&office->worker);
    assert_true(mailbox_init(&office->mailbox, &office->worker.loop, MAILBOX_MAIL_MAX, office));
}

static bool open_hub(struct office *office, struct slice name)
{
    char error[LISTENER_ERROR_TEXT_MAX];
    office->hub = peer_hub_make(&(struct peer_hub_options){.loop = &office->worker.loop,
                                                           .streams = &office->worker.streams,
                                                           .random = &office->worker.random,
                                                           .metrics = &office->worker.metrics,
                                                           .mailbox = &office->mailbox,
                                                           .name = name,
                                                           .secret = SLICE("an open secret"),
                                                           .on_event = received,
                                                           .arg = office});
    return office->hub && peer_hub_listen(office->hub, "127.0.0.1:0", error);
}

static void close_office(struct office *office)
{
    mailbox_free(&office->mailbox);
    peer_hub_free(&office->hub);
    worker_loop_close(&office->worker);
}

static void turn(struct office offices[2], int times)
{
    for (int i = 0; i < times; i++) {
        loop_turn(&offices[0].worker.loop, 1);
        loop_turn(&offices[1].worker.loop, 0);
    }
}

static void send_event(struct office *office)
{
    peer_hub_send(office->hub, &office->worker.metrics, SLICE("topic"), SLICE("payload"));
}

static bool are_linked(const struct office offices[2])
{
    return peer_hub_open_links(offices[0].hub) && peer_hub_open_links(offices[1].hub);
}

/* What happens while memory is short; false when the second hub could not even be made. */
static bool meet(struct office offices[2])
{
    char address[32];
    snprintf(address, sizeof(address), "127.0.0.1:%u", peer_hub_port(offices[0].hub));
    struct peer_hub_entry entries[] = {{SLICE("nobody"), SLICE("127.0.0.1:1")},
                                       {SLICE("nobody either"), SLICE("127.0.0.1:2")}};
    if (!open_hub(&offices[1], SLICE("west")) || !peer_hub_add(offices[1].hub, address))
        return false;
    peer_hub_learn(offices[1].hub, entries, 2);
    for (int i = 0; i < SHORT_OF_MEMORY_TURNS && !are_linked(offices); i++)
        turn(offices, 1);
    peer_hub_learn(offices[1].hub, entries, 1);
    send_event(&offices[0]);
    turn(offices, 2);
    return true;
}

static size_t live_through(alloc_fault_start fail_at, size_t n)
{
    struct office offices[2];
    open_office(&offices[0]);
    open_office(&offices[1]);
    assert_true(open_hub(&offices[0], SLICE("east")));
    fail_at(n);
    bool met = meet(offices);
    size_t failed = alloc_fault_off();
    assert_true(met || failed > 0);
    for (int i = 0; met && i < SOON_TURNS && !are_linked(offices); i++)
        turn(offices, 1);
    assert_true(!met || are_linked(offices));
    unsigned before = offices[1].heard;
    assert_in_range(before, failed == 0, 1);
    if (met)
        send_event(&offices[0]);
    for (int i = 0; met && i < SOON_TURNS && offices[1].heard == before; i++)
        turn(offices, 1);
    assert_int_equal(offices[1].heard, before + met);
    close_office(&offices[0]);
    close_office(&offices[1]);
    return failed;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    assert_in_range(alloc_fault_sweep(alloc_fault_after, live_through), 10, ALLOCATIONS_MAX);
}

static void all_may_fail_for_a_while(void **state)
{
    (void)state;
    assert_in_range(alloc_fault_sweep(alloc_fault_from, live_through), 10, ALLOCATIONS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(all_may_fail_for_a_while),
    };
    return cmocka_run_group_tests_name("peer_hub_fault", tests, NULL, NULL);
}
