/* Pending replies: their bound, their one reply, and what happens to them when the session ends. */
#include "session/pending_reply.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { DEPTH = 10 };

static struct world world;
static struct client alice;

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_SETS("gateway.backpressure.inbound.max_queue_depth=10",
                                  "gateway.backpressure.inbound.command_rate_per_second=50",
                                  "gateway.backpressure.inbound.command_rate_burst=100"));
    client_connect(&alice, &world, "alice");
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    client_end_world(&world, CLIENTS(&alice));
    return 0;
}

static void query(int id)
{
    char json[128];
    snprintf(json, sizeof(json), "{\"type\":\"query_presence\",\"id\":%d,\"user_ids\":[\"bob\"]}",
             id);
    client_send(&alice, json);
}

static void expect_error(const char *code, int id)
{
    client_expect_with(&alice, "error", "\"id\":%d,\"code\":\"%s\"", id, code);
}

static void expect_snapshot(int id)
{
    client_expect_with(&alice, "presence_snapshot", "\"id\":%d,", id);
}

static void commands_beyond_the_bound_are_refused_and_the_others_answered(void **unused)
{
    (void)unused;
    world.ledger.holding = true;
    for (int id = 0; id < DEPTH; id++)
        query(id);
    client_expect_nothing(&alice);
    query(DEPTH);
    expect_error("SERVER_BUSY", DEPTH);
    assert_int_equal(world_metric(&world, METRIC_SERVER_BUSY), 1);
    client_send(&alice, "{\"type\":\"heartbeat\"}"); /* needs no pending reply */
    client_expect(&alice, "heartbeat_ack");
    fake_ledger_release(&world.ledger);
    expect_snapshot(0);
    query(DEPTH + 1);
    client_expect_nothing(&alice);
    fake_ledger_release_newest(&world.ledger);
    expect_snapshot(DEPTH + 1); /* replies come when they are ready */
    fake_ledger_release_all(&world.ledger);
    for (int id = 1; id < DEPTH; id++)
        expect_snapshot(id);
    assert_int_equal(world_session(&world, "alice")->pending_reply_count, 0);
}

static void failing_ledger_is_reported(void **unused)
{
    (void)unused;
    world.ledger.failing = LEDGER_UNAVAILABLE;
    query(1);
    expect_error("SERVICE_UNAVAILABLE", 1);
    world.ledger.failing = LEDGER_BUSY;
    query(2);
    expect_error("SERVICE_UNAVAILABLE", 2);
    world.ledger.failing = LEDGER_OK;
    query(3);
    expect_snapshot(3);
}

static void silent_ledger_is_reported_within_its_time_limit(void **unused)
{
    (void)unused;
    world.ledger.holding = true;
    query(1);
    world_advance(&world, 4999);
    client_expect_nothing(&alice);
    world_advance(&world, 1001);
    expect_error("SERVICE_UNAVAILABLE", 1);
    fake_ledger_release_all(&world.ledger); /* too late: nothing waits for it */
    client_expect_nothing(&alice);
    assert_int_equal(world_session(&world, "alice")->pending_reply_count, 0);
}

static void reply_to_a_client_that_has_gone_is_dropped(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX], json[WORLD_TOKEN_BYTES_MAX + 64];
    world.ledger.holding = true;
    query(1);
    client_send(&alice,
                "{\"type\":\"subscribe_presence\",\"id\":2,\"user_ids\":[\"bob\",\"eve\"]}");
    world_token(&world, "alice", "", 60000, token);
    snprintf(json, sizeof(json), "{\"type\":\"refresh_token\",\"token\":\"%s\"}", token);
    client_frame(&alice, CLIENT_TEXT, json, strlen(json));
    client_hang_up(&alice);
    assert_int_equal(world_metric(&world, METRIC_SUBSCRIPTIONS), 0);
    fake_ledger_release_all(&world.ledger);
    world_settle(&world);
    assert_int_equal(world.sessions->ledger->outstanding, 0);
}

static void reply_to_an_ending_connection_is_dropped(void **unused)
{
    (void)unused;
    world.ledger.holding = true;
    query(1);
    connection_end(&world_session(&world, "alice")->connection, CLOSING_ADMIN, -1);
    fake_ledger_release_all(&world.ledger);
    client_expect_closing(&alice, "admin", 4005);
}

/* ---- rates ---- */

static void commands_beyond_the_burst_are_refused_with_a_retry_time(void **unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        client_send(&alice, "{\"type\":\"heartbeat\"}");
        client_expect(&alice, "heartbeat_ack");
    }
    client_send(&alice, "{\"type\":\"heartbeat\",\"id\":101}");
    expect_error("RATE_LIMITED", 101);
    assert_true(client_has(&alice, "\"retry_after_seconds\":0.02"));
    assert_int_equal(world_metric(&world, METRIC_RATE_LIMITED), 1);
    world_advance(&world, 19);
    client_send(&alice, "{\"type\":\"heartbeat\",\"id\":102}");
    expect_error("RATE_LIMITED", 102);
    world_advance(&world, 1);
    client_send(&alice, "{\"type\":\"heartbeat\",\"id\":103}");
    client_expect(&alice, "heartbeat_ack");
}

static void invalid_messages_count_for_the_rate_too(void **unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        client_send(&alice, "nonsense");
        client_expect(&alice, "error");
        assert_true(client_has(&alice, "INVALID_MESSAGE"));
    }
    client_send(&alice, "nonsense");
    client_expect(&alice, "error");
    assert_true(client_has(&alice, "RATE_LIMITED"));
    assert_int_equal(world_metric(&world, METRIC_INVALID_MESSAGES), 100);
}

static void unknown_command_is_refused_and_the_connection_stays(void **unused)
{
    (void)unused;
    client_frame(&alice, CLIENT_BINARY, "\x01", 1);
    client_expect(&alice, "error");
    assert_true(client_has(&alice, "INVALID_MESSAGE"));
    client_send(&alice, "{\"type\":\"no_such_thing\",\"id\":\"x\"}");
    client_expect(&alice, "error");
    assert_true(client_has(&alice, "\"id\":\"x\",\"code\":\"INVALID_MESSAGE\""));
    client_send(&alice, "{\"type\":\"presence_changed\"}"); /* only the server sends this */
    client_expect(&alice, "error");
    client_send(&alice, "{\"type\":\"heartbeat\"}");
    client_expect(&alice, "heartbeat_ack");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(commands_beyond_the_bound_are_refused_and_the_others_answered),
        TEST(failing_ledger_is_reported),
        TEST(silent_ledger_is_reported_within_its_time_limit),
        TEST(reply_to_a_client_that_has_gone_is_dropped),
        TEST(reply_to_an_ending_connection_is_dropped),
        TEST(commands_beyond_the_burst_are_refused_with_a_retry_time),
        TEST(invalid_messages_count_for_the_rate_too),
        TEST(unknown_command_is_refused_and_the_connection_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
