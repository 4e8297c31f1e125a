/* Socket.IO clients over a WebSocket, on virtual time: joining, signs of life, leaving, invalid packets. */
#include "socketio/socketio_session.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { UNHEALTHY_MS = 10000, WINDOW_MS = 15000 };

static struct world world;
static struct client alice, bob;
static char token[WORLD_TOKEN_BYTES_MAX];

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    return 0;
}

static int open_world_with_short_ping_interval(void **unused)
{
    (void)unused;
    world_open(&world,
               WORLD_SETS("socketio.ping_interval_ms=1000", "socketio.ping_timeout_ms=500"));
    return 0;
}

static int open_world_with_short_queues(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_SETS("gateway.backpressure.outbound.max_buffer_messages=20"));
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    world_close(&world);
    return 0;
}

/* ---- the client ---- */

static void dial_on(struct client *client, const char *query, int send_bytes)
{
    assert_int_equal(client_dial_socketio(client, &world, query, send_bytes), 101);
    client_expect_text(client, "0{\"sid\":\"");
    assert_true(client_has(client, "\"upgrades\":[],\"pingInterval\":"));
}

static void dial(struct client *client, const char *query)
{
    dial_on(client, query, 0);
}

static void send_connect(struct client *client, const char *user)
{
    char packet[WORLD_TOKEN_BYTES_MAX + 64];
    world_token(&world, user, "", 3600000, token);
    snprintf(packet, sizeof(packet), "40{\"token\":\"%s\",\"device_id\":\"phone\"}", token);
    client_send(client, packet);
}

static void join(struct client *client, const char *user)
{
    send_connect(client, user);
    client_expect_text(client, "40{\"sid\":\"");
    client_expect_text(client, "42[\"connection_established\",{\"conn_id\":\"");
}

static void connect_client(struct client *client, const char *user)
{
    dial(client, "");
    join(client, user);
}

static void expect_protocol_error(struct client *client)
{
    client_expect_close(client, 1002);
    client_hang_up(client);
}

/* ---- joining ---- */

static void joined_client_has_a_session_like_any_other(void **unused)
{
    (void)unused;
    connect_client(&alice, "alice");
    struct session *session = world_session(&world, "alice");
    assert_non_null(session);
    assert_true(session_is_device(&session->endpoint, SLICE("phone")));
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_ONLINE);
    assert_int_equal(world_leases(&world, "alice", NULL), 1);
    assert_int_equal(world_metric(&world, METRIC_CONNECTIONS_ACTIVE), 1);
    assert_int_equal(world_metric(&world, METRIC_SOCKETIO_CONNECTIONS), 1);
    client_send(&alice, "427[\"heartbeat\",{}]");
    client_expect_text(&alice, "437[{\"type\":\"heartbeat_ack\",\"server_time\":\"");
    world_push(&world, "alice", "{\"x\":1}", 0);
    client_expect_text(&alice, "42[\"delivery\",{\"data\":{\"x\":1}}");
    client_hang_up(&alice);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_OFFLINE);
    assert_int_equal(world_metric(&world, METRIC_SOCKETIO_CONNECTIONS), 0);
}

static void token_and_device_of_the_handshake_are_used(void **unused)
{
    (void)unused;
    char query[WORLD_TOKEN_BYTES_MAX + 64];
    world_token(&world, "alice", "", 3600000, token);
    snprintf(query, sizeof(query), "&access_token=%s&device_id=tablet", token);
    dial(&alice, query);
    client_send(&alice, "40");
    client_expect_text(&alice, "40{\"sid\":\"");
    assert_true(session_is_device(&world_session(&world, "alice")->endpoint, SLICE("tablet")));
    client_hang_up(&alice);
}

static void refused_client_may_try_again(void **unused)
{
    (void)unused;
    dial(&alice, "");
    client_send(&alice, "40");
    client_expect_text(
        &alice, "44{\"message\":\"a token is needed\",\"data\":{\"code\":\"UNAUTHENTICATED\"}}");
    client_send(&alice, "40{\"token\":\"nonsense\"}");
    client_expect_text(&alice, "44{\"message\":\"");
    assert_true(client_has(&alice, "\"code\":\"UNAUTHENTICATED\""));
    client_send(&alice, "40{\"token\":7}");
    client_expect_text(&alice, "44{\"message\":\"auth.token must be a string\"");
    client_send(&alice, "40{\"device_id\":\"\",\"token\":\"x\"}");
    client_expect_text(&alice, "44{\"message\":\"auth.device_id");
    client_send(&alice, "40/admin,{\"token\":\"x\"}");
    client_expect_text(&alice, "44/admin,{\"message\":\"Invalid namespace\"}");
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    join(&alice, "alice");
    client_hang_up(&alice);
}

