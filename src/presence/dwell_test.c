/* How often a user's presence is published: the first change at once, then the latest state per period. */
#include "presence/dwell.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { DWELL_MS = 1000 };

static struct world world;
static struct client alice, bob;

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world,
               WORLD_SETS("presence.min_dwell_ms=1000", "presence.reap_interval_seconds=60"));
    fake_ledger_befriend(&world.ledger, "alice", "bob");
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    world_close(&world);
    return 0;
}

static void subscribe_to_bob(void)
{
    client_connect(&alice, &world, "alice");
    client_send(&alice, "{\"type\":\"subscribe_presence\",\"user_ids\":[\"bob\"]}");
    client_expect(&alice, "presence_snapshot");
}

static void flap(size_t times)
{
    for (size_t i = 0; i < times; i++) {
        client_hang_up(&bob);
        client_connect(&bob, &world, "bob");
    }
}

static void the_first_change_is_published_at_once_and_the_latest_after_the_period(void **unused)
{
    (void)unused;
    subscribe_to_bob();
    client_connect(&bob, &world, "bob");
    client_expect_change(&alice, "bob", "online");
    flap(5);
    client_hang_up(&bob);
    world_advance(&world, DWELL_MS - 1);
    client_expect_nothing(&alice);
    world_advance(&world, 1);
    client_expect_change(&alice, "bob", "offline");
    client_expect_nothing(&alice);
    assert_int_equal(world_metric(&world, METRIC_PRESENCE_HELD), 11);
    client_hang_up(&alice);
}

static void each_period_publishes_one_change(void **unused)
{
    (void)unused;
    subscribe_to_bob();
    client_connect(&bob, &world, "bob");
    client_expect_change(&alice, "bob", "online");
    client_hang_up(&bob);
    world_advance(&world, DWELL_MS);
    client_expect_change(&alice, "bob", "offline");
    client_connect(&bob, &world, "bob");
    client_expect_nothing(&alice);
    world_advance(&world, DWELL_MS);
    client_expect_change(&alice, "bob", "online");
    world_advance(&world, DWELL_MS);
    client_hang_up(&bob);
    client_expect_change(&alice, "bob", "offline");
    client_hang_up(&alice);
}

static void a_user_who_ends_as_last_published_is_not_published_to_subscribers(void **unused)
{
    (void)unused;
    subscribe_to_bob();
    client_connect(&bob, &world, "bob");
    client_expect_change(&alice, "bob", "online");
    flap(3);
    world_advance(&world, 2 * DWELL_MS);
    client_expect_nothing(&alice);
    client_hang_up(&bob);
    client_hang_up(&alice);
}

static void queries_show_the_state_while_a_change_is_held(void **unused)
{
    (void)unused;
    subscribe_to_bob();
    client_connect(&bob, &world, "bob");
    client_expect_change(&alice, "bob", "online");
    client_hang_up(&bob);
    client_send(&alice, "{\"type\":\"query_presence\",\"user_ids\":[\"bob\"]}");
    client_expect_with(&alice, "presence_snapshot", "\"status\":\"offline\"");
    client_hang_up(&alice);
}

static void last_seen_is_stored_while_the_change_is_held(void **unused)
{
    (void)unused;
    client_connect(&bob, &world, "bob");
    client_hang_up(&bob);
    world_advance(&world, DWELL_MS / 2);
    assert_true(world.presence->dwell.users.size > 0);
    assert_true(last_seen_due_ms(world.presence->last_seen) != INT64_MAX ||
                world.ledger.submitted[LEDGER_LAST_SEEN_PUT] > 0);
}

static void an_announcement_compares_with_what_was_announced(void **unused)
{
    (void)unused;
    client_connect_socketio(&alice, &world, "alice");
    client_connect(&bob, &world, "bob");
    assert_string_equal(client_event_names(&alice), "friend_online presence_changed ");
    flap(2);
    world_advance(&world, DWELL_MS);
    assert_string_equal(client_event_names(&alice), "presence_changed ");
    client_hang_up(&bob);
    world_advance(&world, DWELL_MS);
    assert_string_equal(client_event_names(&alice), "friend_offline presence_changed ");
    client_hang_up(&alice);
}

static void ignore(void *arg, bool stored)
{
    (void)arg;
    assert_true(stored);
}

