/* Joining that does not come to pass, on virtual time: since the state store fails, it is done too often, or not at
 * all. Who is refused is told so and may try again. */
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

/* The world's own store, but for what a test lets fail. */
static const struct state_store_operations *sound;
static struct state_store_operations failing;

/* An open that the store takes its time for. */
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

static bool is_away(struct state_store *store)
{
    (void)store;
    return false;
}

static void mend(void)
{
    world.presence->store->operations = sound;
}

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    sound = world.presence->store->operations;
    failing = *sound;
    world.presence->store->operations = &failing;
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    mend();
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

static void a_store_that_fails_between_handshake_and_joining(void **unused)
{
    (void)unused;
    dial(&alice);
    failing.open = open_fails;
    for (int tries = 0; tries < 3; tries++) {
        send_connect(&alice, "alice");
        expect_refusal("the connection cannot be registered");
        world_advance(&world, 2000);
    }
    mend();
    send_connect(&alice, "alice");
    expect_joined();
    client_hang_up(&alice);
}

static void a_store_that_is_known_to_be_away_is_not_asked(void **unused)
{
    (void)unused;
    dial(&alice);
    failing.available = is_away;
    failing.open = NULL;
    send_connect(&alice, "alice");
    expect_refusal("the state store does not answer");
    mend();
    send_connect(&alice, "alice");
    expect_joined();
    client_hang_up(&alice);
}

/* A refusal gives no time beyond what there was to join. */
static void who_is_refused_has_as_much_time_as_before(void **unused)
{
    (void)unused;
    dial(&alice);
    failing.open = open_fails;
    for (int ms = 0; ms < CONNECT_TIMEOUT_MS - 5000; ms += 5000) {
        world_advance(&world, 5000);
        client_send(&alice, "3"); /* so that no ping comes between */
        send_connect(&alice, "alice");
        expect_refusal("the connection cannot be registered");
    }
    world_advance(&world, 4999);
    client_expect_nothing(&alice);
    world_advance(&world, 1);
    client_expect_close(&alice, 1008);
    client_hang_up(&alice);
}

/* The answer is awaited beyond the time to join: the store has limits of its own. */
static void a_store_that_is_slow_and_then_fails(void **unused)
{
    (void)unused;
    dial(&alice);
    failing.open = open_waits;
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

static void one_that_goes_while_it_joins_leaves_nothing(void **unused)
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

/* What a slow store has taken for one who has gone is given back. */
static void one_that_goes_before_the_store_answers_leaves_no_lease(void **unused)
{
    (void)unused;
    dial(&alice);
    failing.open = open_waits;
    send_connect(&alice, "alice");
    client_hang_up(&alice);
    mend();
    state_open(world.presence->store, &held.lease, held.done, held.arg);
    world_settle(&world);
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_OFFLINE);
}

static void who_does_not_join_is_closed(void **unused)
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

static void who_has_waited_longest_to_join_gives_way(void **unused)
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
    assert_int_equal(socketio_context_of_sessions(world.handlers)->waiting_count, 2);
    assert_int_equal(world_metric(&world, METRIC_CONNECTIONS_DISPLACED), 1);
    join(&bob, "bob");
    join(&dave, "dave");
    client_expect_nothing(&carol);
    assert_int_equal(socketio_context_of_sessions(world.handlers)->waiting_count, 0);
    client_hang_up(&bob);
    client_hang_up(&carol);
    client_hang_up(&dave);
}

/* Nor do they hold places that others could have. */
static void who_has_not_joined_gives_way_to_any_connection(void **unused)
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

/* However long that takes: it is the one who does nothing that has to go. */
static void who_joins_gives_way_to_nobody(void **unused)
{
    (void)unused;
    static struct client bob, carol;
    world.config.socketio.pending_sessions_max = 2;
    dial(&alice);
    failing.open = open_waits;
    send_connect(&alice, "alice");
    world_settle(&world);
    dial(&bob);
    dial(&carol);
    while (client_next(&bob) == CLIENT_CLOSE)
        ;
    assert_true(bob.ended);
    mend();
    state_open(world.presence->store, &held.lease, held.done, held.arg);
    expect_joined();
    client_hang_up(&alice);
    client_hang_up(&bob);
    client_hang_up(&carol);
}

/* Each time friends hear of it: joining is a command like any other. */
static void who_joins_and_leaves_without_end_is_slowed_down(void **unused)
{
    (void)unused;
    mend();
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
        TEST(a_store_that_fails_between_handshake_and_joining),
        TEST(a_store_that_is_known_to_be_away_is_not_asked),
        TEST(who_is_refused_has_as_much_time_as_before),
        TEST(a_store_that_is_slow_and_then_fails),
        TEST(one_that_goes_while_it_joins_leaves_nothing),
        TEST(one_that_goes_before_the_store_answers_leaves_no_lease),
        TEST(who_does_not_join_is_closed),
        TEST(who_has_waited_longest_to_join_gives_way),
        TEST(who_has_not_joined_gives_way_to_any_connection),
        TEST(who_joins_gives_way_to_nobody),
        TEST(who_joins_and_leaves_without_end_is_slowed_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
