/* Visibility lost and gained: contacts and a subscriber are told, also when stores fail, answers overtake each
 * other and changes are repeated. Carol subscribes to bob, who is visible to everybody; alice is his contact. */
#include "presence/visibility/visibility_change.h"

#include "presence/presence_plane.h"
#include "presence/push.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct world world;
static struct client alice, bob, carol;

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    client_connect_three(&world, &alice, &bob, &carol);
    client_send(&carol, "{\"type\":\"subscribe_presence\",\"id\":1,\"user_ids\":[\"bob\"]}");
    client_expect(&carol, "presence_snapshot");
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    client_end_world(&world, CLIENTS(&alice, &bob, &carol));
    return 0;
}

static void note_done(void *arg)
{
    *(bool *)arg = true;
}

/* A visibility change reads several stores, one after the other. */
static void settle_until(const bool *done)
{
    for (int i = 0; i < 5 && !*done; i++)
        world_settle(&world);
    assert_true(*done);
}

static void change_relation(enum visibility_cause cause)
{
    bool done = false;
    visibility_change_of_relation(world.presence, cause, SLICE("bob"), SLICE("carol"), false,
                                  note_done, &done);
    settle_until(&done);
}

static void block(void)
{
    fake_ledger_block(&world.ledger, "bob", "carol");
    change_relation(VISIBILITY_BLOCKED);
}

static void unblock(void)
{
    world.ledger.block_count = 0;
    change_relation(VISIBILITY_UNBLOCKED);
}

static void unsubscribe(void)
{
    client_send(&carol, "{\"type\":\"unsubscribe_presence\",\"user_ids\":[\"bob\"]}");
    client_expect(&carol, "ok");
}

/* ---- settings ---- */

static void show(const char *user, enum ledger_visibility before, enum ledger_visibility after)
{
    bool done = false;
    struct ledger_settings old = {before, before}, new = {after, after};
    fake_ledger_show(&world.ledger, user, after, after);
    visibility_change_of_settings(world.presence, slice_of(user), &old, &new, note_done, &done);
    settle_until(&done);
}

/* Found by the simulator: links_cut, seed 27. */
static void a_change_that_the_bus_may_have_lost_is_published_again(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "bob", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    privacy_repeat_note(world.presence, SLICE("bob")); /* and nobody heard it */
    world.presence->resync.disturbed_at_ms = world.presence->clock->now_ms + RESYNC_UNDETECTED_MS;
    privacy_repeat_run(world.presence);
    world_settle(&world);
    client_expect_change(&carol, "bob", "unknown");
    client_expect_nothing(&carol);
}