/* ---- signs of life ---- */

static void silent_client_is_pinged_and_a_pong_keeps_its_lease(void **unused)
{
    (void)unused;
    connect_client(&alice, "alice");
    for (int i = 0; i < 12; i++) {
        world_advance(&world, UNHEALTHY_MS - 1);
        client_expect_nothing(&alice);
        world_advance(&world, 1);
        client_expect_text(&alice, "2");
        assert_int_equal(world_leases(&world, "alice", NULL), 1);
        client_send(&alice, "3");
    }
    world_advance(&world, WINDOW_MS - 1);
    client_expect_text(&alice, "2");
    client_expect_nothing(&alice);
    world_advance(&world, 1);
    client_expect_text(&alice, "42[\"connection_closing\",{\"reason\":\"heartbeat_timeout\"");
    client_expect_close(&alice, 4002);
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    client_hang_up(&alice);
}

static void pings_are_sent_at_their_interval_and_a_missing_pong_ends_the_connection(void **unused)
{
    (void)unused;
    connect_client(&alice, "alice");
    for (int i = 0; i < 5; i++) {
        world_advance(&world, 999);
        client_expect_nothing(&alice);
        world_advance(&world, 1);
        client_expect_text(&alice, "2");
        client_send(&alice, "3");
    }
    world_advance(&world, 1000);
    client_expect_text(&alice, "2");
    client_send(&alice, "42[\"HEARTBEAT\"]"); /* a sign of life, but no pong */
    client_expect_text(&alice, "42[\"heartbeat_ack\"");
    world_advance(&world, 499);
    client_expect_nothing(&alice);
    world_advance(&world, 1);
    client_expect_text(&alice, "42[\"connection_closing\",{\"reason\":\"heartbeat_timeout\"");
    client_expect_close(&alice, 4002);
    client_hang_up(&alice);
}

/* ---- leaving ---- */

static void disconnect_ends_the_session_and_the_client_may_join_again(void **unused)
{
    (void)unused;
    connect_client(&alice, "alice");
    struct ulid first = world_session(&world, "alice")->conn_id;
    client_send(&alice, "41");
    client_expect_nothing(&alice);
    assert_null(world_session(&world, "alice"));
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_OFFLINE);
    assert_int_equal(world_metric(&world, METRIC_CONNECTIONS_ACTIVE), 0);
    world_advance(&world, UNHEALTHY_MS);
    client_expect_text(&alice, "2");
    client_send(&alice, "3");
    join(&alice, "bob");
    assert_false(ulid_equal(&first, &world_session(&world, "bob")->conn_id));
    client_send(&alice, "41");
    client_send(&alice, "42[\"HEARTBEAT\"]");
    expect_protocol_error(&alice);
}

static void user_disconnect_is_acknowledged_and_followed_by_a_disconnect(void **unused)
{
    (void)unused;
    connect_client(&alice, "alice");
    client_send(&alice, "421[\"user:connect\",{\"userId\":\"mallory\"}]");
    client_expect_text(&alice, "431[{\"type\":\"ok\"}]");
    client_send(&alice, "422[\"user:disconnect\"]");
    client_expect_text(&alice, "432[{\"type\":\"ok\"}]");
    client_expect_text(&alice, "41");
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    client_send(&alice, "1");
    client_expect_close(&alice, 1000);
    client_hang_up(&alice);
}

static void drain_warns_joined_clients_and_closes_the_others(void **unused)
{
    (void)unused;
    connect_client(&alice, "alice");
    dial(&bob, "");
    world_drain(&world);
    client_expect_text(&alice, "42[\"connection_closing\",{\"reason\":\"draining\"");
    client_expect_close(&bob, 1001);
    client_hang_up(&bob);
    client_hang_up(&alice);
}

/* Reads up to the next text that is no delivery. */
static void skip_deliveries(struct client *client)
{
    do
        assert_int_equal(client_next(client), CLIENT_TEXT);
    while (client_has(client, "42[\"delivery\""));
}

static void slow_consumer_is_warned_and_ended_by_events(void **unused)
{
    (void)unused;
    char data[1024];
    memset(data, 'x', sizeof(data) - 1);
    data[0] = data[sizeof(data) - 2] = '"';
    data[sizeof(data) - 1] = '\0';
    dial_on(&alice, "", 4096);
    join(&alice, "alice");
    for (int i = 0; i < 40; i++)
        world_push(&world, "alice", data, 0);
    world_advance(&world, 5000);
    assert_int_equal(world_metric(&world, METRIC_SLOW_CONSUMER_DISCONNECTS), 1);
    skip_deliveries(&alice);
    assert_true(client_has(&alice, "42[\"error\",{\"code\":\"SLOW_CONSUMER\""));
    skip_deliveries(&alice);
    assert_true(client_has(&alice, "42[\"connection_closing\",{\"reason\":\"slow_consumer\""));
    client_expect_close(&alice, 4003);
    client_hang_up(&alice);
}

