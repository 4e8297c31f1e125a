/* The life of a connection on virtual time: signs of life, closing from both sides, vanishing. */
#include "connection/connection.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

enum { UNHEALTHY_MS = 10000, EXPIRY_WINDOW_MS = 15000, CLOSE_TIMEOUT_MS = 5000 };

static struct world world;
static struct client alice, bob;

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    world_close(&world);
    return 0;
}

/* ---- signs of life ---- */

static void silent_client_is_pinged_when_unhealthy_and_ended_after_the_expiry_window(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    world_advance(&world, UNHEALTHY_MS - 1);
    client_expect_nothing(&alice);
    assert_int_equal(world_metric(&world, METRIC_CONNECTION_UNHEALTHY), 0);
    world_advance(&world, 1);
    assert_int_equal(client_next(&alice), CLIENT_PING);
    assert_int_equal(world_metric(&world, METRIC_CONNECTION_UNHEALTHY), 1);
    world_advance(&world, EXPIRY_WINDOW_MS - UNHEALTHY_MS - 1);
    client_expect_nothing(&alice);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_ONLINE);
    world_advance(&world, 1);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_OFFLINE);
    assert_int_equal(world_leases(&world, "alice", NULL), 0);
    client_expect_closing(&alice, "heartbeat_timeout", 4002);
    assert_int_equal(world_metric(&world, METRIC_CONNECTION_TIMEOUT), 1);
}

static void pong_makes_the_client_healthy_and_the_next_silence_is_pinged(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    world_advance(&world, EXPIRY_WINDOW_MS - 1);
    assert_int_equal(client_next(&alice), CLIENT_PING);
    client_frame(&alice, CLIENT_PONG, "", 0);
    world_settle(&world);
    world_advance(&world, UNHEALTHY_MS - 1);
    client_expect_nothing(&alice);
    world_advance(&world, 1);
    assert_int_equal(client_next(&alice), CLIENT_PING);
    client_hang_up(&alice);
}

static void any_frame_is_a_sign_of_life(void **unused)
{
    (void)unused;
    const unsigned opcodes[] = {CLIENT_TEXT, CLIENT_BINARY, CLIENT_PING, CLIENT_PONG};
    client_connect(&alice, &world, "alice");
    for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
        world_advance(&world, UNHEALTHY_MS - 1);
        client_frame(&alice, opcodes[i], "?", 1);
        world_settle(&world);
    }
    assert_int_equal(world_metric(&world, METRIC_CONNECTION_UNHEALTHY), 0);
    client_hang_up(&alice);
}

static void incomplete_frame_is_no_sign_of_life(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    world_advance(&world, UNHEALTHY_MS - 1);
    client_write(&alice, "\x81\x85", 2);
    world_advance(&world, 1);
    assert_int_equal(client_next(&alice), CLIENT_PING);
    client_hang_up(&alice);
}

static void ping_is_answered_with_its_payload(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    client_frame(&alice, CLIENT_PING, "are you there", 13);
    assert_int_equal(client_next(&alice), CLIENT_PONG);
    assert_string_equal(alice.text, "are you there");
    client_hang_up(&alice);
}

static void each_of_several_pings_is_answered(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    for (char c = 'a'; c <= 'z'; c++)
        client_frame(&alice, CLIENT_PING, &c, 1);
    for (char c = 'a'; c <= 'z'; c++) {
        assert_int_equal(client_next(&alice), CLIENT_PONG);
        assert_int_equal(alice.text[0], c);
    }
    client_expect_nothing(&alice);
    client_hang_up(&alice);
}

