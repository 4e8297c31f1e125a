/* Settings changes and subscriptions: viewers of bob lose and regain visibility, with a
 * ledger that the test controls. */
#include "presence/visibility/visibility_review.h"

#include "presence/presence_plane.h"
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
    client_connect(&alice, &world, "alice");
    client_connect(&bob, &world, "bob");
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    client_end_world(&world, CLIENTS(&alice, &bob));
    return 0;
}

static void subscribe(struct client *client)
{
    client_send(client, "{\"type\":\"subscribe_presence\",\"id\":1,\"user_ids\":[\"bob\"]}");
}

static void watch(struct client *client)
{
    subscribe(client);
    client_expect(client, "presence_snapshot");
}

/* Stores bob's setting and publishes it to every gateway, as PATCH /v1/me does. */
static void show(enum ledger_visibility visibility)
{
    fake_ledger_show(&world.ledger, "bob", visibility, visibility);
    presence_publish_privacy(world.presence, SLICE("bob"));
    world_settle(&world);
}

static void a_viewer_who_loses_visibility_is_told_unknown_once(void **unused)
{
    (void)unused;
    watch(&alice);
    show(LEDGER_VISIBLE_NOBODY);
    client_expect_change(&alice, "bob", "unknown");
    assert_true(client_has(&alice, "\"reason\":\"privacy\""));
    assert_true(client_has(&alice, "\"version\":0"));
    client_set_away(&bob, true);
    client_expect_nothing(&alice);
    show(LEDGER_VISIBLE_EVERYONE);
    client_expect_change(&alice, "bob", "away");
    client_expect_nothing(&alice);
}

static void contacts_keep_what_others_lose(void **unused)
{
    (void)unused;
    client_connect(&carol, &world, "carol");
    fake_ledger_befriend(&world.ledger, "alice", "bob");
    watch(&alice);
    watch(&carol);
    show(LEDGER_VISIBLE_CONTACTS_ONLY);
    client_expect_nothing(&alice);
    client_expect_change(&carol, "bob", "unknown");
    assert_true(client_has(&carol, "\"reason\":\"not_contacts\""));
    client_set_away(&bob, true);
    client_expect_change(&alice, "bob", "away");
    client_expect_nothing(&carol);
    client_hang_up(&carol);
}

/* The read is older than the setting, and its answer comes after the review's. */
static void a_setting_changed_during_a_subscribe_is_not_undone(void **unused)
{
    (void)unused;
    world.ledger.holding = true;
    subscribe(&alice);
    show(LEDGER_VISIBLE_NOBODY);
    fake_ledger_release_newest(&world.ledger); /* the review */
    world_settle(&world);
    world.ledger.holding = false;
    fake_ledger_release_all(&world.ledger); /* the subscriber's own */
    client_set_away(&bob, true);
    while (client_next(&alice) == CLIENT_TEXT)
        assert_true(client_has(&alice, "\"status\":\"unknown\""));
    show(LEDGER_VISIBLE_EVERYONE);
    client_expect_change(&alice, "bob", "away");
}

static void an_overtaken_review_is_dropped(void **unused)
{
    (void)unused;
    watch(&alice);
    show(LEDGER_VISIBLE_NOBODY);
    client_expect_change(&alice, "bob", "unknown");
    world.ledger.holding = true;
    show(LEDGER_VISIBLE_EVERYONE);
    show(LEDGER_VISIBLE_NOBODY);
    fake_ledger_release_newest(&world.ledger);
    fake_ledger_release_all(&world.ledger);
    client_set_away(&bob, true);
    client_expect_nothing(&alice);
}

static void a_query_gives_up_when_settings_keep_changing(void **unused)
{
    (void)unused;
    world.ledger.holding = true;
    subscribe(&alice);
    for (int i = 0; i < 10 && world.ledger.held_count; i++) {
        show(i % 2 ? LEDGER_VISIBLE_EVERYONE : LEDGER_VISIBLE_NOBODY);
        while (world.ledger.held_count > 1)
            fake_ledger_release_newest(&world.ledger); /* the reviews */
        fake_ledger_release(&world.ledger);
        world_settle(&world);
    }
    assert_int_equal(world.ledger.held_count, 0);
    enum client_event event;
    while ((event = client_next(&alice)) == CLIENT_TEXT &&
           !client_has(&alice, "\"type\":\"error\""))
        ;
    assert_int_equal(event, CLIENT_TEXT);
    assert_true(client_has(&alice, "\"id\":1,\"code\":\"SERVICE_UNAVAILABLE\""));
}

/* Bob stays hidden until the ledger has answered. */
static void without_the_ledger_a_settings_change_hides(void **unused)
{
    (void)unused;
    watch(&alice);
    world.ledger.failing = LEDGER_UNAVAILABLE;
    show(LEDGER_VISIBLE_NOBODY);
    client_set_away(&bob, true);
    client_expect_nothing(&alice);
    world_advance(&world, 2000);
    client_expect_nothing(&alice);
    world.ledger.failing = LEDGER_OK;
    world_advance(&world, world.config.presence.reap_interval_ms);
    client_expect_change(&alice, "bob", "unknown");
    client_expect_nothing(&alice);
}

