/* From an HTTP request to a WebSocket: each step that can fail, and clients that vanish between two. */
#include "api/api_context.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define UPGRADE "Connection: Upgrade\r\nUpgrade: websocket\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

static struct world world;
static struct client alice, bob, carol;
static char token[WORLD_TOKEN_BYTES_MAX];

static void open_with(const char *const *sets)
{
    world_open(&world, sets);
    world_token(&world, "alice", "", 3600000, token);
}

static unsigned request_upgrade(const char *target, const char *headers)
{
    client_dial(&alice, &world, 0);
    client_print(&alice, "GET %s HTTP/1.1\r\nHost: test\r\n%s\r\n", target, headers);
    return client_response(&alice);
}

static unsigned request_upgrade_with_token(const char *target, const char *headers)
{
    char all[WORLD_TOKEN_BYTES_MAX + 512];
    snprintf(all, sizeof(all), UPGRADE VERSION KEY "Authorization: Bearer %s\r\n%s", token,
             headers);
    return request_upgrade(target, all);
}

static void expect_refused(unsigned status, unsigned expected)
{
    assert_int_equal(status, expected);
    assert_int_equal(world.sessions->session_count, 0);
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    client_hang_up(&alice);
}

/* ---- the steps ---- */

static void valid_handshake_is_answered_as_rfc_6455_requires(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    assert_int_equal(
        request_upgrade_with_token("/v1/ws", "Sec-WebSocket-Protocol: chat, rollcall.v1\r\n"), 101);
    assert_true(client_has(&alice, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    assert_true(client_has(&alice, "Sec-WebSocket-Protocol: rollcall.v1\r\n"));
    client_expect(&alice, "connection_established");
    assert_true(client_has(&alice, "\"server_id\":\"gw-test\",\"user_id\":\"alice\""));
    assert_true(
        client_has(&alice, "\"heartbeat_interval_seconds\":5,\"expiry_window_seconds\":15"));
    client_hang_up(&alice);
    world_close(&world);
}

static void invalid_handshake_is_refused(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    expect_refused(request_upgrade("/v1/ws", ""), 426);
    expect_refused(request_upgrade("/v1/ws", UPGRADE "Sec-WebSocket-Version: 12\r\n" KEY), 426);
    assert_true(client_has(&alice, VERSION));
    expect_refused(request_upgrade("/v1/ws", UPGRADE VERSION "Sec-WebSocket-Key: short\r\n"), 400);
    expect_refused(request_upgrade("/v1/ws", UPGRADE VERSION KEY KEY), 400);
    expect_refused(request_upgrade("/v1/ws", UPGRADE VERSION VERSION KEY), 400);
    expect_refused(request_upgrade("/v1/ws", UPGRADE VERSION), 400);
    client_dial(&alice, &world, 0);
    client_print(&alice, "GET /v1/ws HTTP/1.0\r\n" UPGRADE VERSION KEY "\r\n");
    expect_refused(client_response(&alice), 426); /* HTTP/1.0 has no upgrades */
    world_close(&world);
}

static void bytes_sent_before_the_101_are_refused(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    client_dial(&alice, &world, 0);
    client_print(&alice,
                 "GET /v1/ws HTTP/1.1\r\nHost: test\r\n" UPGRADE VERSION KEY
                 "Authorization: Bearer %s\r\n\r\n\x81\x80xxxx",
                 token);
    expect_refused(client_response(&alice), 400);
    world_close(&world);
}

static void frames_sent_while_the_token_is_verified_are_not_lost(void **unused)
{
    (void)unused;
    const char heartbeat[] = "{\"type\":\"heartbeat\"}";
    open_with(WORLD_DEFAULTS);
    client_dial(&alice, &world, 0);
    client_print(&alice,
                 "GET /v1/ws HTTP/1.1\r\nHost: test\r\n" UPGRADE VERSION KEY
                 "Authorization: Bearer %s\r\n\r\n",
                 token);
    world.sessions->verifier->per_turn = 0; /* the token waits */
    world_turn(&world);
    world_turn(&world);
    client_frame(&alice, CLIENT_TEXT, heartbeat, strlen(heartbeat));
    world_turn(&world);
    world.sessions->verifier->per_turn = 32;
    assert_int_equal(client_response(&alice), 101);
    client_expect(&alice, "connection_established");
    client_expect(&alice, "heartbeat_ack");
    client_hang_up(&alice);
    world_close(&world);
}

static void token_is_read_from_header_query_or_subprotocol(void **unused)
{
    (void)unused;
    char text[WORLD_TOKEN_BYTES_MAX + 256];
    open_with(WORLD_DEFAULTS);
    snprintf(text, sizeof(text), "/v1/ws?access_token=%s", token);
    assert_int_equal(request_upgrade(text, UPGRADE VERSION KEY), 101);
    client_hang_up(&alice);
    snprintf(text, sizeof(text),
             UPGRADE VERSION KEY "Sec-WebSocket-Protocol: rollcall.v1, bearer.%s\r\n", token);
    assert_int_equal(request_upgrade("/v1/ws", text), 101);
    assert_true(client_has(&alice, "Sec-WebSocket-Protocol: rollcall.v1\r\n"));
    assert_false(client_has(&alice, token));
    client_hang_up(&alice);
    expect_refused(request_upgrade("/v1/ws", UPGRADE VERSION KEY), 401);
    expect_refused(request_upgrade("/v1/ws?access_token=a.b.c", UPGRADE VERSION KEY), 401);
    assert_true(client_has(&alice, "WWW-Authenticate: Bearer"));
    assert_int_equal(world_metric(&world, METRIC_AUTH_FAILURES), 1);
    world_close(&world);
}

static void origin_that_is_not_allowed_is_refused(void **unused)
{
    (void)unused;
    open_with(WORLD_SETS("gateway.allowed_origins=https://good.example"));
    expect_refused(request_upgrade_with_token("/v1/ws", "Origin: https://evil.example\r\n"), 403);
    assert_int_equal(request_upgrade_with_token("/v1/ws", "Origin: https://good.example\r\n"), 101);
    client_hang_up(&alice);
    assert_int_equal(request_upgrade_with_token("/v1/ws", ""), 101); /* not a browser */
    client_hang_up(&alice);
    assert_int_equal(world_metric(&world, METRIC_ORIGIN_REFUSED), 1);
    world_close(&world);
}

static void device_id_has_1_to_128_bytes_without_control_characters(void **unused)
{
    (void)unused;
    char target[256];
    open_with(WORLD_DEFAULTS);
    expect_refused(request_upgrade_with_token("/v1/ws?device_id=", ""), 400);
    expect_refused(request_upgrade_with_token("/v1/ws?device_id=a%01b", ""), 400);
    snprintf(target, sizeof(target), "/v1/ws?device_id=%0129d", 0);
    expect_refused(request_upgrade_with_token(target, ""), 400);
    snprintf(target, sizeof(target), "/v1/ws?device_id=%0128d", 0);
    assert_int_equal(request_upgrade_with_token(target, ""), 101);
    client_hang_up(&alice);
    world_close(&world);
}

/* ---- many handshakes at once ---- */

static void handshakes_are_limited_per_turn_and_in_number(void **unused)
{
    (void)unused;
    enum { CLIENTS = 12, WAITING_MAX = 9, PER_TURN = 2 };
    static struct client clients[CLIENTS];
    open_with(WORLD_SETS("gateway.handshakes_per_turn=2", "gateway.pending_handshakes_max=9"));
    for (int i = 0; i < CLIENTS; i++)
        client_dial(&clients[i], &world, 0);
    for (int i = 0; i < CLIENTS; i++)
        client_print(&clients[i],
                     "GET /v1/ws HTTP/1.1\r\nHost: test\r\n" UPGRADE VERSION KEY
                     "Authorization: Bearer %s\r\n\r\n",
                     token);
    for (size_t opened = PER_TURN; opened <= WAITING_MAX; opened += PER_TURN) {
        world_turn(&world);
        assert_int_equal(world.sessions->session_count, opened);
    }
    int refused = 0;
    for (int i = 0; i < CLIENTS; i++) {
        unsigned status = client_response(&clients[i]);
        assert_true(status == 101 || status == 503);
        refused += status == 503;
        client_hang_up(&clients[i]);
    }
    assert_int_equal(refused, CLIENTS - WAITING_MAX);
    world_close(&world);
}

/* ---- clients that vanish, drains that begin ---- */

static void start_handshake(struct client *client)
{
    world.sessions->verifier->per_turn = 0;
    client_dial(client, &world, 0);
    client_print(client,
                 "GET /v1/ws HTTP/1.1\r\nHost: test\r\n" UPGRADE VERSION KEY
                 "Authorization: Bearer %s\r\n\r\n",
                 token);
    world_turn(&world);
    world_turn(&world);
    assert_int_equal(world.sessions->verifier->pending.count, 1);
}

static void client_that_vanishes_while_its_token_waits_leaves_nothing(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    start_handshake(&alice);
    close(alice.fd);
    world_turn(&world);
    world.sessions->verifier->per_turn = 32;
    world_settle(&world);
    assert_int_equal(world.sessions->session_count, 0);
    assert_int_equal(world.sessions->connections.count, 0);
    assert_int_equal(world.rest->listener.connection_count, 0);
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    world_close(&world);
}

static void drain_that_begins_while_a_token_waits_refuses_the_handshake(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    client_connect(&bob, &world, "bob");
    client_send(&bob, "{\"type\":\"subscribe_presence\",\"user_ids\":[\"alice\"]}");
    client_expect(&bob, "presence_snapshot");
    start_handshake(&alice);
    gateway_drain(world.gateway);
    world_turn(&world);
    world.sessions->verifier->per_turn = 32;
    assert_int_equal(client_response(&alice), 503);
    client_expect_closing(&bob, "draining", 1001); /* no change of alice before it */
    client_hang_up(&alice);
    world_advance(&world, 2000); /* bob's last seen is stored */
    assert_true(world_drained(&world));
    world_close(&world);
}

static void connection_closed_while_its_token_waits_is_not_upgraded(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    start_handshake(&alice);
    world.sessions->verifier->per_turn = 32;
    http_listener_close_all(
        &world.rest->listener); /* the verifier runs before the socket is closed */
    client_expect_end(&alice);
    assert_int_equal(world.sessions->connections.count, 0);
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    world_close(&world);
}

/* ---- a slow store ---- */

static struct {
    struct state_store *real;
    const struct state_store_operations *operations;
    struct lease lease;
    state_transition_done done;
    void *arg;
} held;

static void hold_open(struct state_store *store, const struct lease *lease,
                      state_transition_done done, void *arg)
{
    (void)store;
    held.lease = *lease;
    held.lease.user_id = SLICE("alice");
    held.lease.device_id = SLICE("phone");
    held.done = done;
    held.arg = arg;
}

static void release_open(void)
{
    held.operations->open(held.real, &held.lease, held.done, held.arg);
    world_settle(&world);
}

static void client_that_vanishes_while_it_is_registered_ends_offline(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    client_connect(&carol, &world, "carol");
    client_send(&carol, "{\"type\":\"subscribe_presence\",\"user_ids\":[\"alice\"]}");
    client_expect(&carol, "presence_snapshot");
    held.real = world.presence->store;
    held.operations = held.real->operations;
    struct state_store_operations slow = *held.operations;
    slow.open = hold_open;
    held.real->operations = &slow;
    client_dial(&alice, &world, 0);
    client_upgrade(&alice, token);
    assert_int_equal(client_response(&alice), 0);
    http_listener_close_all(&world.rest->listener);
    client_expect_end(&alice);
    held.real->operations = held.operations;
    release_open();
    client_expect(&carol, "presence_changed"); /* the newer state replaced the older */
    assert_true(client_has(&carol, "\"status\":\"offline\""));
    client_expect_nothing(&carol);
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    client_hang_up(&carol);
    world_close(&world);
}

/* ---- /v1/echo ---- */

static void echo_is_served_only_if_configured_and_ends_with_a_drain(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    assert_int_equal(request_upgrade("/v1/echo", UPGRADE VERSION KEY), 404);
    client_hang_up(&alice);
    world_close(&world);
    open_with(WORLD_SETS("debug.echo=true"));
    assert_int_equal(request_upgrade("/v1/echo", UPGRADE VERSION KEY), 101);
    client_send(&alice, "anything");
    assert_int_equal(client_next(&alice), CLIENT_TEXT);
    assert_string_equal(alice.text, "anything");
    client_frame(&alice, CLIENT_BINARY, "\x00\xff", 2);
    assert_int_equal(client_next(&alice), CLIENT_BINARY);
    assert_int_equal(alice.text_len, 2);
    world_drain(&world);
    client_expect_closing(&alice, "draining", 1001);
    assert_true(world_drained(&world));
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_handshake_is_answered_as_rfc_6455_requires),
        cmocka_unit_test(invalid_handshake_is_refused),
        cmocka_unit_test(bytes_sent_before_the_101_are_refused),
        cmocka_unit_test(frames_sent_while_the_token_is_verified_are_not_lost),
        cmocka_unit_test(token_is_read_from_header_query_or_subprotocol),
        cmocka_unit_test(origin_that_is_not_allowed_is_refused),
        cmocka_unit_test(device_id_has_1_to_128_bytes_without_control_characters),
        cmocka_unit_test(handshakes_are_limited_per_turn_and_in_number),
        cmocka_unit_test(client_that_vanishes_while_its_token_waits_leaves_nothing),
        cmocka_unit_test(drain_that_begins_while_a_token_waits_refuses_the_handshake),
        cmocka_unit_test(connection_closed_while_its_token_waits_is_not_upgraded),
        cmocka_unit_test(client_that_vanishes_while_it_is_registered_ends_offline),
        cmocka_unit_test(echo_is_served_only_if_configured_and_ends_with_a_drain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
