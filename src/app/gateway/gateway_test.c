/* Tests the drain, memory pressure, orders from other threads, and the gauges of the housekeeping. */
#include "app/gateway/gateway.h"

#include "app/gateway/gateway_internal.h"
#include "app/gateway/memory_pressure.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CLIENTS = 10, DRAIN_MS = 10000, CLOSINGS_MS = DRAIN_MS * 4 / 5, CLOSE_TIMEOUT_MS = 1000 };

static struct world world;
static struct client clients[CLIENTS];

static void connect_all(const char *const *sets)
{
    char name[16];
    world_open(&world, sets);
    for (int i = 0; i < CLIENTS; i++) {
        snprintf(name, sizeof(name), "user%d", i);
        client_connect(&clients[i], &world, name);
    }
}

static int64_t reconnect_after_ms(const struct client *client)
{
    long ms = -1;
    const char *at = strstr(client->text, "\"reconnect_after_ms\":");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"reconnect_after_ms\":%ld", &ms), 1);
    return ms;
}

/* The n-th of N is closed at n/N of CLOSINGS_MS; all are warned at once, and told to reconnect no earlier. */
static void drain_warns_at_once_and_spreads_the_closings(void **unused)
{
    (void)unused;
    int64_t after_ms[CLIENTS], gone_ms[CLIENTS] = {0};
    connect_all(WORLD_SETS("gateway.shutdown.drain_timeout_seconds=10"));
    int64_t start_ms = world_now(&world);
    world_drain(&world);
    for (int i = 0; i < CLIENTS; i++) {
        client_expect(&clients[i], "connection_closing");
        assert_true(client_has(&clients[i], "\"reason\":\"draining\""));
        after_ms[i] = reconnect_after_ms(&clients[i]);
    }
    for (int64_t ms = 0; ms <= CLOSINGS_MS; ms += 100) {
        size_t expected = CLIENTS - (size_t)(ms * CLIENTS / CLOSINGS_MS + 1);
        for (int i = 0; i < CLIENTS; i++) {
            if (gone_ms[i] || client_next(&clients[i]) != CLIENT_CLOSE)
                continue;
            assert_int_equal(clients[i].close_code, 1001);
            gone_ms[i] = world_now(&world) - start_ms + 1;
            assert_true(after_ms[i] + 1 >= gone_ms[i]);
            client_hang_up(&clients[i]);
        }
        if (ms < CLOSINGS_MS)
            assert_int_equal(world.sessions->session_count, expected);
        world_advance(&world, 100);
    }
    world_advance(&world, 2000); /* the last-seen times are stored */
    assert_true(world_drained(&world));
    world_close(&world);
}

static void drain_closes_clients_that_do_not_answer(void **unused)
{
    (void)unused;
    connect_all(WORLD_SETS("gateway.shutdown.drain_timeout_seconds=0"));
    world_drain(&world);
    world_advance(&world, CLOSE_TIMEOUT_MS - 1);
    assert_int_equal(world.sessions->connections.count, CLIENTS);
    world_advance(&world, 1);
    assert_int_equal(world.sessions->connections.count, 0);
    for (int i = 0; i < CLIENTS; i++)
        client_hang_up(&clients[i]);
    world_close(&world);
}

/* The first token expires before the connection is due to be closed. */
static void refreshed_token_does_not_cancel_the_drain(void **unused)
{
    (void)unused;
    static struct client alice;
    char token[WORLD_TOKEN_BYTES_MAX], json[WORLD_TOKEN_BYTES_MAX + 64];
    connect_all(WORLD_SETS("gateway.shutdown.drain_timeout_seconds=10"));
    world_token(&world, "alice", "", 200, token);
    client_dial(&alice, &world, 0);
    client_upgrade(&alice, token);
    world_token(&world, "alice", "", 3600000, token);
    world_drain(&world);
    snprintf(json, sizeof(json), "{\"type\":\"refresh_token\",\"token\":\"%s\"}", token);
    client_send(&alice, json);
    for (int i = 0; i < CLIENTS; i++)
        client_hang_up(&clients[i]);
    world_advance(&world, CLOSINGS_MS);
    assert_null(world_session(&world, "alice"));
    client_hang_up(&alice);
    world_close(&world);
}

