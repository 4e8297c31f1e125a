/*
 * Connections when out of memory. A scenario of connecting, commands, fan-out, privacy reviews and closing
 * runs with the first, second, third … allocation failing, until none is left to fail; then with all
 * allocations failing from each one on. Whatever fails, each command is answered, or the connection is closed
 * with a close frame, or there is no connection. Nothing leaks (the sanitizer checks), and afterwards the
 * gateway serves as before.
 */
#include "connection/connection.h"

#include "support/alloc_fault.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* HEARTBEAT stands for the only reply without an id. */
enum { IDS = 8, HEARTBEAT = 6 };

struct actor {
    struct client client;
    char token[WORLD_TOKEN_BYTES_MAX];
    unsigned status;    /* of the handshake; 0: the socket was closed */
    bool dismissed;     /* a close frame came */
    bool answered[IDS]; /* by id */
    bool sent[IDS];
    char last_status[16]; /* of the other user, as last received */
};

static struct world world;
static struct actor alice, bob;

/* ---- actors ---- */

static void note_text(struct actor *actor)
{
    unsigned id;
    const char *at = strstr(actor->client.text, "\"id\":");
    if (at && sscanf(at, "\"id\":%u", &id) == 1 && id < IDS)
        actor->answered[id] = true;
    else if (strstr(actor->client.text, "\"type\":\"heartbeat_ack\""))
        actor->answered[HEARTBEAT] = true;
    at = strstr(actor->client.text, "\"status\":\"");
    if (at)
        sscanf(at, "\"status\":\"%15[a-z]", actor->last_status);
}

static void listen_to_server(struct actor *actor)
{
    enum client_event event;
    if (actor->status != 101 || actor->client.fd < 0)
        return;
    while ((event = client_next(&actor->client)) != CLIENT_NOTHING && event != CLIENT_END) {
        if (event == CLIENT_TEXT)
            note_text(actor);
        actor->dismissed |= event == CLIENT_CLOSE;
    }
    if (event == CLIENT_END && !actor->dismissed)
        fail_msg("the connection was cut without a close frame");
}

static void join(struct actor *actor)
{
    client_dial(&actor->client, &world, 0);
    client_upgrade(&actor->client, actor->token);
    actor->status = client_response(&actor->client);
    if (actor->status == 0 && !actor->client.ended)
        fail_msg("a handshake was not answered");
    listen_to_server(actor);
}

static void send_command(struct actor *actor, unsigned id, const char *rest)
{
    char json[WORLD_TOKEN_BYTES_MAX + 128];
    if (actor->status != 101 || actor->dismissed)
        return;
    actor->sent[id] = true;
    snprintf(json, sizeof(json), "{\"id\":%u,%s}", id, rest);
    client_send(&actor->client, json);
    listen_to_server(actor);
}

static void send_heartbeat(struct actor *actor)
{
    if (actor->status != 101 || actor->dismissed)
        return;
    actor->sent[HEARTBEAT] = true;
    client_send(&actor->client, "{\"type\":\"heartbeat\"}");
    listen_to_server(actor);
}

/* Every command was answered, unless the connection was closed. */
static void check(const struct actor *actor)
{
    if (actor->status != 101 || actor->dismissed)
        return;
    for (unsigned id = 0; id < IDS; id++)
        if (actor->sent[id] && !actor->answered[id])
            fail_msg("command %u was never answered", id);
}

static void leave(struct actor *actor)
{
    if (actor->client.fd < 0)
        return;
    if (actor->status == 101 && !actor->dismissed) {
        client_frame(&actor->client, CLIENT_CLOSE, "\x03\xe8", 2);
        listen_to_server(actor);
        assert_true(actor->dismissed);
    }
    client_hang_up(&actor->client);
}

/* ---- the scenario ---- */

static void play(void)
{
    char refresh[WORLD_TOKEN_BYTES_MAX + 64];
    snprintf(refresh, sizeof(refresh), "\"type\":\"refresh_token\",\"token\":\"%s\"", alice.token);
    join(&alice);
    join(&bob);
    send_command(&alice, 0, "\"type\":\"subscribe_presence\",\"user_ids\":[\"bob\",\"carol\"]");
    send_command(&alice, 1, "\"type\":\"query_presence\",\"user_ids\":[\"bob\",\"dave\"]");
    send_command(&alice, 2, refresh);
    send_command(&bob, 3, "\"type\":\"heartbeat\",\"active\":false");
    presence_publish_privacy(world.presence, SLICE("bob"));
    listen_to_server(&alice);
    send_command(&alice, 4, "\"type\":\"no_such_command\"");
    if (alice.status == 101 && !alice.dismissed)
        client_frame(&alice.client, CLIENT_PING, "?", 1);
    send_command(&alice, 5, "\"type\":\"unsubscribe_presence\",\"user_ids\":[\"carol\"]");
    send_heartbeat(&alice);
    world_advance(&world, 5000); /* leases are renewed */
    listen_to_server(&alice);
    listen_to_server(&bob);
}

