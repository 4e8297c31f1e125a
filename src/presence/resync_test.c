/* Resync after missed events: clients get each missed change once, and nothing else is read. */
#include "presence/resync.h"

#include "base/container.h"
#include "presence/presence_event.h"
#include "presence/subscription.h"
#include "routing/chat_topic.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { RESYNC_TIME_MS = 2000, LATER_MS = 2 * RESYNC_UNDETECTED_MS, CROWD = 250 };

static struct world world;
static struct client alice, bob;

/* ---- a bus that loses every event ---- */

static void lose_event(struct bus *bus, struct slice topic, struct slice payload)
{
    (void)bus, (void)topic, (void)payload;
}

static const struct bus_operations LOSING_OPERATIONS = {.publish = lose_event};
static struct bus losing_bus = {.operations = &LOSING_OPERATIONS};
static struct bus *real_bus;

static void break_bus(void)
{
    real_bus = world.presence->bus;
    world.presence->bus = &losing_bus;
}

static void restore_bus(void)
{
    world.presence->bus = real_bus;
}

/* ---- who gets a new snapshot of a chat ---- */

static size_t shown_count;
static const struct endpoint *shown_to;

static void note_shown(struct endpoint *endpoint, struct slice chat_id)
{
    assert_true(slice_is(chat_id, "team"));
    shown_count++;
    shown_to = endpoint;
}

/* A gap of the gateway's own topic: every device is told to sync, before anything else. */
static void gap(const char *topic)
{
    resync_gap(world.presence, slice_of(topic));
    world_advance(&world, RESYNC_TIME_MS);
    assert_true(resync_is_idle(world.presence));
    if (!topic || bus_topic_gateway(slice_of(topic)).data)
        client_expect_with(&alice, "sync_required", "\"reason\":\"%s\"", "delivery_outage");
}

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    shown_count = 0;
    world.presence->resync.refresh_chat = note_shown;
    client_connect(&alice, &world, "alice");
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    client_end_world(&world, CLIENTS(&alice));
    return 0;
}

static void subscribe(const char *user)
{
    char json[128];
    fake_ledger_show(&world.ledger, user, LEDGER_VISIBLE_EVERYONE, LEDGER_VISIBLE_EVERYONE);
    snprintf(json, sizeof(json), "{\"type\":\"subscribe_presence\",\"user_ids\":[\"%s\"]}", user);
    client_send(&alice, json);
}

static void expect_change(const char *status)
{
    client_expect_with(&alice, "presence_changed", "\"status\":\"%s\"", status);
}

/* ---- subscribers ---- */

static void a_missed_change_is_delivered_once(void **unused)
{
    (void)unused;
    subscribe("bob");
    client_expect(&alice, "presence_snapshot");
    break_bus();
    client_connect(&bob, &world, "bob");
    client_expect_nothing(&alice);
    restore_bus();
    gap("presence:bob");
    expect_change("online");
    assert_int_equal(world_metric(&world, METRIC_RESYNC_TOLD), 1);
    gap("presence:bob");
    gap(NULL);
    client_expect_nothing(&alice);
    client_hang_up(&bob);
    expect_change("offline");
    client_expect_nothing(&alice);
}

/* Bob is offline as before, but was seen since. */
static void a_user_who_came_and_left_has_a_new_last_seen(void **unused)
{
    (void)unused;
    subscribe("bob");
    client_expect(&alice, "presence_snapshot");
    assert_true(client_has(&alice, "\"last_seen\":null"));
    break_bus();
    client_connect(&bob, &world, "bob");
    client_hang_up(&bob);
    restore_bus();
    gap(NULL);
    expect_change("offline");
    assert_false(client_has(&alice, "\"last_seen\":null"));
    client_expect_nothing(&alice);
}

static void a_user_who_left_and_came_back_causes_no_event(void **unused)
{
    (void)unused;
    subscribe("bob");
    client_expect(&alice, "presence_snapshot");
    client_connect(&bob, &world, "bob");
    expect_change("online");
    break_bus();
    client_hang_up(&bob);
    client_connect(&bob, &world, "bob");
    restore_bus();
    gap("presence:bob");
    client_expect_nothing(&alice);
    client_hang_up(&bob);
    expect_change("offline");
}