static void newest_of_too_many_pings_is_answered(void **unused)
{
    (void)unused;
    enum { PINGS = 100, ANSWERED_AT_ONCE = 64 };
    client_connect(&alice, &world, "alice");
    for (unsigned char i = 0; i < PINGS; i++)
        client_frame(&alice, CLIENT_PING, &i, 1);
    for (unsigned char i = 0; i < ANSWERED_AT_ONCE; i++) {
        assert_int_equal(client_next(&alice), CLIENT_PONG);
        assert_int_equal((unsigned char)alice.text[0], i);
    }
    assert_int_equal(client_next(&alice), CLIENT_PONG);
    assert_int_equal((unsigned char)alice.text[0], PINGS - 1);
    client_expect_nothing(&alice);
    client_hang_up(&alice);
}

/* ---- closing ---- */

static void close_frame_is_answered_with_its_code_and_the_socket_is_closed(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    client_frame(&alice, CLIENT_CLOSE, "\x03\xe8goodbye", 9);
    client_expect_close(&alice, 1000);
    client_expect_end(&alice);
    assert_int_equal(world.sessions->connections.count, 0);
    client_connect(&bob, &world, "bob");
    client_frame(&bob, CLIENT_CLOSE, "", 0);
    client_expect_close(&bob, 1005);
    client_expect_end(&bob);
}

static void messages_after_a_close_frame_are_ignored(void **unused)
{
    (void)unused;
    const char heartbeat[] = "{\"type\":\"heartbeat\"}";
    client_connect(&alice, &world, "alice");
    client_frame(&alice, CLIENT_CLOSE, "\x03\xe8", 2);
    client_frame(&alice, CLIENT_TEXT, heartbeat, strlen(heartbeat));
    client_expect_close(&alice, 1000);
    client_expect_end(&alice);
    assert_int_equal(world_metric(&world, METRIC_HEARTBEATS), 0);
}

static void command_before_a_close_frame_is_answered(void **unused)
{
    (void)unused;
    const char heartbeat[] = "{\"type\":\"heartbeat\"}";
    client_connect(&alice, &world, "alice");
    client_frame(&alice, CLIENT_TEXT, heartbeat, strlen(heartbeat));
    client_frame(&alice, CLIENT_CLOSE, "\x03\xe8", 2);
    client_expect(&alice, "heartbeat_ack");
    client_expect_close(&alice, 1000);
    client_expect_end(&alice);
}

static void client_that_does_not_answer_our_close_frame_is_cut_off_after_the_timeout(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    connection_end(&world_session(&world, "alice")->connection, CLOSING_ADMIN, -1);
    client_expect(&alice, "connection_closing");
    client_expect_close(&alice, 4005);
    assert_null(world_session(&world, "alice"));
    world_advance(&world, CLOSE_TIMEOUT_MS - 1);
    client_send(&alice, "{\"type\":\"heartbeat\"}"); /* too late to be read */
    client_expect_nothing(&alice);
    world_advance(&world, 1);
    client_expect_end(&alice);
    assert_int_equal(world_metric(&world, METRIC_CONNECTIONS_CLOSED), 1);
}

static void both_sides_may_close_at_once(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    client_frame(&alice, CLIENT_CLOSE, "\x03\xe8", 2);
    connection_end(&world_session(&world, "alice")->connection, CLOSING_ADMIN, -1);
    client_expect(&alice, "connection_closing");
    client_expect_close(&alice, 4005);
    client_expect_end(&alice);
}

static void client_that_shuts_its_side_down_is_gone(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    shutdown(alice.fd, SHUT_WR);
    client_expect_end(&alice);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_OFFLINE);
}

static void client_that_sends_a_close_frame_and_shuts_its_side_down_is_answered(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    client_frame(&alice, CLIENT_CLOSE, "\x03\xe8", 2);
    shutdown(alice.fd, SHUT_WR);
    client_expect_close(&alice, 1000);
    client_expect_end(&alice);
}

static void client_that_vanishes_is_gone_at_once(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    client_connect(&bob, &world, "bob");
    client_hang_up(&alice);
    assert_int_equal(world.sessions->session_count, 1);
    assert_int_equal(world.sessions->connections.count, 1);
    assert_int_equal(world_metric(&world, METRIC_CONNECTIONS_ACTIVE), 1);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_OFFLINE);
    client_hang_up(&bob);
}