static void end_play(void)
{
    check(&alice);
    check(&bob);
    leave(&alice);
    leave(&bob);
    world_advance(&world, 20000);
    assert_int_equal(world.sessions->connections.count, 0);
    assert_int_equal(world.rest->listener.connection_count, 0);
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    assert_int_equal(world_leases(&world, "bob", NULL), 0);
    assert_int_equal(world_metric(&world, METRIC_SUBSCRIPTIONS), 0);
}

static void prepare(struct actor *actor, const char *user)
{
    memset(actor, 0, sizeof(*actor));
    actor->client.fd = -1;
    world_token(&world, user, "", 3600000, actor->token);
}

static void check_service_is_normal(void)
{
    prepare(&alice, "alice");
    prepare(&bob, "bob");
    play();
    assert_int_equal(alice.status, 101);
    assert_int_equal(bob.status, 101);
    assert_false(alice.dismissed);
    assert_string_equal(alice.last_status, "away");
    end_play();
}

/* Plays once with allocations failing as `fail_at` sets up; returns how many failed. */
static size_t play_without_memory(alloc_fault_start fail_at, size_t n)
{
    world_open(&world, WORLD_DEFAULTS);
    prepare(&alice, "alice");
    prepare(&bob, "bob");
    fail_at(n);
    play();
    size_t failed = alloc_fault_off();
    end_play();
    check_service_is_normal();
    world_close(&world);
    return failed;
}

static void one_failing_allocation_leaves_no_client_without_a_reply_or_close(void **unused)
{
    (void)unused;
    /* the number of allocations that failed, one in each run */
    assert_in_range(alloc_fault_sweep(alloc_fault_after, play_without_memory), 50, 5000);
}

static void no_memory_from_any_point_on_leaves_no_client_without_a_reply_or_close(void **unused)
{
    (void)unused;
    /* the number of allocations that failed, one in each run */
    assert_in_range(alloc_fault_sweep(alloc_fault_from, play_without_memory), 50, 5000);
}

/* Queues ten messages in one turn: the first needs no memory, the others do. */
static size_t push_without_memory(size_t n)
{
    unsigned delivered = 0;
    enum client_event event;
    client_connect(&alice.client, &world, "alice");
    alloc_fault_after(n);
    for (int i = 0; i < 10; i++)
        world_push(&world, "alice", "[1]", 0);
    size_t failed = alloc_fault_off();
    while ((event = client_next(&alice.client)) == CLIENT_TEXT &&
           client_has(&alice.client, "\"type\":\"delivery\""))
        delivered++;
    if (!failed) {
        assert_int_equal(delivered, 10);
        client_hang_up(&alice.client);
        return failed;
    }
    assert_int_equal(event, CLIENT_TEXT);
    assert_true(client_has(&alice.client, "\"reason\":\"memory_pressure\""));
    client_expect_close(&alice.client, 4004);
    client_hang_up(&alice.client);
    return failed;
}

static void message_that_cannot_be_queued_ends_the_connection_with_a_reason(void **unused)
{
    (void)unused;
    size_t n = 1;
    world_open(&world, WORLD_DEFAULTS);
    while (push_without_memory(n))
        n++;
    assert_true(n > 10);
    world_close(&world);
}

/* The spare close frame needs no memory. */
static void end_is_signalled_when_nothing_can_be_allocated(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    for (int queued = 0; queued < 3; queued++) {
        client_connect(&alice.client, &world, "alice");
        for (int i = 0; i < queued; i++)
            world_push(&world, "alice", "[1]", 0);
        alloc_fault_from(1);
        connection_end(&world_session(&world, "alice")->connection, CLOSING_ADMIN, -1);
        for (int i = 0; i < queued; i++)
            client_expect(&alice.client, "delivery");
        client_expect_close(&alice.client, 4004);
        alloc_fault_off();
        client_frame(&alice.client, CLIENT_CLOSE, "", 0);
        client_expect_end(&alice.client);
    }
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_that_cannot_be_queued_ends_the_connection_with_a_reason),
        cmocka_unit_test(end_is_signalled_when_nothing_can_be_allocated),
        cmocka_unit_test(one_failing_allocation_leaves_no_client_without_a_reply_or_close),
        cmocka_unit_test(no_memory_from_any_point_on_leaves_no_client_without_a_reply_or_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