static void a_missed_privacy_change_takes_effect(void **unused)
{
    (void)unused;
    client_connect(&bob, &world, "bob");
    subscribe("bob");
    client_expect(&alice, "presence_snapshot");
    fake_ledger_show(&world.ledger, "bob", LEDGER_VISIBLE_NOBODY,
                     LEDGER_VISIBLE_NOBODY); /* and no event arrives */
    break_bus();
    client_send(&bob, "{\"type\":\"heartbeat\",\"active\":false}");
    restore_bus();
    gap("presence:bob");
    expect_change("unknown");
    client_expect_nothing(&alice);
    client_hang_up(&bob);
}

static void a_subscriber_who_read_nothing_yet_needs_no_resync(void **unused)
{
    (void)unused;
    world.ledger.holding = true;
    subscribe("bob");
    resync_gap(world.presence, SLICE("presence:bob")); /* live before the state is read */
    resync_gap(world.presence, SLICE("presence:without subscribers"));
    resync_gap(world.presence, SLICE("chat:neither:typing"));
    assert_int_equal(world_metric(&world, METRIC_BUS_GAPS), 0);
    world.ledger.holding = false;
    fake_ledger_release_all(&world.ledger);
    client_expect(&alice, "presence_snapshot");
    gap("presence:bob");
    assert_int_equal(world_metric(&world, METRIC_BUS_GAPS), 1);
    client_expect_nothing(&alice);
}

/* More users than one read holds, with many subscribers. */
static void many_stale_topics_are_read_in_batches(void **unused)
{
    (void)unused;
    static struct client crowd[CROWD / 10];
    static struct client others[CROWD];
    char text[512];
    size_t len;
    for (size_t i = 0; i < CROWD / 10; i++) {
        snprintf(text, sizeof(text), "watcher-%zu", i);
        client_connect(&crowd[i], &world, text);
        len =
            (size_t)snprintf(text, sizeof(text), "{\"type\":\"subscribe_presence\",\"user_ids\":[");
        for (size_t j = 0; j < 10; j++) {
            char user[32];
            snprintf(user, sizeof(user), "user-%zu", i * 10 + j);
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\"%s\"", j ? "," : "", user);
        }
        snprintf(text + len, sizeof(text) - len, "]}");
        client_send(&crowd[i], text);
        client_expect(&crowd[i], "presence_snapshot");
    }
    break_bus();
    for (size_t i = 0; i < CROWD; i++) {
        snprintf(text, sizeof(text), "user-%zu", i);
        client_connect(&others[i], &world, text);
    }
    restore_bus();
    gap(NULL);
    assert_int_equal(world_metric(&world, METRIC_RESYNC_TOLD), CROWD);
    for (size_t i = 0; i < CROWD / 10; i++) {
        client_expect(&crowd[i], "sync_required");
        for (size_t j = 0; j < 10; j++)
            client_expect(&crowd[i], "presence_changed");
        client_expect_nothing(&crowd[i]);
    }
    for (size_t i = 0; i < CROWD; i++)
        client_hang_up(&others[i]);
    for (size_t i = 0; i < CROWD / 10; i++)
        client_hang_up(&crowd[i]);
}

/* ---- events out of order ---- */

static void receive(const char *status, int64_t version)
{
    char text[256];
    int len = snprintf(text, sizeof(text),
                       "{\"type\":\"presence_changed\",\"user_id\":\"bob\",\"status\":\"%s\","
                       "\"in_call\":false,\"last_seen\":null,\"version\":%ld,"
                       "\"timestamp\":\"2026-01-01T00:00:00.000Z\"}",
                       status, (long)version);
    presence_received(world.presence, SLICE("presence:bob"), (struct slice){text, (size_t)len});
    world_settle(&world);
}

static void an_older_version_is_not_told_after_a_newer_one(void **unused)
{
    (void)unused;
    int64_t now = world.loop->clock.wall_ms + LATER_MS;
    subscribe("bob");
    client_expect(&alice, "presence_snapshot");
    receive("away", now + 2);
    expect_change("away");
    receive("online", now + 1); /* overtaken */
    receive("away", now + 2);   /* twice */
    receive("away", now + 3);   /* registered again without having left */
    client_expect_nothing(&alice);
    receive("online", now + 4);
    expect_change("online");
}

