/*
 * A Socket.IO client that is cut off and comes back, without memory: it gets an event, loses its connection,
 * misses two more, returns with its private id and offset, and all this is gone through with the first, second,
 * third … allocation failing, then with all failing from each on. It is recovered with all that it missed, or
 * it starts anew; never with a part. Nothing leaks, and afterwards recovery works as before.
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

/* What the client knows. */
static struct {
    bool joined;
    bool dismissed; /* a close frame came */
    char sid[ID_MAX], pid[ID_MAX], offset[ID_MAX];
    unsigned got[EVENTS]; /* how often each came */
    unsigned last;        /* 1 + the number of the last */
    bool in_order;
} known;

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
        known.joined = true;
        copy_field(known.sid, "\"sid\":\"");
        copy_field(known.pid, "\"pid\":\"");
    } else if (strncmp(client.text, "42[", 3) == 0 && offset) {
        sscanf(offset, ",\"%63[0-9a-f]\"]", known.offset);
    }
    if (number) {
        unsigned event = (unsigned)(number[9] - '0');
        known.got[event]++;
        known.in_order &= event >= known.last;
        known.last = event + 1;
    }
}

static void listen_to_server(void)
{
    enum client_event event;
    while ((event = client_next(&client)) != CLIENT_NOTHING && event != CLIENT_END) {
        if (event == CLIENT_TEXT)
            note_text();
        known.dismissed |= event == CLIENT_CLOSE;
    }
    known.dismissed |= event == CLIENT_END;
}

/* False: nobody is there. */
static bool dial(void)
{
    known.dismissed = client_dial_socketio(&client, &world, "&device_id=phone", 0) != 101;
    if (!known.dismissed)
        listen_to_server();
    return !known.dismissed;
}

static void join(void)
{
    char packet[WORLD_TOKEN_BYTES_MAX + 4 * ID_MAX];
    known.joined = false;
    if (!dial())
        return;
    if (known.pid[0])
        snprintf(packet, sizeof(packet), "40{\"token\":\"%s\",\"pid\":\"%s\",\"offset\":\"%s\"}",
                 token, known.pid, known.offset);
    else
        snprintf(packet, sizeof(packet), "40{\"token\":\"%s\"}", token);
    client_send(&client, packet);
    listen_to_server();
}

/* False: it was not sent, and whoever asked for it knows. */
static void note_sent(void *arg, bool sent)
{
    *(bool *)arg = sent;
}

static bool send_event(unsigned number)
{
    char data[32];
    bool sent = false;
    snprintf(data, sizeof(data), "{\"number\":%u}", number);
    delivery_send_then(world.handlers->delivery, &SLICE("alice"), 1,
                       &(struct message){.type = MESSAGE_DELIVERY, .data = slice_of(data)}, NULL,
                       note_sent, &sent);
    world_settle(&world);
    return sent;
}

/* Cut off and back, with the events sent meanwhile. Whether it was recovered. */
static bool play(bool sent[EVENTS])
{
    char sid[ID_MAX];
    memset(&known, 0, sizeof(known));
    known.in_order = true;
    join();
    for (unsigned i = 0; i < SENT_BEFORE; i++)
        sent[i] = send_event(i);
    if (known.joined && !known.dismissed)
        listen_to_server();
    strcpy(sid, known.sid);
    client_hang_up(&client);
    world_settle(&world);
    for (unsigned i = SENT_BEFORE; i < EVENTS; i++)
        sent[i] = send_event(i);
    join();
    return known.joined && sid[0] && strcmp(sid, known.sid) == 0;
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
    assert_true(known.in_order);
    for (unsigned i = SENT_BEFORE; i < EVENTS; i++)
        if (sent[i] && known.got[i] != 1)
            fail_msg("recovered, but event %u came %u times", i, known.got[i]);
}

static size_t play_without_memory(alloc_fault_start fail_at, size_t n)
{
    bool sent[EVENTS] = {false};
    world_open(&world, WORLD_DEFAULTS);
    world_token(&world, "alice", "", 3600000, token);
    fail_at(n);
    bool recovered = play(sent);
    size_t failed = alloc_fault_off();
    if (recovered && !known.dismissed)
        listen_to_server();
    if (recovered && !known.dismissed)
        check_whole(sent);
    leave();
    assert_true(play(sent));
    check_whole(sent);
    leave();
    world_close(&world);
    return failed;
}

static void whichever_allocation_fails_it_is_recovered_whole_or_not_at_all(void **unused)
{
    (void)unused;
    assert_in_range(alloc_fault_sweep(alloc_fault_after, play_without_memory), 50, 5000);
}

static void with_no_memory_from_any_point_on_it_is_recovered_whole_or_not_at_all(void **unused)
{
    (void)unused;
    assert_in_range(alloc_fault_sweep(alloc_fault_from, play_without_memory), 50, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whichever_allocation_fails_it_is_recovered_whole_or_not_at_all),
        cmocka_unit_test(with_no_memory_from_any_point_on_it_is_recovered_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
