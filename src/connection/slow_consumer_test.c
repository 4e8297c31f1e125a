/* What a slow consumer gets: warning, grace period, recovery, the certain end. */
#include "connection/connection.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* 80 % of 20 messages are 16, 95 % are 19. */
enum { MESSAGES_MAX = 20, WARNING = 16, CRITICAL = 19, GRACE_MS = 5000, BODY_BYTES = 4000 };

static struct world world;
static struct client alice;
static unsigned pushed;

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_SETS("gateway.backpressure.outbound.max_buffer_messages=20",
                                  "gateway.backpressure.outbound.max_buffer_bytes=200000"));
    client_connect_slow(&alice, &world, "alice");
    pushed = 0;
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    client_end_world(&world, CLIENTS(&alice));
    return 0;
}

static const struct connection *connection(void)
{
    return &world_session(&world, "alice")->connection;
}

/* Queues a numbered message of about BODY_BYTES, as much as the socket takes at a time. */
static void push_one(void)
{
    char data[BODY_BYTES + 1];
    int len = snprintf(data, sizeof(data), "\"%06u", pushed++);
    memset(data + len, '.', sizeof(data) - (size_t)len);
    data[sizeof(data) - 2] = '"';
    data[sizeof(data) - 1] = '\0';
    world_push(&world, "alice", data, 0);
    world_settle(&world);
}

static char *make_number(size_t digits)
{
    char *text = malloc(digits + 1);
    assert_non_null(text);
    memset(text, '7', digits);
    text[digits] = '\0';
    return text;
}

/* Fills the socket, then the queue up to `count`; nobody reads meanwhile. */
static void fill_to(unsigned count)
{
    while (connection()->outbound.count < count)
        push_one();
    assert_int_equal(connection()->outbound.count, count);
}

/* Reads a little at a time until no more than `count` wait. */
static void read_down_to(unsigned count)
{
    while (connection()->outbound.count > count) {
        client_read(&alice, 512);
        world_settle(&world);
    }
}

/* Takes deliveries in the order of their numbers until something else comes; returns the next number. */
static unsigned take_deliveries(unsigned from)
{
    char piece[32];
    while (client_next(&alice) == CLIENT_TEXT && client_has(&alice, "{\"type\":\"delivery\"")) {
        snprintf(piece, sizeof(piece), "\"%06u.", from++);
        if (!client_has(&alice, piece))
            fail_msg("expected %s, got %.60s", piece, alice.text);
    }
    return from;
}

static void expect_slow_consumer(void)
{
    assert_true(client_has(&alice, "{\"type\":\"error\",\"code\":\"SLOW_CONSUMER\""));
    assert_true(client_has(&alice, "\"grace_period_seconds\":5"));
}

static void queue_below_the_warning_level_has_no_effect(void **unused)
{
    (void)unused;
    fill_to(WARNING - 1);
    assert_false(connection()->warned);
    assert_int_equal(connection()->grace_until_ms, 0);
}

static void queue_at_the_warning_level_does_not_warn_the_client(void **unused)
{
    (void)unused;
    fill_to(WARNING);
    assert_true(connection()->warned);
    fill_to(CRITICAL - 1);
    assert_int_equal(connection()->grace_until_ms, 0);
    assert_int_equal(world_metric(&world, METRIC_SLOW_CONSUMER_WARNINGS), 0);
    read_down_to(WARNING - 1);
    assert_false(connection()->warned);
}

static void queue_at_the_critical_level_warns_the_client_and_starts_the_grace_period(void **unused)
{
    (void)unused;
    fill_to(CRITICAL - 1);
    push_one();
    assert_int_equal(connection()->outbound.count, CRITICAL + 1); /* with the error */
    assert_int_equal(connection()->grace_until_ms, world_now(&world) + GRACE_MS);
    assert_int_equal(world_metric(&world, METRIC_SLOW_CONSUMER_WARNINGS), 1);
    assert_int_equal(take_deliveries(0), pushed);
    expect_slow_consumer();
    client_expect_nothing(&alice);
}