/* The snapshot was read before the event and arrives after it. */
static void a_snapshot_older_than_an_event_is_corrected(void **unused)
{
    (void)unused;
    struct presence old = {.user_id = SLICE("bob"),
                           .status = PRESENCE_OFFLINE,
                           .last_seen_ms = TIME_NONE,
                           .version = 1};
    client_connect(&bob, &world, "bob");
    subscribe("bob");
    client_expect(&alice, "presence_snapshot");
    subscription_told(world.presence, &world_session(&world, "alice")->endpoint, &old, 1);
    world_advance(&world, RESYNC_TIME_MS);
    expect_change("online");
    client_expect_nothing(&alice);
    client_hang_up(&bob);
}

/* ---- chats and contacts ---- */

/* Each run serves some of them. */
static void all_viewers_of_a_chat_get_a_snapshot_over_several_runs(void **unused)
{
    (void)unused;
    static struct endpoint crowd[CROWD];
    struct router *router = world.sessions->router;
    for (unsigned i = 0; i < CROWD; i++) {
        char name[16];
        snprintf(name, sizeof(name), "crowd%u", i);
        assert_true(router_attach(router, &crowd[i], slice_of(name)));
        router_subscribe(router, &crowd[i], SLICE("chat:team:presence"))->view = CHAT_VIEW_OPEN;
    }
    resync_gap(world.presence, SLICE("chat:team:presence"));
    resync_run(world.presence);
    assert_int_equal(shown_count, RESYNC_CHATS_PER_RUN);
    resync_gap(world.presence, SLICE("chat:team:presence")); /* again for all of them */
    world_advance(&world, RESYNC_TIME_MS);
    assert_int_equal(shown_count, RESYNC_CHATS_PER_RUN + CROWD);
    world_advance(&world, RESYNC_TIME_MS);
    assert_int_equal(shown_count, RESYNC_CHATS_PER_RUN + CROWD);
    for (unsigned i = 0; i < CROWD; i++)
        router_detach(router, &crowd[i]);
}

static void an_open_chat_gets_a_new_snapshot(void **unused)
{
    (void)unused;
    fake_ledger_join(&world.ledger, "team", "alice");
    fake_ledger_join(&world.ledger, "team", "bob");
    client_send(&alice, "{\"type\":\"open_chat\",\"chat_id\":\"team\"}");
    client_expect(&alice, "chat_snapshot");
    gap("chat:team:typing");
    assert_int_equal(shown_count, 0);
    gap("chat:team:presence");
    assert_int_equal(shown_count, 1);
    assert_ptr_equal(shown_to, &world_session(&world, "alice")->endpoint);
    gap(NULL);
    assert_int_equal(shown_count, 2);
}

/* Time passes while the clients stay alive. */
static void wait_long(struct client *client)
{
    for (int64_t waited = 0; waited < LATER_MS; waited += RESYNC_TIME_MS) {
        client_frame(&alice, CLIENT_PONG, "", 0);
        client_frame(client, CLIENT_PONG, "", 0);
        world_advance(&world, RESYNC_TIME_MS);
    }
}

static void contacts_that_changed_since_are_in_a_snapshot(void **unused)
{
    (void)unused;
    fake_ledger_befriend(&world.ledger, "alice", "bob");
    fake_ledger_befriend(&world.ledger, "alice", "carol");
    wait_long(&alice); /* users without a record count as changed at the start */
    break_bus();
    client_connect(&bob, &world, "bob");
    client_expect_nothing(&alice);
    restore_bus();
    gap("server:gw:deliver");
    client_expect(&alice, "presence_snapshot");
    assert_true(client_has(&alice, "\"user_id\":\"bob\",\"status\":\"online\""));
    assert_false(client_has(&alice, "carol"));
    client_expect_nothing(&alice);
    wait_long(&bob);
    gap("server:gw:deliver"); /* long after bob's change */
    client_expect_nothing(&alice);
    client_hang_up(&bob);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_missed_change_is_delivered_once),
        IN_WORLD(a_user_who_came_and_left_has_a_new_last_seen),
        IN_WORLD(a_user_who_left_and_came_back_causes_no_event),
        IN_WORLD(a_missed_privacy_change_takes_effect),
        IN_WORLD(a_subscriber_who_read_nothing_yet_needs_no_resync),
        IN_WORLD(many_stale_topics_are_read_in_batches),
        IN_WORLD(an_older_version_is_not_told_after_a_newer_one),
        IN_WORLD(a_snapshot_older_than_an_event_is_corrected),
        IN_WORLD(an_open_chat_gets_a_new_snapshot),
        IN_WORLD(all_viewers_of_a_chat_get_a_snapshot_over_several_runs),
        IN_WORLD(contacts_that_changed_since_are_in_a_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
