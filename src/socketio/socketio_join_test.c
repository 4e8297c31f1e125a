/* Joins that fail, on virtual time: the state store fails, the client joins too often or not at all. A client that
 * is refused gets the reason and may try again. */
#include "socketio/socketio_session.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    CONNECT_TIMEOUT_MS = 45000,
    COMMAND_BURST = 100,
    CONNECT_BYTES_MAX = WORLD_TOKEN_BYTES_MAX + 64,
};

static struct world world;
static struct client alice;

/* The world's own operations, and those in which a test replaces some. */
static const struct state_store_operations *real_operations;
static struct state_store_operations test_operations;

/* A lease being opened by a slow store. */
static struct {
    struct lease lease;
    state_transition_done done;
    void *arg;
} held;

static void open_fails(struct state_store *store, const struct lease *lease,
                       state_transition_done done, void *arg)
{
    (void)store;
    (void)lease;
    done(arg, STATE_UNAVAILABLE, NULL);
}

static void open_waits(struct state_store *store, const struct lease *lease,
                       state_transition_done done, void *arg)
{
    (void)store;
    held.lease = *lease;
    held.done = done;
    held.arg = arg;
}

static bool is_unavailable(struct state_store *store)
{
    (void)store;
    return false;
}

static void restore_store(void)
{
    world.presence->store->operations = real_operations;
}

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    real_operations = world.presence->store->operations;
    test_operations = *real_operations;
    world.presence->store->operations = &test_operations;
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    restore_store();
    world_close(&world);
    return 0;
}

/* ---- the client ---- */

static void dial(struct client *client)
{
    assert_int_equal(client_dial_socketio(client, &world, "", 0), 101);
    client_expect_text(client, "0{\"sid\":\"");
}

static size_t write_connect(char packet[CONNECT_BYTES_MAX], const char *user)
{
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, user, "", 3600000, token);
    return (size_t)snprintf(packet, CONNECT_BYTES_MAX, "40{\"token\":\"%s\"}", token);
}

static void send_connect(struct client *client, const char *user)
{
    char packet[CONNECT_BYTES_MAX];
    write_connect(packet, user);
    client_send(client, packet);
}

static void join(struct client *client, const char *user)
{
    send_connect(client, user);
    client_expect_text(client, "40{\"sid\":\"");
    client_expect_text(client, "42[\"connection_established\",{\"conn_id\":\"");
}

static void expect_refusal(const char *text)
{
    char packet[256];
    snprintf(packet, sizeof(packet),
             "44{\"message\":\"%s\",\"data\":{\"code\":\"SERVICE_UNAVAILABLE\","
             "\"retry_after_seconds\":2}}",
             text);
    client_expect_text(&alice, packet);
    assert_string_equal(alice.text, packet);
    client_expect_nothing(&alice);
    assert_null(world_session(&world, "alice"));
}

static void expect_joined(void)
{
    client_expect_text(&alice, "40{\"sid\":\"");
    client_expect_text(&alice, "42[\"connection_established\",{\"conn_id\":\"");
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_ONLINE);
    assert_int_equal(world_leases(&world, "alice", NULL), 1);
}

/* ---- tests ---- */

static void client_is_refused_while_the_store_fails_and_may_try_again(void **unused)
{
    (void)unused;
    dial(&alice);
    test_operations.open = open_fails;
    for (int tries = 0; tries < 3; tries++) {
        send_connect(&alice, "alice");
        expect_refusal("the connection cannot be registered");
        world_advance(&world, 2000);
    }
    restore_store();
    send_connect(&alice, "alice");
    expect_joined();
    client_hang_up(&alice);
}

static void unavailable_store_is_not_called(void **unused)
{
    (void)unused;
    dial(&alice);
    test_operations.available = is_unavailable;
    test_operations.open = NULL;
    send_connect(&alice, "alice");
    expect_refusal("the state store does not answer");
    restore_store();
    send_connect(&alice, "alice");
    expect_joined();
    client_hang_up(&alice);
}

static void refusal_does_not_prolong_the_connect_timeout(void **unused)
{
    (void)unused;
    dial(&alice);
    test_operations.open = open_fails;
    for (int ms = 0; ms < CONNECT_TIMEOUT_MS - 5000; ms += 5000) {
        world_advance(&world, 5000);
        client_send(&alice, "3"); /* so that no ping is sent */
        send_connect(&alice, "alice");
        expect_refusal("the connection cannot be registered");
    }
    world_advance(&world, 4999);
    client_expect_nothing(&alice);
    world_advance(&world, 1);
    client_expect_close(&alice, 1008);
    client_hang_up(&alice);
}

/* The connect timeout does not apply meanwhile: the store has time limits of its own. */
static void client_waits_for_a_slow_store_and_is_refused_when_it_fails(void **unused)
{
    (void)unused;
    dial(&alice);
    test_operations.open = open_waits;
    send_connect(&alice, "alice");
    client_expect_nothing(&alice);
    for (int ms = 0; ms < CONNECT_TIMEOUT_MS; ms += 5000) {
        world_advance(&world, 5000);
        client_send(&alice, "3");
    }
    client_expect_nothing(&alice);
    held.done(held.arg, STATE_UNAVAILABLE, NULL);
    world_settle(&world);
    client_expect_text(&alice, "44{\"message\":\"the connection cannot be registered\"");
    client_hang_up(&alice);
}

