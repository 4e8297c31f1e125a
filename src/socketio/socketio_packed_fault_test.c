/*
 * Packets in MessagePack when out of memory. A client is refused, connects and sends events, with the first,
 * second, third … allocation failing, then with all allocations failing from each one on. Each packet is answered,
 * or the connection is closed with a close frame, or there is no connection.
 */
#include "socketio/socketio_session.h"

#include "socketio/codec/socketio_packed.h"
#include "support/alloc_fault.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NONSENSE, CONNECT, HEARTBEAT, UNKNOWN, LEAVE, PACKET_COUNT };

static struct world world;
static struct client alice;
static struct buffer packets[PACKET_COUNT]; /* made while there is memory */
static unsigned status;                     /* of the handshake */
static bool dismissed;                      /* a close frame came */
static bool joined;
static unsigned sent, answered;

static void pack(unsigned at, const char *text)
{
    char *copy = strdup(text);
    packets[at] = BUFFER_INIT;
    socketio_pack(copy, strlen(copy), &packets[at]);
    assert_false(packets[at].failed);
    free(copy);
}

static void pack_all(void)
{
    char token[WORLD_TOKEN_BYTES_MAX];
    char connect[WORLD_TOKEN_BYTES_MAX + 64];
    world_token(&world, "alice", "", 3600000, token);
    snprintf(connect, sizeof(connect), "40{\"token\":\"%s\"}", token);
    pack(NONSENSE, "40{\"token\":\"nonsense\"}");
    pack(CONNECT, connect);
    pack(HEARTBEAT, "421[\"heartbeat\",{}]");
    pack(UNKNOWN, "422[\"nonsense\"]");
    pack(LEAVE, "423[\"user:disconnect\"]");
}

static void free_all(void)
{
    for (unsigned i = 0; i < PACKET_COUNT; i++)
        buffer_free(&packets[i]);
}

/* The type comes first in a packet that we send. */
static void note_packet(void)
{
    unsigned type = (unsigned char)alice.text[strlen("?\xa4type")];
    joined |= type == SOCKETIO_CONNECT;
    answered += type == SOCKETIO_ACK || type == SOCKETIO_CONNECT || type == SOCKETIO_CONNECT_ERROR;
}

static void listen_to_server(void)
{
    enum client_event event;
    if (status != 101)
        return;
    while ((event = client_next(&alice)) != CLIENT_NOTHING && event != CLIENT_END) {
        if (event == CLIENT_BINARY)
            note_packet();
        dismissed |= event == CLIENT_CLOSE;
    }
    if (event == CLIENT_END && !dismissed)
        fail_msg("the connection was cut without a close frame");
}

static void send_packet(unsigned at)
{
    if (status != 101 || dismissed || (at > CONNECT && !joined))
        return;
    sent++;
    client_frame(&alice, CLIENT_BINARY, packets[at].data, packets[at].len);
    world_settle(&world);
    listen_to_server();
    if (answered < sent && !dismissed)
        fail_msg("packet %u was never answered", at);
}

static void play(void)
{
    status = sent = answered = 0;
    dismissed = joined = false;
    status = client_dial_socketio(&alice, &world, "", 0);
    listen_to_server();
    for (unsigned at = 0; at < PACKET_COUNT; at++)
        send_packet(at);
}

static size_t play_without_memory(alloc_fault_start fail_at, size_t n)
{
    world_open(&world, WORLD_DEFAULTS);
    pack_all();
    fail_at(n);
    play();
    size_t failed = alloc_fault_off();
    client_hang_up(&alice);
    world_advance(&world, 20000);
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    play();
    assert_int_equal(answered, PACKET_COUNT);
    client_hang_up(&alice);
    free_all();
    world_close(&world);
    return failed;
}

static void client_gets_a_reply_or_a_close_frame_when_one_allocation_fails(void **unused)
{
    (void)unused;
    assert_in_range(alloc_fault_sweep(alloc_fault_after, play_without_memory), 30, 5000);
}

static void client_gets_a_reply_or_a_close_frame_when_memory_runs_out_at_any_point(void **unused)
{
    (void)unused;
    assert_in_range(alloc_fault_sweep(alloc_fault_from, play_without_memory), 30, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_gets_a_reply_or_a_close_frame_when_one_allocation_fails),
        cmocka_unit_test(client_gets_a_reply_or_a_close_frame_when_memory_runs_out_at_any_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