static void when_the_ledger_answers_again_viewers_are_told_the_state(void **unused)
{
    (void)unused;
    watch(&alice);
    world.ledger.failing = LEDGER_TIMEOUT;
    show(LEDGER_VISIBLE_EVERYONE);
    client_set_away(&bob, true);
    client_expect_nothing(&alice);
    world.ledger.failing = LEDGER_OK;
    world_advance(&world, world.config.presence.reap_interval_ms);
    client_expect_change(&alice, "bob", "away");
    client_expect_nothing(&alice);
}

/* The view was only suspended. Found by the simulator: links_cut, seed 15. */
static void a_state_that_viewers_know_is_not_told_again_after_a_failed_review(void **unused)
{
    (void)unused;
    watch(&alice);
    world.ledger.failing = LEDGER_TIMEOUT;
    show(LEDGER_VISIBLE_EVERYONE);
    world.ledger.failing = LEDGER_OK;
    world_advance(&world, world.config.presence.reap_interval_ms);
    client_expect_nothing(&alice);
    show(LEDGER_VISIBLE_NOBODY);
    client_expect_change(&alice, "bob", "unknown");
    show(LEDGER_VISIBLE_EVERYONE);
    client_expect_change(&alice, "bob", "online");
}

static void a_review_without_subscribers_ends(void **unused)
{
    (void)unused;
    client_connect(&carol, &world, "carol");
    watch(&carol);
    world.ledger.holding = true;
    show(LEDGER_VISIBLE_NOBODY);
    client_hang_up(&carol);
    fake_ledger_release_all(&world.ledger);
    world_settle(&world);
    assert_true(list_empty(&world.presence->reviews));
}

/* ---- reviews that fail half-way ---- */

/* Holds the store's answer to one read until the test releases it. */
static struct {
    state_presences_done done;
    void *arg;
} held_read;

static void hold_read(struct state_store *store, const struct slice *user_ids, size_t count,
                      state_presences_done done, void *arg)
{
    (void)store, (void)user_ids, (void)count;
    assert_null(held_read.done);
    held_read.done = done;
    held_read.arg = arg;
}

/* The review set the views and was overtaken while the state was read: it must set the views again. */
static void a_review_without_a_state_is_retried_though_overtaken(void **unused)
{
    (void)unused;
    struct state_store *store = world.presence->store;
    const struct state_store_operations *real = store->operations;
    struct state_store_operations holding = *real;
    holding.read = hold_read;
    watch(&alice);
    show(LEDGER_VISIBLE_NOBODY);
    client_expect_change(&alice, "bob", "unknown");
    store->operations = &holding;
    show(LEDGER_VISIBLE_EVERYONE);
    show(LEDGER_VISIBLE_EVERYONE);
    store->operations = real;
    held_read.done(held_read.arg, STATE_UNAVAILABLE, NULL, 0);
    world_advance(&world, world.config.presence.reap_interval_ms);
    client_expect_change(&alice, "bob", "online");
    client_set_away(&bob, true);
    client_expect_change(&alice, "bob", "away");
}

/* More subscribers than one ledger query holds; the last of them have no connection. */
enum { CROWD = LEDGER_PROFILES_MAX };
static struct endpoint crowd[CROWD];

static void deliver_except_to_crowd(struct endpoint *endpoint, struct broadcast *broadcast,
                                    uint64_t key)
{
    if (endpoint < crowd || endpoint >= crowd + CROWD)
        session_deliver(endpoint, broadcast, key);
}

static void gather_crowd(struct router *router)
{
    router->deliver = deliver_except_to_crowd;
    for (unsigned i = 0; i < CROWD; i++) {
        char name[16];
        snprintf(name, sizeof(name), "crowd%u", i);
        assert_true(router_attach(router, &crowd[i], slice_of(name)));
        assert_non_null(router_subscribe(router, &crowd[i], SLICE("presence:bob")));
    }
}

static void a_failed_review_leaves_the_viewers_of_another(void **unused)
{
    (void)unused;
    watch(&alice);
    gather_crowd(world.sessions->router);
    world.ledger.holding = true;
    show(LEDGER_VISIBLE_EVERYONE);
    assert_int_equal(world.ledger.held_count, 2);
    fake_ledger_release(&world.ledger); /* alice's review; the other one times out */
    world_advance(&world, world.config.gateway.timeouts.durability_rpc_ms + 1000);
    client_set_away(&bob, true);
    client_expect_change(&alice, "bob", "away");
    world.ledger.holding = false;
    fake_ledger_release_all(&world.ledger);
    world_settle(&world);
    for (unsigned i = 0; i < CROWD; i++)
        router_detach(world.sessions->router, &crowd[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(a_viewer_who_loses_visibility_is_told_unknown_once),
        TEST(contacts_keep_what_others_lose),
        TEST(a_setting_changed_during_a_subscribe_is_not_undone),
        TEST(an_overtaken_review_is_dropped),
        TEST(a_query_gives_up_when_settings_keep_changing),
        TEST(without_the_ledger_a_settings_change_hides),
        TEST(when_the_ledger_answers_again_viewers_are_told_the_state),
        TEST(a_state_that_viewers_know_is_not_told_again_after_a_failed_review),
        TEST(a_review_without_subscribers_ends),
        TEST(a_review_without_a_state_is_retried_though_overtaken),
        TEST(a_failed_review_leaves_the_viewers_of_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