static void client_that_closes_while_it_joins_leaves_no_lease(void **unused)
{
    (void)unused;
    char packet[CONNECT_BYTES_MAX];
    dial(&alice);
    client_frame(&alice, CLIENT_TEXT, packet, write_connect(packet, "alice"));
    client_frame(&alice, CLIENT_TEXT, "1", 1);
    world_settle(&world);
    client_expect_close(&alice, 1000);
    client_hang_up(&alice);
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_OFFLINE);
}

static void lease_opened_for_a_client_that_has_gone_is_closed(void **unused)
{
    (void)unused;
    dial(&alice);
    test_operations.open = open_waits;
    send_connect(&alice, "alice");
    client_hang_up(&alice);
    restore_store();
    state_open(world.presence->store, &held.lease, held.done, held.arg);
    world_settle(&world);
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_OFFLINE);
}

static void client_that_does_not_join_is_closed_after_the_connect_timeout(void **unused)
{
    (void)unused;
    dial(&alice);
    for (int ms = 0; ms < CONNECT_TIMEOUT_MS - 5000; ms += 5000) {
        world_advance(&world, 5000);
        client_send(&alice, "3");
    }
    client_expect_nothing(&alice);
    world_advance(&world, 4999);
    client_expect_nothing(&alice);
    world_advance(&world, 1);
    client_expect_close(&alice, 1008);
    client_hang_up(&alice);
    assert_int_equal(world_metric(&world, METRIC_SOCKETIO_CONNECTIONS), 0);
}

static void client_that_waits_longest_to_join_is_displaced_at_the_limit(void **unused)
{
    (void)unused;
    static struct client bob, carol, dave;
    world.config.socketio.pending_sessions_max = 2;
    dial(&carol);
    join(&carol, "carol");
    dial(&alice);
    dial(&bob);
    dial(&dave);
    while (client_next(&alice) == CLIENT_CLOSE)
        ;
    assert_true(alice.ended);
    assert_int_equal(socketio_context_of_sessions(world.sessions)->waiting_count, 2);
    assert_int_equal(world_metric(&world, METRIC_CONNECTIONS_DISPLACED), 1);
    join(&bob, "bob");
    join(&dave, "dave");
    client_expect_nothing(&carol);
    assert_int_equal(socketio_context_of_sessions(world.sessions)->waiting_count, 0);
    client_hang_up(&bob);
    client_hang_up(&carol);
    client_hang_up(&dave);
}

static void client_that_has_not_joined_is_displaced_by_a_new_connection(void **unused)
{
    (void)unused;
    static struct client bob;
    dial(&alice);
    world.rest->connections_max = 1;
    client_dial(&bob, &world, 0);
    while (client_next(&alice) == CLIENT_CLOSE)
        ;
    assert_true(alice.ended);
    client_print(&bob, "GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_int_equal(client_response(&bob), 200);
    world.rest->connections_max = 1000;
    client_hang_up(&bob);
}

/* The client that has not sent CONNECT is displaced instead. */
static void joining_client_is_not_displaced(void **unused)
{
    (void)unused;
    static struct client bob, carol;
    world.config.socketio.pending_sessions_max = 2;
    dial(&alice);
    test_operations.open = open_waits;
    send_connect(&alice, "alice");
    world_settle(&world);
    dial(&bob);
    dial(&carol);
    while (client_next(&bob) == CLIENT_CLOSE)
        ;
    assert_true(bob.ended);
    restore_store();
    state_open(world.presence->store, &held.lease, held.done, held.arg);
    expect_joined();
    client_hang_up(&alice);
    client_hang_up(&bob);
    client_hang_up(&carol);
}

/* Contacts are told each time, so joining counts as a command. */
static void joining_and_leaving_repeatedly_is_rate_limited(void **unused)
{
    (void)unused;
    restore_store();
    dial(&alice);
    for (int times = 0; times < COMMAND_BURST; times++) {
        send_connect(&alice, "alice");
        expect_joined();
        client_send(&alice, "41");
    }
    send_connect(&alice, "alice");
    client_expect_text(&alice,
                       "44{\"message\":\"too many commands\",\"data\":{\"code\":\"RATE_LIMITED\","
                       "\"retry_after_seconds\":2}}");
    assert_null(world_session(&world, "alice"));
    world_advance(&world, 2000);
    send_connect(&alice, "alice");
    expect_joined();
    client_hang_up(&alice);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(client_is_refused_while_the_store_fails_and_may_try_again),
        TEST(unavailable_store_is_not_called),
        TEST(refusal_does_not_prolong_the_connect_timeout),
        TEST(client_waits_for_a_slow_store_and_is_refused_when_it_fails),
        TEST(client_that_closes_while_it_joins_leaves_no_lease),
        TEST(lease_opened_for_a_client_that_has_gone_is_closed),
        TEST(client_that_does_not_join_is_closed_after_the_connect_timeout),
        TEST(client_that_waits_longest_to_join_is_displaced_at_the_limit),
        TEST(client_that_has_not_joined_is_displaced_by_a_new_connection),
        TEST(joining_client_is_not_displaced),
        TEST(joining_and_leaving_repeatedly_is_rate_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
