/* What a session does as time passes: lease, away, lifetime and token. */
#include "session/session.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { BEAT_MS = 5000, IDLE_MS = 300000, SECOND_MS = 1000 };

static struct world world;
static struct client alice, bob;

/* Sends a heartbeat every five seconds for `ms`, each answered, the last at the end. */
static void beat_for(struct client *client, int64_t ms)
{
    for (int64_t left_ms = ms; left_ms > 0; left_ms -= BEAT_MS) {
        world_advance(&world, left_ms < BEAT_MS ? left_ms : BEAT_MS);
        client_send(client, "{\"type\":\"heartbeat\"}");
        client_expect(client, "heartbeat_ack");
    }
}

/* ---- the lease ---- */

static void live_connection_renews_its_lease_at_three_quarters_of_the_window(void **unused)
{
    (void)unused;
    int64_t heartbeat_ms;
    world_open(&world, WORLD_DEFAULTS);
    client_connect(&alice, &world, "alice");
    beat_for(&alice, 60 * SECOND_MS);
    assert_int_equal(world_metric(&world, METRIC_LEASES_RENEWED), 5);
    assert_int_equal(world_leases(&world, "alice", &heartbeat_ms), 1);
    assert_int_equal(heartbeat_ms,
                     world.loop->clock.wall_ms - BEAT_MS); /* heard before the renewal */
    client_hang_up(&alice);
    world_close(&world);
}

static void unhealthy_connection_renews_once_and_then_nothing(void **unused)
{
    (void)unused;
    int64_t heartbeat_ms;
    world_open(&world, WORLD_DEFAULTS);
    client_connect(&alice, &world, "alice");
    world_advance(&world, 2 * SECOND_MS);
    client_send(&alice, "{\"type\":\"heartbeat\"}");
    client_expect(&alice, "heartbeat_ack");
    int64_t heard_ms = world.loop->clock.wall_ms;
    world_advance(&world, 15 * SECOND_MS - 1);
    assert_int_equal(world_metric(&world, METRIC_LEASES_RENEWED), 1); /* when it fell silent */
    assert_int_equal(world_leases(&world, "alice", &heartbeat_ms), 1);
    assert_int_equal(heartbeat_ms, heard_ms);
    client_hang_up(&alice);
    world_close(&world);
}

/* Unhealthy after 6 s of silence, and heard again just before the window of 18 s is over: wherever in the
 * renewal period that falls, the lease does not expire. */
static void lease_of_a_client_that_comes_back_does_not_expire(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_SETS("gateway.timeouts.heartbeat_timeout_seconds=6",
                                  "presence.expiry_window_seconds=18"));
    for (int64_t offset_ms = 0; offset_ms < BEAT_MS; offset_ms += 250) {
        client_connect(&alice, &world, "alice");
        int64_t version = world_presence(&world, "alice").version;
        world_advance(&world, offset_ms);
        client_send(&alice, "{\"type\":\"heartbeat\"}");
        client_expect(&alice, "heartbeat_ack");
        world_advance(&world, 18 * SECOND_MS - 1);
        client_send(&alice, "{\"type\":\"heartbeat\"}");
        world_advance(&world, 5999);
        assert_int_equal(world_presence(&world, "alice").version, version);
        client_hang_up(&alice);
    }
    world_close(&world);
}

static void ignore(void *arg, enum state_status status, const struct state_transition *transition)
{
    (void)arg;
    (void)status;
    (void)transition;
}

static void lease_that_the_store_lost_is_opened_again(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    client_connect(&bob, &world, "bob");
    client_connect(&alice, &world, "alice");
    client_send(&bob, "{\"type\":\"subscribe_presence\",\"user_ids\":[\"alice\"]}");
    client_expect(&bob, "presence_snapshot");
    state_close(world.presence->store, SLICE("alice"), &world_session(&world, "alice")->conn_id,
                ignore, NULL);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_OFFLINE);
    beat_for(&alice, BEAT_MS);
    beat_for(&bob, BEAT_MS - 1); /* otherwise it would be pinged */
    world_advance(&world, 2 * SECOND_MS);
    assert_int_equal(world_leases(&world, "alice", NULL), 1);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_ONLINE);
    client_expect_nothing(&bob); /* no change was published */
    client_hang_up(&alice);
    client_hang_up(&bob);
    world_close(&world);
}

