/* Subscriptions, with a ledger that the test controls. For privacy see visibility_review_test.c. */
#include "presence/subscription.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct world world;
static struct client alice, bob;

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_SETS("presence.max_subscriptions=5"));
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

static void subscribe(struct client *client, const char *user)
{
    char json[128];
    snprintf(json, sizeof(json), "{\"type\":\"subscribe_presence\",\"id\":1,\"user_ids\":[\"%s\"]}",
             user);
    client_send(client, json);
}

static void a_subscriber_gets_changes_until_it_unsubscribes(void **unused)
{
    (void)unused;
    subscribe(&alice, "bob");
    client_expect(&alice, "presence_snapshot");
    assert_true(client_has(&alice, "\"user_id\":\"bob\",\"status\":\"online\""));
    client_set_away(&bob, true);
    client_expect_change(&alice, "bob", "away");
    client_set_away(&bob, false);
    client_expect_change(&alice, "bob", "online");
    client_send(&alice, "{\"type\":\"unsubscribe_presence\",\"user_ids\":[\"bob\"]}");
    client_expect(&alice, "ok");
    client_set_away(&bob, true);
    client_expect_nothing(&alice);
    assert_int_equal(world_metric(&world, METRIC_SUBSCRIPTIONS), 0);
}

static void a_slow_subscriber_gets_only_the_latest_state(void **unused)
{
    (void)unused;
    subscribe(&alice, "bob");
    client_expect(&alice, "presence_snapshot");
    for (int i = 0; i < 5; i++) { /* in one turn */
        const char *json = i % 2 ? "{\"type\":\"heartbeat\",\"active\":true}"
                                 : "{\"type\":\"heartbeat\",\"active\":false}";
        client_frame(&bob, CLIENT_TEXT, json, strlen(json));
    }
    client_expect_change(&alice, "bob", "away");
    client_expect_nothing(&alice);
    assert_int_equal(world_metric(&world, METRIC_MESSAGES_SUPERSEDED), 4);
}

static void repeated_users_count_once_against_the_limit(void **unused)
{
    (void)unused;
    client_send(&alice, "{\"type\":\"subscribe_presence\",\"user_ids\":[\"a\",\"b\",\"a\",\"c\"]}");
    client_expect(&alice, "presence_snapshot");
    client_send(&alice, "{\"type\":\"subscribe_presence\",\"user_ids\":[\"a\",\"d\",\"e\"]}");
    client_expect(&alice, "presence_snapshot");
    subscribe(&alice, "f");
    client_expect(&alice, "error");
    assert_true(client_has(&alice, "\"code\":\"SUBSCRIPTION_LIMIT\""));
    subscribe(&alice, "e");
    client_expect(&alice, "presence_snapshot");
    assert_int_equal(world_metric(&world, METRIC_SUBSCRIPTIONS), 5);
}

static void a_change_between_subscribe_and_snapshot_is_shown(void **unused)
{
    (void)unused;
    world.ledger.holding = true;
    subscribe(&alice, "bob");
    client_set_away(&bob, true);
    client_expect_nothing(&alice); /* nothing is shown before privacy has decided */
    fake_ledger_release_all(&world.ledger);
    client_expect(&alice, "presence_snapshot");
    assert_true(client_has(&alice, "\"user_id\":\"bob\",\"status\":\"away\""));
}

static void a_failed_subscribe_leaves_no_subscription(void **unused)
{
    (void)unused;
    world.ledger.failing = LEDGER_UNAVAILABLE;
    subscribe(&alice, "bob");
    client_expect(&alice, "error");
    assert_int_equal(world_metric(&world, METRIC_SUBSCRIPTIONS), 0);
    world.ledger.failing = LEDGER_OK;
    presence_publish_privacy(world.presence, SLICE("bob"));
    client_set_away(&bob, true);
    client_expect_nothing(&alice);
}

static void a_failed_subscribe_keeps_earlier_subscriptions(void **unused)
{
    (void)unused;
    subscribe(&alice, "bob");
    client_expect(&alice, "presence_snapshot");
    world.ledger.failing = LEDGER_UNAVAILABLE;
    subscribe(&alice, "bob");
    client_expect(&alice, "error");
    client_set_away(&bob, true);
    client_expect_change(&alice, "bob", "away");
}

static void one_of_two_pending_subscribes_may_fail(void **unused)
{
    (void)unused;
    world.ledger.holding = true;
    world.ledger.failing = LEDGER_UNAVAILABLE;
    subscribe(&alice, "bob");
    world.ledger.failing = LEDGER_OK;
    subscribe(&alice, "bob");
    fake_ledger_release(&world.ledger);
    client_expect(&alice, "error");
    fake_ledger_release(&world.ledger);
    client_expect(&alice, "presence_snapshot");
    client_set_away(&bob, true);
    client_expect_change(&alice, "bob", "away");
}

static void unsubscribing_while_pending_takes_effect(void **unused)
{
    (void)unused;
    world.ledger.holding = true;
    subscribe(&alice, "bob");
    client_send(&alice, "{\"type\":\"unsubscribe_presence\",\"user_ids\":[\"bob\"]}");
    client_expect(&alice, "ok");
    fake_ledger_release_all(&world.ledger);
    client_expect(&alice, "presence_snapshot");
    client_set_away(&bob, true);
    client_expect_nothing(&alice);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(a_subscriber_gets_changes_until_it_unsubscribes),
        TEST(a_slow_subscriber_gets_only_the_latest_state),
        TEST(repeated_users_count_once_against_the_limit),
        TEST(a_change_between_subscribe_and_snapshot_is_shown),
        TEST(a_failed_subscribe_leaves_no_subscription),
        TEST(a_failed_subscribe_keeps_earlier_subscriptions),
        TEST(one_of_two_pending_subscribes_may_fail),
        TEST(unsubscribing_while_pending_takes_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