/* The close frame must reach a client that is still sending. A socket closed over unread bytes is reset, and
 * the client may lose what it has not read, so the server reads on until the client ends. */
static void client_that_goes_on_sending_after_a_violation_gets_the_close_frame(void **unused)
{
    (void)unused;
    static const char junk[60000];
    client_connect(&alice, &world, "alice");
    client_write(&alice, "\xff\xff\xff\xff", 4);
    for (int i = 0; i < 20; i++) {
        client_write(&alice, junk, sizeof(junk));
        world_settle(&world);
    }
    client_expect_close(&alice, 1002);
    assert_int_equal(client_next(&alice), CLIENT_END);
    assert_int_equal(world.sessions->connections.count, 1);
    assert_null(world_session(&world, "alice"));
    assert_int_equal(world_metric(&world, METRIC_PROTOCOL_ERRORS), 1);
    client_hang_up(&alice);
    assert_int_equal(world.sessions->connections.count, 0);
}

static void client_that_stays_after_a_violation_is_cut_off_after_the_timeout(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    client_write(&alice, "\xff\xff\xff\xff", 4);
    client_expect_close(&alice, 1002);
    world_advance(&world, CLOSE_TIMEOUT_MS - 1);
    assert_int_equal(world.sessions->connections.count, 1);
    world_advance(&world, 1);
    assert_int_equal(world.sessions->connections.count, 0);
    client_hang_up(&alice);
}

static void violation_while_ending_does_not_prolong_the_end(void **unused)
{
    (void)unused;
    client_connect(&alice, &world, "alice");
    connection_end(&world_session(&world, "alice")->connection, CLOSING_ADMIN, -1);
    client_expect(&alice, "connection_closing");
    client_expect_close(&alice, 4005);
    client_write(&alice, "\xff\xff\xff\xff", 4);
    assert_int_equal(client_next(&alice), CLIENT_END);
    client_hang_up(&alice);
    assert_int_equal(world.sessions->connections.count, 0);
}

static void message_beyond_the_limit_closes_with_1009(void **unused)
{
    (void)unused;
    static char large[65537];
    memset(large, ' ', sizeof(large));
    client_connect(&alice, &world, "alice");
    client_frame(&alice, CLIENT_TEXT, large, 65536);
    client_expect(&alice, "error");
    client_frame(&alice, CLIENT_TEXT, large, 65537);
    client_expect_close(&alice, 1009);
    client_hang_up(&alice);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(silent_client_is_pinged_when_unhealthy_and_ended_after_the_expiry_window),
        TEST(pong_makes_the_client_healthy_and_the_next_silence_is_pinged),
        TEST(any_frame_is_a_sign_of_life),
        TEST(incomplete_frame_is_no_sign_of_life),
        TEST(ping_is_answered_with_its_payload),
        TEST(each_of_several_pings_is_answered),
        TEST(newest_of_too_many_pings_is_answered),
        TEST(close_frame_is_answered_with_its_code_and_the_socket_is_closed),
        TEST(messages_after_a_close_frame_are_ignored),
        TEST(command_before_a_close_frame_is_answered),
        TEST(client_that_does_not_answer_our_close_frame_is_cut_off_after_the_timeout),
        TEST(both_sides_may_close_at_once),
        TEST(client_that_shuts_its_side_down_is_gone),
        TEST(client_that_sends_a_close_frame_and_shuts_its_side_down_is_answered),
        TEST(client_that_vanishes_is_gone_at_once),
        TEST(client_that_goes_on_sending_after_a_violation_gets_the_close_frame),
        TEST(client_that_stays_after_a_violation_is_cut_off_after_the_timeout),
        TEST(violation_while_ending_does_not_prolong_the_end),
        TEST(message_beyond_the_limit_closes_with_1009),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