static void a_call_begun_while_held_is_announced_with_the_state(void **unused)
{
    (void)unused;
    client_connect_socketio(&alice, &world, "alice");
    client_connect(&bob, &world, "bob");
    client_event_names(&alice);
    presence_set_call(world.presence, SLICE("bob"), true, ignore, NULL);
    assert_string_equal(client_event_names(&alice), "");
    world_advance(&world, DWELL_MS);
    assert_string_equal(client_event_names(&alice), "friend_in_call presence_changed ");
    client_hang_up(&bob);
    client_hang_up(&alice);
}

static struct presence_change change_of_bob(enum presence_status status, int64_t version,
                                            enum presence_announcement announcement)
{
    return (struct presence_change){
        .presence = {.user_id = SLICE("bob"), .status = status, .version = version},
        .timestamp_ms = world.loop->clock.wall_ms,
        .announcement = announcement};
}

/* This gateway told that bob is online; another one told that bob left; now bob is online here again. */
static void a_state_that_another_gateway_contradicted_is_announced_again(void **unused)
{
    (void)unused;
    client_connect_socketio(&alice, &world, "alice");
    client_connect(&bob, &world, "bob");
    client_event_names(&alice);
    struct presence_change again =
        change_of_bob(PRESENCE_ONLINE, INT64_MAX, PRESENCE_ANNOUNCE_ONLINE);
    assert_false(dwell_admit(&world.presence->dwell, &again));
    world_advance(&world, DWELL_MS);
    assert_string_equal(client_event_names(&alice), "friend_online presence_changed ");
    client_hang_up(&bob);
    client_hang_up(&alice);
}

static void a_drain_publishes_what_is_held(void **unused)
{
    (void)unused;
    subscribe_to_bob();
    client_connect(&bob, &world, "bob");
    client_expect_change(&alice, "bob", "online");
    client_hang_up(&bob);
    client_expect_nothing(&alice);
    dwell_stop(&world.presence->dwell);
    world_settle(&world);
    client_expect_change(&alice, "bob", "offline");
    assert_true(dwell_is_idle(&world.presence->dwell));
    client_hang_up(&alice);
}

/* ---- a state store that does not answer ---- */

static void refuse_read(struct state_store *store, const struct slice *user_ids, size_t count,
                        state_presences_done done, void *arg)
{
    (void)store, (void)user_ids, (void)count;
    done(arg, STATE_UNAVAILABLE, NULL, 0);
}

static void a_failed_read_is_repeated_after_another_period(void **unused)
{
    (void)unused;
    static const struct state_store_operations refusing_operations = {.read = refuse_read};
    struct state_store refusing = {&refusing_operations}, *answering = world.presence->store;
    subscribe_to_bob();
    client_connect(&bob, &world, "bob");
    client_expect_change(&alice, "bob", "online");
    client_hang_up(&bob);
    world_advance(&world, DWELL_MS - 1);
    world.presence->store = &refusing;
    world_advance(&world, 1);
    world.presence->store = answering;
    client_expect_nothing(&alice);
    world_advance(&world, DWELL_MS);
    client_expect_change(&alice, "bob", "offline");
    client_hang_up(&alice);
}

static void users_who_change_once_leave_nothing_behind(void **unused)
{
    (void)unused;
    enum { USERS = 1000 };
    char name[16];
    for (int i = 0; i < USERS; i++) {
        int length = snprintf(name, sizeof(name), "u%d", i);
        struct presence_change change =
            change_of_bob(PRESENCE_ONLINE, 1, PRESENCE_ANNOUNCE_NOTHING);
        change.presence.user_id = (struct slice){name, (size_t)length};
        assert_true(dwell_admit(&world.presence->dwell, &change));
    }
    assert_int_equal(world.presence->dwell.users.size, USERS);
    world_advance(&world, DWELL_MS);
    world_settle(&world);
    assert_true(dwell_is_idle(&world.presence->dwell));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_change_is_published_at_once_and_the_latest_after_the_period),
        TEST(each_period_publishes_one_change),
        TEST(a_user_who_ends_as_last_published_is_not_published_to_subscribers),
        TEST(queries_show_the_state_while_a_change_is_held),
        TEST(last_seen_is_stored_while_the_change_is_held),
        TEST(an_announcement_compares_with_what_was_announced),
        TEST(a_call_begun_while_held_is_announced_with_the_state),
        TEST(a_state_that_another_gateway_contradicted_is_announced_again),
        TEST(a_drain_publishes_what_is_held),
        TEST(a_failed_read_is_repeated_after_another_period),
        TEST(users_who_change_once_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