static void queue_below_the_warning_level_again_has_recovered(void **unused)
{
    (void)unused;
    fill_to(CRITICAL - 1);
    push_one();
    world_advance(&world, GRACE_MS - 1);
    read_down_to(WARNING);
    assert_int_not_equal(connection()->grace_until_ms, 0);
    read_down_to(WARNING - 1);
    assert_int_equal(connection()->grace_until_ms, 0);
    world_advance(&world, 1);
    assert_true(connection_is_open(connection()));
    assert_int_equal(world_metric(&world, METRIC_SLOW_CONSUMER_DISCONNECTS), 0);
}

static void second_slow_phase_gets_a_new_warning_and_a_new_grace_period(void **unused)
{
    (void)unused;
    fill_to(CRITICAL - 1);
    push_one();
    world_advance(&world, GRACE_MS - 1);
    read_down_to(WARNING - 1);
    fill_to(CRITICAL - 1);
    push_one();
    assert_int_equal(connection()->grace_until_ms, world_now(&world) + GRACE_MS);
    assert_int_equal(world_metric(&world, METRIC_SLOW_CONSUMER_WARNINGS), 2);
}

/* Contacts' changes come without a subscription, so only this makes up for lost ones. */
static void recovered_client_receives_the_shed_states_of_contacts(void **unused)
{
    (void)unused;
    struct client bob;
    fake_ledger_befriend(&world.ledger, "alice", "bob");
    client_connect(&bob, &world, "bob");
    client_expect(&alice, "presence_changed");
    fill_to(WARNING);
    world_push(&world, "alice", "\"a state\"", 1);
    assert_int_equal(connection()->outbound.count, WARNING); /* the change was shed */
    assert_int_equal(take_deliveries(0), pushed);
    assert_true(client_has(&alice, "{\"type\":\"presence_snapshot\""));
    assert_true(client_has(&alice, "\"user_id\":\"bob\",\"status\":\"online\""));
    client_expect_nothing(&alice);
    client_hang_up(&bob);
}

static void client_that_has_not_recovered_after_the_grace_period_is_closed(void **unused)
{
    (void)unused;
    fill_to(CRITICAL - 1);
    push_one();
    read_down_to(WARNING); /* falling below critical is not enough */
    world_advance(&world, GRACE_MS - 1);
    assert_non_null(world_session(&world, "alice"));
    world_advance(&world, 1);
    assert_null(world_session(&world, "alice"));
    assert_int_equal(world_metric(&world, METRIC_SLOW_CONSUMER_DISCONNECTS), 1);
    assert_int_equal(world_metric(&world, METRIC_CLIENT_RESYNC_FORCED), 1);
    assert_int_equal(take_deliveries(0), pushed);
    expect_slow_consumer();
    client_expect_closing(&alice, "slow_consumer", 4003);
}

static void client_that_never_reads_is_cut_off_when_the_close_times_out(void **unused)
{
    (void)unused;
    fill_to(CRITICAL - 1);
    push_one();
    world_advance(&world, GRACE_MS);
    assert_null(world_session(&world, "alice"));
    assert_int_equal(world.sessions->connections.count, 1);
    world_advance(&world, world.config.gateway.close_timeout_ms);
    assert_int_equal(world.sessions->connections.count, 0);
}

static void full_queue_takes_nothing_more_and_the_connection_ends(void **unused)
{
    (void)unused;
    fill_to(CRITICAL - 1);
    push_one(); /* the error takes the last place */
    unsigned kept = pushed;
    for (int i = 0; i < 2 * MESSAGES_MAX; i++)
        push_one();
    assert_true(connection()->overflowed);
    assert_int_equal(connection()->outbound.count, MESSAGES_MAX);
    int64_t grace_until_ms = connection()->grace_until_ms;
    assert_int_equal(take_deliveries(0), kept);
    expect_slow_consumer();
    push_one(); /* refused although there is space: messages before it were refused */
    client_expect_nothing(&alice);
    assert_int_equal(connection()->outbound.count, 0);
    assert_int_equal(connection()->grace_until_ms, grace_until_ms);
    world_advance(&world, GRACE_MS - 1);
    client_expect_nothing(&alice);
    world_advance(&world, 1);
    client_expect_closing(&alice, "slow_consumer", 4003);
}

