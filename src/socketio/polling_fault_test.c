/*
 * Polling when out of memory. A client opens an Engine.IO session, connects, polls an event and upgrades to a
 * WebSocket, with the first, second, third … allocation failing, then with all allocations failing from each one on.
 * Every request is answered or its connection closed, nothing leaks, no client is left over, and afterwards
 * everything works.
 */
#include "socketio/socketio_session.h"

#include "support/alloc_fault.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { POLLS_MAX = 8 };

static struct world world;
static struct client http, web;
static char token[WORLD_TOKEN_BYTES_MAX];
static char sid[CLIENT_SID_MAX];
static bool joined;   /* CONNECT was answered with an id */
static bool upgraded; /* the WebSocket has taken over and delivers events */

/* Sends a request on a connection of its own. Returns its status; 0: no answer yet. */
static unsigned send_request(const char *method, const char *body)
{
    client_dial_polling(&http, &world, method, sid, strlen(body), body);
    return client_response(&http);
}

static unsigned send_answered_request(const char *method, const char *body)
{
    unsigned status = send_request(method, body);
    if (status == 0 && !http.ended)
        fail_msg("a %s was not answered", method);
    client_hang_up(&http);
    return status;
}

static void open_session(void)
{
    sid[0] = '\0';
    if (send_answered_request("GET", "") == 200)
        client_find_sid(&http, sid); /* none in the close packet */
}

/* Polls until an answer contains `piece` or a poll has to wait. Returns false when the Engine.IO session has
 * ended. */
static bool poll_for(const char *piece, bool *found)
{
    for (int i = 0; i < POLLS_MAX && !*found; i++) {
        unsigned status = send_request("GET", "");
        bool waits = status == 0 && !http.ended;
        *found |= status == 200 && strstr(http.text, piece);
        client_hang_up(&http);
        world_settle(&world);
        if (waits || status != 200)
            return waits; /* hanging up a waiting poll has ended the Engine.IO session */
    }
    return true;
}

static void join(void)
{
    char packet[WORLD_TOKEN_BYTES_MAX + 32];
    snprintf(packet, sizeof(packet), "40{\"token\":\"%s\"}", token);
    if (send_answered_request("POST", packet) == 200)
        poll_for("40{\"sid\"", &joined);
}

static void send_event(void)
{
    delivery_send(world.sessions->delivery, &SLICE("alice"), 1,
                  &(struct message){.type = MESSAGE_DELIVERY, .data = SLICE("{\"owed\":1}")}, NULL);
    world_settle(&world);
}

/* Reads texts of the WebSocket up to one with this beginning. */
static bool receive_text(const char *begin)
{
    enum client_event event;
    while ((event = client_next(&web)) != CLIENT_NOTHING && event != CLIENT_END)
        if (event == CLIENT_TEXT && strncmp(web.text, begin, strlen(begin)) == 0)
            return true;
    return false;
}

static void upgrade(void)
{
    char query[CLIENT_SID_MAX + 8];
    snprintf(query, sizeof(query), "&sid=%s", sid);
    unsigned status = client_dial_socketio(&web, &world, query, 0);
    if (status == 0 && !web.ended)
        fail_msg("an upgrade was not answered");
    if (status != 101)
        return;
    client_send(&web, "2probe");
    if (!receive_text("3probe"))
        return;
    client_send(&web, "5");
    client_send(&web, "420[\"heartbeat\",{}]");
    bool answered = receive_text("430[");
    send_event();
    upgraded = answered && receive_text("42[\"delivery\"");
}

static bool play(void)
{
    bool got = false;
    joined = upgraded = false;
    open_session();
    if (sid[0])
        join();
    if (joined)
        send_event();
    if (joined && poll_for("42[\"delivery\"", &got) && got)
        upgrade();
    return upgraded;
}

static void leave(bool dialled)
{
    if (dialled)
        client_hang_up(&web);
    world_advance(&world, 100000); /* unconnected and silent clients have gone by then */
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    assert_int_equal(world_metric(&world, METRIC_SOCKETIO_CONNECTIONS), 0);
}

static size_t play_without_memory(alloc_fault_start fail_at, size_t n)
{
    world_open(&world, WORLD_DEFAULTS);
    world_token(&world, "alice", "", 3600000, token);
    web.world = NULL;
    fail_at(n);
    play();
    size_t failed = alloc_fault_off();
    leave(web.world != NULL);
    world_token(&world, "alice", "", 3600000, token);
    assert_true(play());
    leave(true);
    world_close(&world);
    return failed;
}

static void every_request_is_answered_when_one_allocation_fails(void **unused)
{
    (void)unused;
    assert_in_range(alloc_fault_sweep(alloc_fault_after, play_without_memory), 50, 5000);
}

static void every_request_is_answered_when_memory_runs_out_at_any_point(void **unused)
{
    (void)unused;
    assert_in_range(alloc_fault_sweep(alloc_fault_from, play_without_memory), 50, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_is_answered_when_one_allocation_fails),
        cmocka_unit_test(every_request_is_answered_when_memory_runs_out_at_any_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