/* ---- away ---- */

static void inactive_user_is_away_to_the_millisecond(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    client_connect(&alice, &world, "alice");
    beat_for(&alice, IDLE_MS - 1);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_ONLINE);
    world_advance(&world, 1);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_AWAY);
    client_send(&alice, "{\"type\":\"heartbeat\",\"active\":true}");
    client_expect(&alice, "heartbeat_ack");
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_ONLINE);
    beat_for(&alice, IDLE_MS - 1);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_ONLINE);
    world_advance(&world, 1);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_AWAY);
    client_hang_up(&alice);
    world_close(&world);
}

static void activity_is_what_the_client_reports(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    client_connect(&alice, &world, "alice");
    client_send(&alice, "{\"type\":\"heartbeat\",\"active\":false}");
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_AWAY);
    client_send(&alice, "{\"type\":\"heartbeat\"}"); /* does not mention activity */
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_AWAY);
    client_send(&alice, "{\"type\":\"heartbeat\",\"active\":true}");
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_ONLINE);
    client_hang_up(&alice);
    world_close(&world);
}

static void user_is_away_when_all_devices_are_idle(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    client_connect(&alice, &world, "alice");
    client_connect(&bob, &world, "alice");
    client_send(&alice, "{\"type\":\"heartbeat\",\"active\":false}");
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_ONLINE);
    client_send(&bob, "{\"type\":\"heartbeat\",\"active\":false}");
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_AWAY);
    client_send(&alice, "{\"type\":\"heartbeat\",\"active\":true}");
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_ONLINE);
    client_hang_up(&alice);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_AWAY);
    client_hang_up(&bob);
    assert_int_equal(world_presence(&world, "alice").status, PRESENCE_OFFLINE);
    world_close(&world);
}

/* ---- lifetime ---- */

static int64_t lifetime_of(struct client *client)
{
    int64_t start_ms = world_now(&world);
    client_connect(client, &world, "alice");
    while (world_session(&world, "alice")) {
        world_advance(&world, 100);
        client_frame(client, CLIENT_PONG, "", 0);
    }
    int64_t lived_ms = world_now(&world) - start_ms;
    client_expect_closing(client, "max_lifetime", 1001);
    return lived_ms;
}

static void lifetime_is_the_maximum_minus_at_most_the_jitter(void **unused)
{
    (void)unused;
    int64_t shortest_ms = INT64_MAX, longest_ms = 0;
    world_open(&world, WORLD_SETS("gateway.max_lifetime_seconds=60",
                                  "gateway.max_lifetime_jitter_percent=50"));
    for (int i = 0; i < 12; i++) {
        int64_t lived_ms = lifetime_of(&alice);
        assert_in_range(lived_ms, 30000, 60099);
        shortest_ms = lived_ms < shortest_ms ? lived_ms : shortest_ms;
        longest_ms = lived_ms > longest_ms ? lived_ms : longest_ms;
    }
    assert_true(longest_ms - shortest_ms > 5000);
    assert_int_equal(world_metric(&world, METRIC_CLIENT_RESYNC_FORCED), 12);
    world_close(&world);
}

static void lifetime_without_jitter_is_exact(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_SETS("gateway.max_lifetime_seconds=8",
                                  "gateway.max_lifetime_jitter_percent=0"));
    client_connect(&alice, &world, "alice");
    world_advance(&world, 7999);
    client_expect_nothing(&alice);
    world_advance(&world, 1);
    client_expect_closing(&alice, "max_lifetime", 1001);
    world_close(&world);
}

/* ---- the token ---- */

static void refresh(struct client *client, const char *token)
{
    char json[WORLD_TOKEN_BYTES_MAX + 64];
    snprintf(json, sizeof(json), "{\"type\":\"refresh_token\",\"id\":7,\"token\":\"%s\"}", token);
    client_send(client, json);
}

static void connect_for(struct client *client, const char *user, int64_t valid_ms)
{
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, user, "", valid_ms, token);
    client_dial(client, &world, 0);
    client_upgrade(client, token);
    assert_int_equal(client_response(client), 101);
    client_expect(client, "connection_established");
}

