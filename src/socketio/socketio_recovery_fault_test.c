/*
 * Recovery when out of memory. A client receives an event, loses its connection, misses two events and returns with
 * its private id and offset, with the first, second, third … allocation failing, then with all allocations failing
 * from each one on. It gets all the events that it missed, or starts anew; it never gets only some of them. Nothing
 * leaks, and afterwards recovery works as before.
 */
#include "socketio/socketio_session.h"

#include "support/alloc_fault.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ID_MAX = 64, EVENTS = 3, SENT_BEFORE = 1 };

static struct world world;
static struct client client;
static char token[WORLD_TOKEN_BYTES_MAX];

/* What the client has received. */
static struct {
    bool joined;
    bool dismissed; /* a close frame came */
    char sid[ID_MAX], pid[ID_MAX], offset[ID_MAX];
    unsigned times[EVENTS]; /* how often each came */
    unsigned last;          /* 1 + the number of the last */
    bool in_order;
} received;

static void copy_field(char out[ID_MAX], const char *name)
{
    const char *at = strstr(client.text, name);
    if (at)
        sscanf(at + strlen(name), "%63[^\"]", out);
}

static void note_text(void)
{
    const char *offset = strrchr(client.text, ',');
    const char *number = strstr(client.text, "\"number\":");
    if (strncmp(client.text, "40{", 3) == 0) {
        received.joined = true;
        copy_field(received.sid, "\"sid\":\"");
        copy_field(received.pid, "\"pid\":\"");
    } else if (strncmp(client.text, "42[", 3) == 0 && offset) {
        sscanf(offset, ",\"%63[0-9a-f]\"]", received.offset);
    }
    if (number) {
        unsigned event = (unsigned)(number[9] - '0');
        received.times[event]++;
        received.in_order &= event >= received.last;
        received.last = event + 1;
    }
}

static void listen_to_server(void)
{
    enum client_event event;
    while ((event = client_next(&client)) != CLIENT_NOTHING && event != CLIENT_END) {
        if (event == CLIENT_TEXT)
            note_text();
        received.dismissed |= event == CLIENT_CLOSE;
    }
    received.dismissed |= event == CLIENT_END;
}

/* Returns false when it is refused or closed. */
static bool dial(void)
{
    received.dismissed = client_dial_socketio(&client, &world, "&device_id=phone", 0) != 101;
    if (!received.dismissed)
        listen_to_server();
    return !received.dismissed;
}

static void join(void)
{
    char packet[WORLD_TOKEN_BYTES_MAX + 4 * ID_MAX];
    received.joined = false;
    if (!dial())
        return;
    if (received.pid[0])
        snprintf(packet, sizeof(packet), "40{\"token\":\"%s\",\"pid\":\"%s\",\"offset\":\"%s\"}",
                 token, received.pid, received.offset);
    else
        snprintf(packet, sizeof(packet), "40{\"token\":\"%s\"}", token);
    client_send(&client, packet);
    listen_to_server();
}

static void on_event_sent(void *arg, enum delivery_result result)
{
    *(bool *)arg = result == DELIVERY_SENT;
}

static bool send_event(unsigned number)
{
    char data[32];
    bool sent = false;
    snprintf(data, sizeof(data), "{\"number\":%u}", number);
    delivery_send_then(world.sessions->delivery, &SLICE("alice"), 1,
                       &(struct message){.type = MESSAGE_DELIVERY, .data = slice_of(data)}, NULL,
                       on_event_sent, &sent);
    world_settle(&world);
    return sent;
}

/* Connects, is cut off and comes back; events are sent meanwhile. Returns whether the session was recovered. */
static bool play(bool sent[EVENTS])
{
    char sid[ID_MAX];
    memset(&received, 0, sizeof(received));
    received.in_order = true;
    join();
    for (unsigned i = 0; i < SENT_BEFORE; i++)
        sent[i] = send_event(i);
    if (received.joined && !received.dismissed)
        listen_to_server();
    strcpy(sid, received.sid);
    client_hang_up(&client);
    world_settle(&world);
    for (unsigned i = SENT_BEFORE; i < EVENTS; i++)
        sent[i] = send_event(i);
    join();
    return received.joined && sid[0] && strcmp(sid, received.sid) == 0;
}

static void leave(void)
{
    client_hang_up(&client);
    world_advance(&world, 20000);
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    assert_int_equal(world_metric(&world, METRIC_SOCKETIO_CONNECTIONS), 0);
}

static void check_whole(const bool sent[EVENTS])
{
    assert_true(received.in_order);
    for (unsigned i = SENT_BEFORE; i < EVENTS; i++)
        if (sent[i] && received.times[i] != 1)
            fail_msg("recovered, but event %u came %u times", i, received.times[i]);
}

static size_t play_without_memory(alloc_fault_start fail_at, size_t n)
{
    bool sent[EVENTS] = {false};
    world_open(&world, WORLD_DEFAULTS);
    world_token(&world, "alice", "", 3600000, token);
    fail_at(n);
    bool recovered = play(sent);
    size_t failed = alloc_fault_off();
    if (recovered && !received.dismissed)
        listen_to_server();
    if (recovered && !received.dismissed)
        check_whole(sent);
    leave();
    assert_true(play(sent));
    check_whole(sent);
    leave();
    world_close(&world);
    return failed;
}

static void session_is_recovered_whole_or_not_at_all_when_one_allocation_fails(void **unused)
{
    (void)unused;
    assert_in_range(alloc_fault_sweep(alloc_fault_after, play_without_memory), 50, 5000);
}

static void session_is_recovered_whole_or_not_at_all_when_memory_runs_out_at_any_point(
    void **unused)
{
    (void)unused;
    assert_in_range(alloc_fault_sweep(alloc_fault_from, play_without_memory), 50, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(session_is_recovered_whole_or_not_at_all_when_one_allocation_fails),
        cmocka_unit_test(
            session_is_recovered_whole_or_not_at_all_when_memory_runs_out_at_any_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