static void second_drain_changes_nothing(void **unused)
{
    (void)unused;
    connect_all(WORLD_SETS("gateway.shutdown.drain_timeout_seconds=10"));
    world_drain(&world);
    world_drain(&world);
    client_expect(&clients[0], "connection_closing");
    enum client_event event = client_next(&clients[0]);
    assert_true(event == CLIENT_NOTHING || event == CLIENT_CLOSE);
    for (int i = 0; i < CLIENTS; i++)
        client_hang_up(&clients[i]);
    world_close(&world);
}

static size_t ledger_operations(void)
{
    size_t count = 0;
    for (size_t i = 0; i < LEDGER_OPERATION_COUNT; i++)
        count += world.ledger.submitted[i];
    return count;
}

/* When the first batch of last-seen times is stored, the next one would be sent, to a ledger that is closed by then. */
static void work_in_flight_is_completed_without_the_ledger(void **unused)
{
    (void)unused;
    connect_all(WORLD_SETS("gateway.shutdown.drain_timeout_seconds=0"));
    struct last_seen *last_seen = &world.gateway->last_seen;
    world.ledger.holding = true;
    last_seen_note(last_seen, SLICE("leaver"), 1, 1);
    last_seen_flush(last_seen);
    last_seen_note(last_seen, SLICE("leaver"), 2, 2);
    client_send(&clients[0], "{\"type\":\"query_presence\",\"user_ids\":[\"user1\"]}");
    world_settle(&world);
    for (int i = 0; i < CLIENTS; i++)
        client_hang_up(&clients[i]);
    world_drain(&world);
    world_advance(&world, CLOSE_TIMEOUT_MS);
    assert_true(world_drained(&world));
    gateway_stop(world.gateway);
    assert_true(ledger_client_is_owed(&world.gateway->ledger));
    size_t operations = ledger_operations();
    fake_ledger_release_all(&world.ledger);
    while (gateway_finish(world.gateway))
        continue;
    assert_int_equal(ledger_operations(), operations);
    assert_false(ledger_client_is_owed(&world.gateway->ledger));
    world_close(&world);
}

/* ---- memory ---- */

static struct memory_pressure pressure; /* of one worker */

static void memory_pressure_closes_some_and_refuses_new_connections(void **unused)
{
    (void)unused;
    static struct client late;
    int shed = 0;
    connect_all(WORLD_DEFAULTS);
    world.config.gateway.memory_limit_bytes = 1;
    memory_pressure_check(&pressure, world.rest);
    assert_int_equal(world.sessions->session_count, CLIENTS - 1); /* one in twenty, at least one */
    client_dial(&late, &world, 0);
    assert_int_equal(client_response(&late), 503);
    client_hang_up(&late);
    for (int i = 0; i < CLIENTS; i++) {
        if (client_next(&clients[i]) == CLIENT_TEXT) {
            shed++;
            assert_true(client_has(&clients[i], "\"reason\":\"memory_pressure\""));
            assert_in_range(reconnect_after_ms(&clients[i]), 0, MEMORY_RECONNECT_MS - 1);
            client_expect_close(&clients[i], 4004);
        }
    }
    assert_int_equal(shed, 1);
    assert_int_equal(world_metric(&world, METRIC_MEMORY_SHED), 1);
    world.config.gateway.memory_limit_bytes = SIZE_MAX / 2;
    memory_pressure_check(&pressure, world.rest);
    client_connect(&late, &world, "late");
    client_hang_up(&late);
    for (int i = 0; i < CLIENTS; i++)
        client_hang_up(&clients[i]);
    world_close(&world);
}

static void connections_with_queued_bytes_are_shed_first(void **unused)
{
    (void)unused;
    static struct client slow;
    connect_all(WORLD_DEFAULTS);
    client_connect_slow(&slow, &world, "slow");
    for (int i = 0; i < 100; i++) {
        world_push(&world, "slow", "\"................................................\"", 0);
        world_settle(&world);
    }
    assert_true(outbound_bytes(&world_session(&world, "slow")->connection.outbound) > 0);
    world.config.gateway.memory_limit_bytes = 1;
    memory_pressure_check(&pressure, world.rest);
    assert_null(world_session(&world, "slow"));
    assert_int_equal(world.sessions->session_count, CLIENTS);
    world.config.gateway.memory_limit_bytes = 0;
    client_hang_up(&slow);
    for (int i = 0; i < CLIENTS; i++)
        client_hang_up(&clients[i]);
    world_close(&world);
}

