/* Clients that keep on beyond their limits, on virtual time: answered, then read more slowly, then closed. */
#include "connection/connection.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { STEP_MS = 100, FLOOD_PER_STEP = 10, CALM_MS = 5000 };

#define HEARTBEAT "{\"type\":\"heartbeat\",\"id\":7}"
#define TYPING_STOP "{\"type\":\"typing_stop\",\"chat_id\":\"c\"}"

static struct world world;
static struct client alice;

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    client_connect(&alice, &world, "alice");
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    client_end_world(&world, CLIENTS(&alice));
    return 0;
}

/* Sends so many frames and reads the answers, until the server closes. Returns false when it does. */
static bool send_frames(unsigned opcode, const char *payload, size_t count)
{
    for (size_t i = 0; i < count; i++)
        client_frame(&alice, opcode, payload, strlen(payload));
    for (enum client_event event = client_next(&alice); event != CLIENT_NOTHING;
         event = client_next(&alice))
        if (event == CLIENT_TEXT && client_has(&alice, "connection_closing"))
            return false;
    return true;
}

/* Floods for so long, or until the server closes. Returns after how long it does; -1: it does not. */
static int64_t flood(unsigned opcode, const char *payload, int64_t duration_ms)
{
    for (int64_t passed_ms = 0; passed_ms < duration_ms; passed_ms += STEP_MS) {
        if (!send_frames(opcode, payload, FLOOD_PER_STEP))
            return passed_ms;
        world_advance(&world, STEP_MS);
    }
    return -1;
}

static void expect_flood_is_closed(unsigned opcode, const char *payload)
{
    assert_in_range(flood(opcode, payload, 30000), CONNECTION_FLOOD_MAX_MS, 18000);
    assert_true(client_has(&alice, "\"reason\":\"rate_limited\""));
    assert_true(client_has(&alice, "\"reconnect_after_ms\":10000"));
    client_expect_close(&alice, 4004);
    assert_int_equal(world_metric(&world, METRIC_LIMITS_FLOODS_CLOSED), 1);
    assert_in_range(world_metric(&world, METRIC_LIMITS_THROTTLED), 5, 12);
}

static void well_behaved_control_frames_are_never_noticed(void **unused)
{
    (void)unused;
    for (int i = 0; i < 300; i++) {
        assert_true(send_frames(CLIENT_PING, "p", 1));
        assert_true(send_frames(CLIENT_PONG, "", 1));
        world_advance(&world, STEP_MS);
    }
    assert_int_equal(world_metric(&world, METRIC_LIMITS_THROTTLED), 0);
}

static void throttled_client_is_read_again_after_a_while(void **unused)
{
    (void)unused;
    send_frames(CLIENT_PING, "", CONNECTION_TOLERATED_BURST);
    assert_int_equal(world_metric(&world, METRIC_LIMITS_THROTTLED), 0);
    send_frames(CLIENT_PING, "", 1);
    assert_int_equal(world_metric(&world, METRIC_LIMITS_THROTTLED), 1);
    client_send(&alice, HEARTBEAT);
    world_advance(&world, CONNECTION_THROTTLE_MS - 1);
    client_expect_nothing(&alice);
    world_advance(&world, 1);
    client_expect(&alice, "heartbeat_ack");
}

static void flood_of_pings_is_closed(void **unused)
{
    (void)unused;
    expect_flood_is_closed(CLIENT_PING, "");
}

static void flood_of_pongs_is_closed(void **unused)
{
    (void)unused;
    expect_flood_is_closed(CLIENT_PONG, "");
}

static void flood_of_heartbeats_is_closed(void **unused)
{
    (void)unused;
    expect_flood_is_closed(CLIENT_TEXT, HEARTBEAT);
}

static void flood_of_invalid_messages_is_closed(void **unused)
{
    (void)unused;
    expect_flood_is_closed(CLIENT_TEXT, "?");
}

static void flood_of_commands_that_are_never_refused_is_closed(void **unused)
{
    (void)unused;
    expect_flood_is_closed(CLIENT_TEXT, TYPING_STOP);
}

static void client_that_stops_in_time_is_not_closed(void **unused)
{
    (void)unused;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(flood(CLIENT_PING, "", 6000), -1);
        for (int64_t passed_ms = 0; passed_ms < CALM_MS + 2000; passed_ms += 1000) {
            world_advance(&world, 1000);
            assert_true(send_frames(CLIENT_PING, "", 0));
        }
    }
    client_send(&alice, HEARTBEAT);
    client_expect(&alice, "heartbeat_ack");
}

/* A client that is a little too fast is refused, and nothing else happens to it. */
static void client_slightly_above_its_rate_is_not_throttled(void **unused)
{
    (void)unused;
    for (int i = 0; i < 600; i++) {
        assert_true(send_frames(CLIENT_TEXT, HEARTBEAT, i % 4 ? 5 : 6));
        world_advance(&world, STEP_MS);
    }
    assert_int_not_equal(world_metric(&world, METRIC_RATE_LIMITED), 0);
    assert_int_equal(world_metric(&world, METRIC_LIMITS_THROTTLED), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(well_behaved_control_frames_are_never_noticed),
        TEST(throttled_client_is_read_again_after_a_while),
        TEST(flood_of_pings_is_closed),
        TEST(flood_of_pongs_is_closed),
        TEST(flood_of_heartbeats_is_closed),
        TEST(flood_of_invalid_messages_is_closed),
        TEST(flood_of_commands_that_are_never_refused_is_closed),
        TEST(client_that_stops_in_time_is_not_closed),
        TEST(client_slightly_above_its_rate_is_not_throttled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