static void queue_is_bounded_in_bytes_too(void **unused)
{
    (void)unused;
    char *large = make_number(80000);
    fill_to(2); /* the bound is 200,000 bytes */
    world_push(&world, "alice", large, 0);
    assert_false(connection()->warned);
    world_push(&world, "alice", large, 0);
    assert_true(connection()->warned);
    assert_int_equal(connection()->grace_until_ms, 0);
    for (int i = 0; i < 15 && connection()->grace_until_ms == 0; i++)
        push_one();
    assert_in_range(outbound_bytes(&connection()->outbound), 190000, 200000);
    assert_true(connection()->outbound.count < WARNING);
    assert_int_equal(connection()->grace_until_ms, world_now(&world) + GRACE_MS);
    free(large);
}

/* The queue is at two per cent of the bound, yet the message does not fit, so its loss is signalled. */
static void message_too_large_for_the_remaining_space_ends_the_connection(void **unused)
{
    (void)unused;
    char *large = make_number(200000);
    fill_to(2);
    world_push(&world, "alice", large, 0);
    free(large);
    assert_int_equal(connection()->grace_until_ms, world_now(&world) + GRACE_MS);
    take_deliveries(0);
    expect_slow_consumer();
    world_advance(&world, GRACE_MS);
    client_expect_closing(&alice, "slow_consumer", 4003);
}

static void newer_state_replaces_the_older_and_the_level_stays(void **unused)
{
    (void)unused;
    fill_to(WARNING - 2);
    for (int i = 0; i < 100; i++) {
        char data[16];
        snprintf(data, sizeof(data), "%d", i);
        world_push(&world, "alice", data, 7);
    }
    assert_int_equal(connection()->outbound.count, WARNING - 1);
    assert_int_equal(world_metric(&world, METRIC_MESSAGES_SUPERSEDED), 99);
    world_push(&world, "alice", "100", 9);
    assert_int_equal(connection()->outbound.count, WARNING);
    for (unsigned i = 0; i < pushed; i++)
        client_expect(&alice, "delivery");
    client_expect(&alice, "delivery");
    assert_true(client_has(&alice, "\"data\":99}"));
    client_expect(&alice, "delivery");
    assert_true(client_has(&alice, "\"data\":100}"));
    client_expect_nothing(&alice);
}

static void slow_consumer_does_not_delay_others(void **unused)
{
    (void)unused;
    static struct client bob;
    client_connect(&bob, &world, "bob");
    fill_to(CRITICAL - 1);
    push_one();
    client_send(&bob, "{\"type\":\"heartbeat\"}");
    client_expect(&bob, "heartbeat_ack");
    client_hang_up(&bob);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(queue_below_the_warning_level_has_no_effect),
        TEST(queue_at_the_warning_level_does_not_warn_the_client),
        TEST(queue_at_the_critical_level_warns_the_client_and_starts_the_grace_period),
        TEST(queue_below_the_warning_level_again_has_recovered),
        TEST(second_slow_phase_gets_a_new_warning_and_a_new_grace_period),
        TEST(recovered_client_receives_the_shed_states_of_contacts),
        TEST(client_that_has_not_recovered_after_the_grace_period_is_closed),
        TEST(client_that_never_reads_is_cut_off_when_the_close_times_out),
        TEST(full_queue_takes_nothing_more_and_the_connection_ends),
        TEST(queue_is_bounded_in_bytes_too),
        TEST(message_too_large_for_the_remaining_space_ends_the_connection),
        TEST(newer_state_replaces_the_older_and_the_level_stays),
        TEST(slow_consumer_does_not_delay_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
