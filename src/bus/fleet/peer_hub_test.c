/* Hubs link to each other on the loopback, lose their links and send each other events. */
#include "bus/fleet/peer_hub.h"

#include "base/container.h"
#include "bus/bus.h"
#include "support/peer_processes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void events_go_both_ways(void **state)
{
    struct peer_processes *processes = *state;
    peer_processes_join(processes);
    assert_int_equal(peer_process_metric(&processes->at[0], METRIC_PEER_LINKS_OPEN), 1);
    peer_process_send(&processes->at[0], "broadcast", "1");
    peer_process_send(&processes->at[0], "presence:a b", "");
    peer_processes_await_received(processes, 1, "broadcast=1;presence:a b=;");
    peer_process_send(&processes->at[1], "broadcast", "2");
    peer_processes_await_received(processes, 0, "broadcast=2;");
    assert_string_equal(processes->at[1].received, "");
    assert_int_equal(peer_process_metric(&processes->at[0], METRIC_PEER_FRAMES_SENT), 2);
    assert_int_equal(peer_process_metric(&processes->at[0], METRIC_PEER_FRAMES_RECEIVED), 1);
    assert_int_equal(peer_process_metric(&processes->at[0], METRIC_PEER_FRAMES_SKIPPED), 0);
}

static void an_event_for_a_gateway_goes_to_its_process_only(void **state)
{
    struct peer_processes *processes = *state;
    peer_processes_join(processes);
    peer_process_send(&processes->at[0], "server:west:deliver", "a");
    peer_process_send(&processes->at[0], "server:west-11:deliver", "b");
    peer_process_send(&processes->at[0], "server:west-:deliver", "no");
    peer_process_send(&processes->at[0], "server:west-1x:deliver", "no");
    peer_process_send(&processes->at[0], "server:north:deliver", "no");
    peer_processes_await_received(processes, 1, "server:west:deliver=a;server:west-11:deliver=b;");
    assert_int_equal(peer_process_metric(&processes->at[0], METRIC_PEER_FRAMES_SKIPPED), 3);
}

static void two_links_to_one_peer_carry_each_event_once(void **state)
{
    struct peer_processes *processes = *state;
    peer_processes_join(processes);
    assert_true(peer_hub_add(processes->at[0].hub, processes->at[1].address));
    peer_processes_turn(processes, PEER_PROCESSES_QUIET_TURNS);
    peer_processes_await_links(processes, 1, 1);
    peer_process_send(&processes->at[0], "broadcast", "1");
    peer_processes_await_received(processes, 1, "broadcast=1;");
    peer_process_send(&processes->at[1], "broadcast", "2");
    peer_processes_await_received(processes, 0, "broadcast=2;");
}

static void the_own_address_is_not_linked(void **state)
{
    struct peer_processes *processes = *state;
    assert_true(peer_hub_add(processes->at[0].hub, processes->at[0].address));
    peer_processes_turn(processes, PEER_PROCESSES_QUIET_TURNS);
    assert_int_equal(peer_hub_open_links(processes->at[0].hub), 0);
    peer_process_send(&processes->at[0], "broadcast", "1");
    peer_processes_await_received(processes, 0, "");
    peer_processes_join(processes);
}

static void a_restarted_peer_is_linked_again(void **state)
{
    struct peer_processes *processes = *state;
    char address[32];
    peer_processes_join(processes);
    snprintf(address, sizeof(address), "%s", processes->at[1].address);
    assert_true(peer_hub_add(processes->at[0].hub, address));
    peer_processes_turn(processes, PEER_PROCESSES_QUIET_TURNS);
    peer_process_close(&processes->at[1]);
    peer_processes_await_links(processes, 0, 0);
    peer_process_send(&processes->at[0], "broadcast", "lost");
    assert_int_equal(peer_process_metric(&processes->at[0], METRIC_PEER_FRAMES_SKIPPED), 1);
    peer_process_open(&processes->at[1], "west", PEER_PROCESS_SECRET, address);
    peer_processes_await_links(processes, 1, 1);
    peer_process_send(&processes->at[0], "broadcast", "2");
    peer_processes_await_received(processes, 1, "broadcast=2;");
}

static void the_hub_links_to_the_peers_in_the_registry(void **state)
{
    struct peer_processes *processes = *state;
    struct peer_process *east = &processes->at[0], *west = &processes->at[1];
    char address[32];
    peer_process_open(west, "west", PEER_PROCESS_SECRET, "127.0.0.1:0");
    struct peer_hub_entry entries[] = {
        {SLICE("east-0"), slice_of(east->address)}, /* its own address */
        {SLICE("west-0"), slice_of(west->address)},
        {SLICE("west-1"), slice_of(west->address)},
        {SLICE("old"), SLICE_NONE},
    };
    peer_hub_learn(east->hub, entries, 4);
    peer_processes_await_links(processes, 1, 1);
    peer_hub_learn(east->hub, entries, 4);
    peer_hub_learn(west->hub, entries, 4); /* linked already: not dialled */
    peer_processes_turn(processes, PEER_PROCESSES_QUIET_TURNS);
    peer_processes_await_links(processes, 1, 1);
    peer_hub_learn(east->hub, NULL, 0); /* an open link stays */
    peer_processes_turn(processes, PEER_PROCESSES_QUIET_TURNS);
    peer_processes_await_links(processes, 1, 1);
    peer_process_close(west);
    peer_processes_await_links(processes, 0, 0);
    peer_hub_learn(east->hub, NULL, 0); /* forgotten */
    snprintf(address, sizeof(address), "%s", west->address);
    peer_process_open(west, "west", PEER_PROCESS_SECRET, address);
    peer_processes_turn(processes, 10 * PEER_PROCESSES_QUIET_TURNS);
    assert_int_equal(peer_hub_open_links(east->hub), 0);
}