/* ---- invalid packets ---- */

static void invalid_event_is_answered_with_an_error(void **unused)
{
    (void)unused;
    connect_client(&alice, "alice");
    client_send(&alice, "42[\"nonsense\"]");
    client_expect_text(&alice, "42[\"error\",{\"code\":\"INVALID_MESSAGE\"");
    client_send(&alice, "423[\"open_chat\",{}]");
    client_expect_text(&alice, "433[{\"type\":\"error\",\"code\":\"INVALID_MESSAGE\"");
    client_send(&alice, "42[\"error\",{}]");
    client_expect_text(&alice, "42[\"error\",{\"code\":\"INVALID_MESSAGE\"");
    client_send(&alice, "4312[{}]"); /* an acknowledgement that was not requested */
    client_expect_nothing(&alice);
    client_hang_up(&alice);
}

static void binary_event_is_refused_and_its_attachments_are_skipped(void **unused)
{
    (void)unused;
    connect_client(&alice, "alice");
    client_send(&alice, "452-9[\"file\",{\"_placeholder\":true,\"num\":1}]");
    client_expect_text(&alice, "439[{\"type\":\"error\",\"code\":\"INVALID_MESSAGE\"");
    client_frame(&alice, CLIENT_BINARY, "one", 3);
    client_frame(&alice, CLIENT_BINARY, "two", 3);
    client_send(&alice, "421[\"HEARTBEAT\"]");
    client_expect_text(&alice, "431[{\"type\":\"heartbeat_ack\"");
    client_frame(&alice, CLIENT_BINARY, "three", 5);
    world_settle(&world);
    client_expect_text(&alice, "42[\"error\",{\"code\":\"INVALID_MESSAGE\"");
    expect_protocol_error(&alice);
}

static void protocol_violation_closes_the_connection(void **unused)
{
    (void)unused;
    static const char *const PACKETS[] = {
        "49",
        "4",
        "42[{\"a\":1}]",
        "42[\"disconnect\"]",
        "7",
        "2probe",
        "40{}",
        "42/admin,[\"event\"]",
        "44{}",
        "451-[\"file\",{"
        "\"_placeholder\":true,"
        "\"num\":1}]",
    };
    for (size_t i = 0; i < sizeof(PACKETS) / sizeof(PACKETS[0]); i++) {
        connect_client(&alice, "alice");
        client_send(&alice, PACKETS[i]);
        client_expect_text(&alice, "42[\"error\",{\"code\":\"INVALID_MESSAGE\"");
        expect_protocol_error(&alice);
        assert_int_equal(world_leases(&world, "alice", NULL), 0);
    }
    dial(&alice, "");
    client_send(&alice, "42[\"HEARTBEAT\"]");
    expect_protocol_error(&alice);
}

static void text_between_attachments_closes_the_connection(void **unused)
{
    (void)unused;
    connect_client(&alice, "alice");
    client_send(&alice, "452-[\"file\"]");
    client_expect_text(&alice, "42[\"error\"");
    client_send(&alice, "42[\"HEARTBEAT\"]");
    client_expect_text(&alice, "42[\"error\"");
    expect_protocol_error(&alice);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(joined_client_has_a_session_like_any_other),
        TEST(token_and_device_of_the_handshake_are_used),
        TEST(refused_client_may_try_again),
        TEST(silent_client_is_pinged_and_a_pong_keeps_its_lease),
        cmocka_unit_test_setup_teardown(
            pings_are_sent_at_their_interval_and_a_missing_pong_ends_the_connection,
            open_world_with_short_ping_interval, close_world),
        TEST(disconnect_ends_the_session_and_the_client_may_join_again),
        TEST(user_disconnect_is_acknowledged_and_followed_by_a_disconnect),
        TEST(drain_warns_joined_clients_and_closes_the_others),
        cmocka_unit_test_setup_teardown(slow_consumer_is_warned_and_ended_by_events,
                                        open_world_with_short_queues, close_world),
        TEST(invalid_event_is_answered_with_an_error),
        TEST(binary_event_is_refused_and_its_attachments_are_skipped),
        TEST(protocol_violation_closes_the_connection),
        TEST(text_between_attachments_closes_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