static void a_change_from_before_the_disturbance_is_not_published_again(void **unused)
{
    (void)unused;
    fake_ledger_show(&world.ledger, "bob", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    privacy_repeat_note(world.presence, SLICE("bob"));
    world.presence->resync.disturbed_at_ms =
        world.presence->clock->now_ms + RESYNC_UNDETECTED_MS + 1;
    privacy_repeat_run(world.presence);
    world_settle(&world);
    client_expect_nothing(&carol);
}

static void a_setting_hides_from_contacts_once_and_shows_again(void **unused)
{
    (void)unused;
    unsubscribe();
    show("bob", LEDGER_VISIBLE_EVERYONE, LEDGER_VISIBLE_NOBODY);
    client_expect_change(&alice, "bob", "unknown");
    assert_true(client_has(&alice, "\"reason\":\"privacy\""));
    client_set_away(&bob, true);
    client_expect_nothing(&alice);
    show("bob", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_CONTACTS_ONLY);
    client_expect_change(&alice, "bob", "away");
    show("bob", LEDGER_VISIBLE_CONTACTS_ONLY, LEDGER_VISIBLE_EVERYONE);
    client_expect_nothing(&alice);
    client_expect_nothing(&carol);
}

/* ---- relations ---- */

static void done_runs_when_the_ledger_does_not_answer(void **unused)
{
    (void)unused;
    bool done = false;
    world.ledger.failing = LEDGER_UNAVAILABLE;
    visibility_change_of_relation(world.presence, VISIBILITY_CONTACT_ENDED, SLICE("alice"),
                                  SLICE("bob"), true, note_done, &done);
    settle_until(&done);
    world.ledger.failing = LEDGER_OK;
    client_expect_nothing(&alice);
}

/* A pending subscription must not get a view from a read that is older than the block. */
static void a_query_that_began_before_a_block_shows_nothing_after_it(void **unused)
{
    (void)unused;
    unsubscribe();
    world.ledger.holding = true;
    client_send(&carol, "{\"type\":\"subscribe_presence\",\"id\":1,\"user_ids\":[\"bob\"]}");
    world.ledger.holding = false; /* the reads of the block are answered at once */
    block();
    fake_ledger_release_all(&world.ledger);
    world_settle(&world);
    client_expect(&carol, "presence_snapshot");
    assert_true(client_has(&carol, "\"status\":\"unknown\""));
    client_set_away(&bob, true);
    client_expect(&alice, "presence_changed");
    client_expect_nothing(&carol);
}

static void a_block_hides_when_the_ledger_answers_late(void **unused)
{
    (void)unused;
    world.ledger.failing = LEDGER_BUSY;
    block();
    client_set_away(&bob, true);
    client_expect_nothing(&carol);
    world.ledger.failing = LEDGER_OK;
    world_advance(&world, world.config.presence.reap_interval_ms);
    client_expect_change(&carol, "bob", "unknown");
    client_set_away(&bob, false);
    client_expect_nothing(&carol);
}

/* Carol sends a query that needs a decision; bob blocks her before it is made. */
static void a_decision_from_before_a_block_does_not_undo_it(void **unused)
{
    (void)unused;
    bool done = false;
    world.ledger.holding = true;
    visibility_change_of_relation(world.presence, VISIBILITY_REPEATED, SLICE("bob"), SLICE("carol"),
                                  false, note_done, &done);
    world_settle(&world);
    world.ledger.holding = false;
    block();
    client_expect_change(&carol, "bob", "unknown");
    fake_ledger_release_all(&world.ledger);
    settle_until(&done);
    client_set_away(&bob, true);
    client_expect_nothing(&carol);
}

/* ---- a state that is read while visibility is lost ---- */

static struct {
    const struct state_store_operations *real;
    struct state_store_operations holding;
    state_presences_done done;
    void *arg;
} reading;

static void hold_read(struct state_store *store, const struct slice *user_ids, size_t count,
                      state_presences_done done, void *arg)
{
    (void)user_ids, (void)count;
    store->operations = reading.real; /* only the first */
    reading.done = done;
    reading.arg = arg;
}

static void hold_next_read(void)
{
    struct state_store *store = world.presence->store;
    reading.real = store->operations;
    reading.holding = *store->operations;
    reading.holding.read = hold_read;
    store->operations = &reading.holding;
}

static void a_state_read_before_a_block_is_not_shown_after_it(void **unused)
{
    (void)unused;
    hold_next_read();
    client_send(&carol, "{\"type\":\"subscribe_presence\",\"id\":2,\"user_ids\":[\"bob\"]}");
    client_expect_nothing(&carol);
    block();
    client_expect_change(&carol, "bob", "unknown");
    struct presence online = world_presence(&world, "bob");
    reading.done(reading.arg, STATE_OK, &online, 1);
    client_expect(&carol, "presence_snapshot");
    assert_true(client_has(&carol, "\"status\":\"unknown\""));
}

static void a_viewer_who_regains_visibility_is_told_the_state(void **unused)
{
    (void)unused;
    client_set_away(&bob, true);
    client_expect_change(&carol, "bob", "away");
    block();
    client_expect_change(&carol, "bob", "unknown");
    client_set_away(&bob, false);
    unblock();
    client_expect_change(&carol, "bob", "online");
    client_set_away(&bob,
                    true); /* the state is as she last saw it, but she was told `unknown` since */
    client_expect_change(&carol, "bob", "away");
}

/* ---- a store that has come back without its data ---- */

static void return_no_routes(struct state_store *store, const struct slice *users, size_t count,
                             state_routes_done done, void *arg)
{
    (void)store, (void)users, (void)count;
    done(arg, STATE_OK, &(struct state_routes){0});
}

static void a_block_reaches_users_without_a_lease_yet(void **unused)
{
    (void)unused;
    struct state_store *store = world.presence->store;
    const struct state_store_operations *real = store->operations;
    struct state_store_operations without_routes = *real;
    without_routes.routes = return_no_routes;
    store->operations = &without_routes;
    resync_gap(world.presence, SLICE_NONE);
    block();
    store->operations = real;
    client_expect_change(&carol, "bob", "unknown");
    client_set_away(&bob, true);
    client_expect_nothing(&carol);
}

/* ---- pushes of other gateways ---- */

static const char AWAY[] =
    "{\"type\":\"presence_changed\",\"user_id\":\"bob\",\"status\":\"away\",\"in_call\":false,"
    "\"last_seen\":null,\"version\":9000000000000000,"
    "\"timestamp\":\"2026-01-01T00:00:00.000Z\"}";

static void push_wider_view(void)
{
    char push[512];
    snprintf(
        push, sizeof(push),
        "{\"kind\":\"presence\",\"presence\":%s,\"view\":%d,\"contacts\":false,\"users\":[\"carol\"]}",
        AWAY, PRIVACY_EVERYTHING);
    delivery_received(world.receiver, SLICE("server:gw:deliver"), slice_of(push));
}

/* The state was read after a change whose event is still on its way. */
static void a_repeated_change_hides_no_later_change(void **unused)
{
    (void)unused;
    push_wider_view();
    client_expect_nothing(&carol);
    presence_received(world.presence, SLICE("presence:bob"), slice_of(AWAY));
    client_expect_change(&carol, "bob", "away");
}

/* Two gateways made two changes: the block hides bob, and the older push would show him again. */
static void visibility_given_late_is_reviewed_first(void **unused)
{
    (void)unused;
    block();
    client_expect_change(&carol, "bob", "unknown");
    push_wider_view();
    client_set_away(&bob, true);
    client_expect_nothing(&carol);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(a_setting_hides_from_contacts_once_and_shows_again),
        TEST(a_change_that_the_bus_may_have_lost_is_published_again),
        TEST(a_change_from_before_the_disturbance_is_not_published_again),
        TEST(done_runs_when_the_ledger_does_not_answer),
        TEST(a_query_that_began_before_a_block_shows_nothing_after_it),
        TEST(a_block_hides_when_the_ledger_answers_late),
        TEST(a_decision_from_before_a_block_does_not_undo_it),
        TEST(a_state_read_before_a_block_is_not_shown_after_it),
        TEST(a_viewer_who_regains_visibility_is_told_the_state),
        TEST(a_block_reaches_users_without_a_lease_yet),
        TEST(a_repeated_change_hides_no_later_change),
        TEST(visibility_given_late_is_reviewed_first),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
