/*
 * Socket.IO when out of memory. A client does the handshake, connects, sends events, receives a contact's presence,
 * disconnects and connects again, with the first, second, third … allocation failing, then with all allocations
 * failing from each one on. Each event is answered, or the connection is closed with a close frame, or there is no
 * connection. Nothing leaks, and afterwards the gateway serves as before.
 */
#include "socketio/socketio_session.h"

#include "support/alloc_fault.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ACKS = 6 };

static struct world world;
static struct client alice, bob;
static char token[WORLD_TOKEN_BYTES_MAX];
static unsigned status; /* of the handshake */
static bool dismissed;  /* a close frame came */
static bool joined;
static unsigned refusals;
static bool sent[ACKS], answered[ACKS];

static void note_text(void)
{
    unsigned id;
    if (strncmp(alice.text, "40{", 3) == 0)
        joined = true;
    else if (strncmp(alice.text, "41", 2) == 0)
        joined = false;
    else if (strncmp(alice.text, "44{", 3) == 0)
        refusals++;
    else if (sscanf(alice.text, "43%u[", &id) == 1 && id < ACKS)
        answered[id] = true;
}

static void listen_to_server(void)
{
    enum client_event event;
    if (status != 101)
        return;
    while ((event = client_next(&alice)) != CLIENT_NOTHING && event != CLIENT_END) {
        if (event == CLIENT_TEXT)
            note_text();
        dismissed |= event == CLIENT_CLOSE;
    }
    if (event == CLIENT_END && !dismissed)
        fail_msg("the connection was cut without a close frame");
}

static void send_packet(const char *packet)
{
    if (status != 101 || dismissed)
        return;
    client_send(&alice, packet);
    listen_to_server();
}

static void dial(void)
{
    status = client_dial_socketio(&alice, &world, "&device_id=phone", 0);
    if (status == 0 && !alice.ended)
        fail_msg("a handshake was not answered");
    listen_to_server();
}

static void join(void)
{
    char packet[WORLD_TOKEN_BYTES_MAX + 64];
    unsigned before = refusals;
    snprintf(packet, sizeof(packet), "40{\"token\":\"%s\"}", token);
    send_packet(packet);
    if (status == 101 && !dismissed && !joined && refusals == before)
        fail_msg("a CONNECT was not answered");
}

static void send_event(unsigned id, const char *event)
{
    char packet[256];
    if (!joined || dismissed)
        return;
    sent[id] = true;
    snprintf(packet, sizeof(packet), "42%u%s", id, event);
    send_packet(packet);
}

static void play(void)
{
    dial();
    send_packet("40{\"token\":\"nonsense\"}");
    join();
    send_event(0, "[\"subscribe_presence\",{\"user_ids\":[\"carol\"]}]");
    send_event(1, "[\"HEARTBEAT\",{\"active\":true}]");
    send_event(2, "[\"call:accept\",{\"from\":\"bob\"}]");
    send_event(3, "[\"nonsense\"]");
    client_send(&bob, "{\"type\":\"heartbeat\",\"active\":false}");
    listen_to_server();
    send_event(4, "[\"call:start\"]");
    world_advance(&world, 10000);
    listen_to_server();
    send_packet("3");
    if (joined && !dismissed) {
        send_packet("41");
        joined = false;
        join();
    }
    send_event(5, "[\"user:disconnect\"]");
}

static void check(void)
{
    for (unsigned id = 0; id < ACKS && !dismissed; id++)
        if (sent[id] && !answered[id])
            fail_msg("event %u was never answered", id);
    client_hang_up(&alice);
    world_advance(&world, 20000);
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    assert_int_equal(world_metric(&world, METRIC_SOCKETIO_CONNECTIONS), 0);
}

static void prepare(void)
{
    world_token(&world, "alice", "", 3600000, token);
    status = refusals = 0;
    dismissed = joined = false;
    memset(sent, 0, sizeof(sent));
    memset(answered, 0, sizeof(answered));
}

static size_t play_without_memory(alloc_fault_start fail_at, size_t n)
{
    world_open(&world, WORLD_DEFAULTS);
    fake_ledger_befriend(&world.ledger, "alice", "bob");
    client_connect(&bob, &world, "bob");
    prepare();
    fail_at(n);
    play();
    size_t failed = alloc_fault_off();
    check();
    client_hang_up(&bob);
    client_connect(&bob, &world, "bob");
    prepare();
    play();
    assert_int_equal(status, 101);
    assert_true(answered[5]);
    check();
    client_hang_up(&bob);
    world_close(&world);
    return failed;
}

static void client_gets_a_reply_or_a_close_frame_when_one_allocation_fails(void **unused)
{
    (void)unused;
    /* how many allocations failed, one in each run */
    assert_in_range(alloc_fault_sweep(alloc_fault_after, play_without_memory), 50, 5000);
}

static void client_gets_a_reply_or_a_close_frame_when_memory_runs_out_at_any_point(void **unused)
{
    (void)unused;
    /* how many allocations failed, one in each run */
    assert_in_range(alloc_fault_sweep(alloc_fault_from, play_without_memory), 50, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_gets_a_reply_or_a_close_frame_when_one_allocation_fails),
        cmocka_unit_test(client_gets_a_reply_or_a_close_frame_when_memory_runs_out_at_any_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