static void all_devices_of_a_user_can_be_shed(void **unused)
{
    (void)unused;
    static struct client devices[30];
    world_open(&world, WORLD_DEFAULTS);
    for (int i = 0; i < 30; i++)
        client_connect(&devices[i], &world, "alice");
    world.config.gateway.memory_limit_bytes = 1;
    for (int second = 0; world.sessions->session_count && second < 60; second++)
        memory_pressure_check(&pressure, world.rest);
    assert_int_equal(world.sessions->session_count, 0);
    world.config.gateway.memory_limit_bytes = 0;
    for (int i = 0; i < 30; i++)
        client_hang_up(&devices[i]);
    world_close(&world);
}

/* ---- orders ---- */

static void on_mail_ignored(struct mail *mail, void *owner)
{
    (void)mail, (void)owner;
}

/* Opens a world in which the mailbox of the gateway is full. */
static void open_world_with_full_mailbox(void)
{
    static struct mail mails[MAILBOX_MAIL_MAX];
    world_open(&world, WORLD_DEFAULTS);
    world_settle(&world);
    for (size_t i = 0; i < MAILBOX_MAIL_MAX; i++) {
        mails[i].on_open = on_mail_ignored;
        assert_true(mailbox_post(&world.gateway->mailbox, &mails[i]));
    }
}

/* The sanitizer reports a leak. */
static void keys_that_cannot_be_queued_are_released(void **unused)
{
    (void)unused;
    open_world_with_full_mailbox();
    struct key_set *keys = key_set_share(world.gateway->verifier.keys);
    assert_false(gateway_use(world.gateway, keys, NULL));
    world_settle(&world);
    world_close(&world);
}

static void drain_starts_although_the_mailbox_is_full(void **unused)
{
    (void)unused;
    open_world_with_full_mailbox();
    gateway_drain(world.gateway);
    world_settle(&world);
    assert_false(world.sessions->draining);
    world_advance(&world, 1000);
    assert_true(world.sessions->draining);
    world_close(&world);
}

/* ---- gauges ---- */

static void silent_connections_are_shown_as_a_share(void **unused)
{
    (void)unused;
    int64_t unhealthy_ms, housekeeping_ms = 1000;
    world_open(&world, WORLD_DEFAULTS);
    unhealthy_ms = world.config.gateway.timeouts.heartbeat_timeout_ms;
    client_connect(&clients[0], &world, "silent");
    client_connect(&clients[1], &world, "lively");
    world_advance(&world, unhealthy_ms - 1);
    client_set_away(&clients[1], false);
    assert_int_equal(world_metric(&world, METRIC_PRESENCE_STALE_RATIO), 0);
    world_advance(&world, housekeeping_ms + 1);
    assert_int_equal(world_metric(&world, METRIC_PRESENCE_STALE_RATIO), 500);
    client_next(&clients[0]); /* the ping */
    client_set_away(&clients[0], false);
    world_advance(&world, housekeeping_ms);
    assert_int_equal(world_metric(&world, METRIC_PRESENCE_STALE_RATIO), 0);
    world_advance(&world, unhealthy_ms);
    client_hang_up(&clients[0]);
    client_hang_up(&clients[1]);
    world_advance(&world, housekeeping_ms);
    assert_int_equal(world_metric(&world, METRIC_PRESENCE_STALE_RATIO), 0);
    assert_int_equal(world.sessions->connections.unhealthy_count, 0);
    world_close(&world);
}

static void single_gateway_counts_itself_as_healthy(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    world_settle(&world);
    assert_int_equal(world_metric(&world, METRIC_INSTANCES_HEALTHY), 1);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drain_warns_at_once_and_spreads_the_closings),
        cmocka_unit_test(drain_closes_clients_that_do_not_answer),
        cmocka_unit_test(refreshed_token_does_not_cancel_the_drain),
        cmocka_unit_test(second_drain_changes_nothing),
        cmocka_unit_test(work_in_flight_is_completed_without_the_ledger),
        cmocka_unit_test(memory_pressure_closes_some_and_refuses_new_connections),
        cmocka_unit_test(connections_with_queued_bytes_are_shed_first),
        cmocka_unit_test(all_devices_of_a_user_can_be_shed),
        cmocka_unit_test(keys_that_cannot_be_queued_are_released),
        cmocka_unit_test(drain_starts_although_the_mailbox_is_full),
        cmocka_unit_test(silent_connections_are_shown_as_a_share),
        cmocka_unit_test(single_gateway_counts_itself_as_healthy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