/* A linked peer that is not in the registry holds users without routes. */
static void lost_peers_get_events_on_the_lost_topic(void **state)
{
    struct peer_processes *processes = *state;
    struct peer_process *first = &processes->at[0];
    struct peer_hub_entry both[] = {{SLICE("east"), SLICE("")}, {SLICE("west-1"), SLICE("")}};
    peer_processes_join(processes);
    peer_hub_learn(first->hub, both, 2);
    assert_int_equal(peer_hub_lost_links(first->hub), 0);
    peer_process_send(first, "lost", "nobody's");
    peer_processes_await_received(processes, 1, "");
    peer_hub_learn(first->hub, both, 1);
    assert_int_equal(peer_hub_lost_links(first->hub), 1);
    peer_process_send(first, "lost", "yours");
    peer_processes_await_received(processes, 1, "broadcast=yours;");
    peer_hub_learn(first->hub, both, 2);
    assert_int_equal(peer_hub_lost_links(first->hub), 0);
}

/* The registry never names a fan-out process, which holds no users. */
static void a_peer_without_gateways_sends_events_and_gets_none(void **state)
{
    struct peer_processes *processes = *state;
    struct peer_process *gateway = &processes->at[0], *fanout = &processes->at[1];
    struct peer_hub_entry registered = {SLICE("east"), slice_of(gateway->address)};
    peer_process_open(fanout, "fanout:west", PEER_PROCESS_SECRET, "127.0.0.1:0");
    peer_hub_learn(fanout->hub, &registered, 1);
    peer_processes_await_links(processes, 1, 1);
    peer_hub_learn(gateway->hub, &registered, 1);
    assert_int_equal(peer_hub_lost_links(gateway->hub), 0);
    assert_int_equal(peer_hub_gateway_links(gateway->hub), 0);
    assert_int_equal(peer_hub_gateway_links(fanout->hub), 1);
    peer_process_send(gateway, "broadcast", "for gateways");
    peer_processes_await_received(processes, 1, "");
    peer_process_send(fanout, "broadcast", "1");
    peer_process_send(fanout, "server:east:deliver", "2");
    peer_processes_await_received(processes, 0, "broadcast=1;server:east:deliver=2;");
}

/* Forgotten once while it waits to dial again, and once while it connects. */
static void a_forgotten_dialler_is_freed_with_the_hub(void **state)
{
    struct peer_processes *processes = *state;
    struct peer_process *east = &processes->at[0], *west = &processes->at[1];
    struct peer_hub_entry entries[] = {
        {SLICE("west"), SLICE("127.0.0.1:1")},
        {SLICE("north"), slice_of(east->address)},
    };
    peer_process_open(west, "west", PEER_PROCESS_SECRET, "127.0.0.1:0");
    peer_hub_learn(west->hub, entries, 2);
    peer_processes_turn(processes, 1);
    peer_hub_learn(west->hub, NULL, 0);
    peer_hub_learn(west->hub, &entries[1], 1); /* named again: another one is dialled */
    peer_processes_await_links(processes, 1, 1);
    peer_hub_learn(east->hub, entries, 2);
    peer_hub_learn(east->hub, NULL, 0);
}

static void a_burst_of_events_arrives_completely(void **state)
{
    enum { EVENTS = 50000 };
    struct peer_processes *processes = *state;
    peer_processes_join(processes);
    for (int i = 0; i < EVENTS; i++) {
        peer_process_send(&processes->at[0], "t", "0123456789");
        if (i % 1000 == 0)
            peer_processes_turn(processes, 1);
    }
    for (int i = 0; processes->at[1].count < EVENTS && i < PEER_PROCESSES_SOON_TURNS; i++)
        peer_processes_turn(processes, 1);
    assert_int_equal(processes->at[1].count, EVENTS);
    assert_int_equal(processes->at[1].bytes, 10 * EVENTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PEER_PROCESSES_TEST(events_go_both_ways),
        PEER_PROCESSES_TEST(an_event_for_a_gateway_goes_to_its_process_only),
        PEER_PROCESSES_TEST(two_links_to_one_peer_carry_each_event_once),
        PEER_PROCESSES_TEST(the_own_address_is_not_linked),
        PEER_PROCESSES_TEST(a_restarted_peer_is_linked_again),
        PEER_PROCESSES_TEST(the_hub_links_to_the_peers_in_the_registry),
        PEER_PROCESSES_TEST(lost_peers_get_events_on_the_lost_topic),
        PEER_PROCESSES_TEST(a_peer_without_gateways_sends_events_and_gets_none),
        PEER_PROCESSES_TEST(a_forgotten_dialler_is_freed_with_the_hub),
        PEER_PROCESSES_TEST(a_burst_of_events_arrives_completely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