static void expired_token_ends_the_connection_to_the_millisecond(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    connect_for(&alice, "alice", 8000);
    world_advance(&world, 7999);
    client_expect_nothing(&alice);
    world_advance(&world, 1);
    client_expect_closing(&alice, "token_expired", 4001);
    world_close(&world);
}

static void refreshed_token_replaces_the_old_expiry(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    world_open(&world, WORLD_DEFAULTS);
    connect_for(&alice, "alice", 8000);
    world_advance(&world, 4000);
    world_token(&world, "alice", "", 9000, token);
    refresh(&alice, token);
    client_expect(&alice, "ok");
    assert_true(client_has(&alice, "\"id\":7"));
    world_advance(&world, 8999);
    client_expect_nothing(&alice);
    world_advance(&world, 1);
    client_expect_closing(&alice, "token_expired", 4001);
    world_close(&world);
}

static void refused_token_changes_nothing(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    world_open(&world, WORLD_DEFAULTS);
    connect_for(&alice, "alice", 8000);
    world_token(&world, "mallory", "", 60000, token);
    refresh(&alice, token);
    client_expect(&alice, "error");
    assert_true(client_has(&alice, "\"code\":\"FORBIDDEN\""));
    refresh(&alice, "not.a.token");
    client_expect(&alice, "error");
    assert_true(client_has(&alice, "\"code\":\"UNAUTHENTICATED\""));
    world_token(&world, "alice", "", -1, token);
    refresh(&alice, token);
    client_expect(&alice, "error");
    assert_true(client_has(&alice, "\"code\":\"UNAUTHENTICATED\""));
    world_advance(&world, 8000);
    client_expect_closing(&alice, "token_expired", 4001);
    world_close(&world);
}

static void refreshed_token_does_not_prolong_the_lifetime(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    world_open(&world, WORLD_SETS("gateway.max_lifetime_seconds=9",
                                  "gateway.max_lifetime_jitter_percent=0"));
    connect_for(&alice, "alice", 8000);
    world_advance(&world, 4000);
    world_token(&world, "alice", "", 3600000, token);
    refresh(&alice, token);
    client_expect(&alice, "ok");
    world_advance(&world, 5000);
    client_expect_closing(&alice, "max_lifetime", 1001);
    world_close(&world);
}

/* The wall clock is set, and a refresh computes the lifetime again. */
static void setting_the_wall_clock_does_not_move_the_lifetime(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    static const int64_t jumps_ms[] = {3600000, -3600000};
    for (size_t i = 0; i < 2; i++) {
        world_open(&world, WORLD_SETS("gateway.max_lifetime_seconds=8",
                                      "gateway.max_lifetime_jitter_percent=0"));
        client_connect(&alice, &world, "alice");
        world.loop->clock.wall_ms += jumps_ms[i];
        world_token(&world, "alice", "", 3600000, token);
        refresh(&alice, token);
        client_expect(&alice, "ok");
        world_advance(&world, 7999);
        client_expect_nothing(&alice);
        world_advance(&world, 1);
        client_expect_closing(&alice, "max_lifetime", 1001);
        world_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_connection_renews_its_lease_at_three_quarters_of_the_window),
        cmocka_unit_test(unhealthy_connection_renews_once_and_then_nothing),
        cmocka_unit_test(lease_of_a_client_that_comes_back_does_not_expire),
        cmocka_unit_test(lease_that_the_store_lost_is_opened_again),
        cmocka_unit_test(inactive_user_is_away_to_the_millisecond),
        cmocka_unit_test(activity_is_what_the_client_reports),
        cmocka_unit_test(user_is_away_when_all_devices_are_idle),
        cmocka_unit_test(lifetime_is_the_maximum_minus_at_most_the_jitter),
        cmocka_unit_test(lifetime_without_jitter_is_exact),
        cmocka_unit_test(expired_token_ends_the_connection_to_the_millisecond),
        cmocka_unit_test(refreshed_token_replaces_the_old_expiry),
        cmocka_unit_test(refused_token_changes_nothing),
        cmocka_unit_test(refreshed_token_does_not_prolong_the_lifetime),
        cmocka_unit_test(setting_the_wall_clock_does_not_move_the_lifetime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
