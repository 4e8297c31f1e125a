/* While the ledger does not answer, viewers see as much as cached graphs allow, and never more than the
 * ledger would have shown. */
#include "presence/visibility/cached_profiles.h"

#include "presence/notify.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct world world;
static struct client alice, bob, carol;

/* Alice and bob are contacts; carol is a contact of dave. Everybody has a contact, so all graphs are cached. */
static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    fake_ledger_befriend(&world.ledger, "carol", "dave");
    client_connect_three(&world, &alice, &bob, &carol);
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    client_end_world(&world, CLIENTS(&alice, &bob, &carol));
    return 0;
}

/* Loads a user's graph again, as the next change does. */
static void cache(const char *user)
{
    struct presence_change change = {
        .presence = {.user_id = slice_of(user), .status = PRESENCE_ONLINE, .version = 1}};
    graph_reader_drop(&world.presence->graphs, slice_of(user));
    notify_change(world.presence, &change);
    world_settle(&world);
}

static void skip_messages(struct client *client)
{
    while (client_next(client) == CLIENT_TEXT)
        ;
}

static void show(const char *user, enum ledger_visibility presence,
                 enum ledger_visibility last_seen)
{
    fake_ledger_show(&world.ledger, user, presence, last_seen);
    cache(user);
}

static void query(struct client *client, const char *users)
{
    char json[256];
    snprintf(json, sizeof(json), "{\"type\":\"query_presence\",\"user_ids\":[%s]}", users);
    client_send(client, json);
}

static void expect_seen(struct client *client, const char *piece)
{
    client_expect_with(client, "presence_snapshot", "%s", piece);
}

static void contacts_see_each_other_without_the_ledger(void **unused)
{
    (void)unused;
    show("bob", LEDGER_VISIBLE_CONTACTS_ONLY, LEDGER_VISIBLE_CONTACTS_ONLY);
    client_expect(&alice, "presence_changed");
    world.ledger.failing = LEDGER_UNAVAILABLE;
    query(&alice, "\"bob\"");
    expect_seen(&alice, "\"user_id\":\"bob\",\"status\":\"online\"");
    query(&carol, "\"bob\"");
    expect_seen(&carol, "\"status\":\"unknown\"");
    assert_true(client_has(&carol, "not_contacts"));
    query(&alice, "\"alice\"");
    expect_seen(&alice, "\"user_id\":\"alice\",\"status\":\"online\"");
}

static void every_status_without_an_answer_uses_the_cache(void **unused)
{
    static const enum ledger_status STATUSES[] = {LEDGER_BUSY, LEDGER_TIMEOUT, LEDGER_UNAVAILABLE};
    (void)unused;
    for (size_t i = 0; i < sizeof(STATUSES) / sizeof(STATUSES[0]); i++) {
        world.ledger.failing = STATUSES[i];
        query(&alice, "\"bob\"");
        expect_seen(&alice, "\"status\":\"online\"");
    }
    assert_false(cached_profiles_are_needed(LEDGER_OK));
    assert_false(cached_profiles_are_needed(LEDGER_INVALID));
}

static void subscriptions_are_accepted(void **unused)
{
    (void)unused;
    show("bob", LEDGER_VISIBLE_EVERYONE, LEDGER_VISIBLE_EVERYONE);
    client_expect(&alice, "presence_changed");
    world.ledger.failing = LEDGER_UNAVAILABLE;
    client_send(&carol, "{\"type\":\"subscribe_presence\",\"user_ids\":[\"bob\"]}");
    expect_seen(&carol, "\"user_id\":\"bob\",\"status\":\"online\"");
    client_send(&bob, "{\"type\":\"heartbeat\",\"active\":false}");
    client_expect(&carol, "presence_changed");
    assert_true(client_has(&carol, "\"status\":\"away\""));
    client_expect(&alice, "presence_changed"); /* a contact, according to the cached graph */
    assert_true(client_has(&alice, "\"status\":\"away\""));
}

static void a_user_without_a_cached_graph_is_unknown(void **unused)
{
    (void)unused;
    world.ledger.failing = LEDGER_UNAVAILABLE;
    query(&alice, "\"zed\"");
    client_expect(&alice, "error");
    query(&alice, "\"bob\",\"zed\"");
    expect_seen(&alice, "\"user_id\":\"bob\",\"status\":\"online\"");
    assert_true(client_has(&alice, "\"user_id\":\"zed\",\"status\":\"unknown\""));
    assert_true(client_has(&alice, "\"stale\":true"));
    client_send(&alice, "{\"type\":\"subscribe_presence\",\"user_ids\":[\"bob\",\"zed\"]}");
    client_expect(&alice, "error");
    assert_int_equal(world_metric(&world, METRIC_SUBSCRIPTIONS), 0);
}

/* Without the viewer's own graph their blocks are unknown. */
static void a_viewer_without_a_cached_graph_is_no_contact(void **unused)
{
    (void)unused;
    show("bob", LEDGER_VISIBLE_CONTACTS_ONLY, LEDGER_VISIBLE_CONTACTS_ONLY);
    client_expect(&alice, "presence_changed");
    graph_reader_drop(&world.presence->graphs, SLICE("alice"));
    world.ledger.failing = LEDGER_UNAVAILABLE;
    query(&alice, "\"bob\"");
    expect_seen(&alice, "not_contacts");
}

/* Found by the simulator: ledger_power, seeds 12 and 17. */
static void a_view_that_the_cache_hides_is_shown_when_the_ledger_answers(void **unused)
{
    (void)unused;
    show("bob", LEDGER_VISIBLE_CONTACTS_ONLY, LEDGER_VISIBLE_CONTACTS_ONLY);
    client_expect(&alice, "presence_changed");
    graph_reader_drop(&world.presence->graphs, SLICE("alice"));
    world.ledger.failing = LEDGER_UNAVAILABLE;
    client_send(&alice, "{\"type\":\"subscribe_presence\",\"user_ids\":[\"bob\"]}");
    expect_seen(&alice, "not_contacts");
    world_advance(&world, 3000);
    client_expect_nothing(&alice);
    world.ledger.failing = LEDGER_OK;
    world_advance(&world, 1500);
    client_expect(&alice, "presence_changed");
    assert_true(client_has(&alice, "\"status\":\"online\""));
}

static void contacts_may_call_and_others_may_not_without_the_ledger(void **unused)
{
    (void)unused;
    show("bob", LEDGER_VISIBLE_EVERYONE, LEDGER_VISIBLE_EVERYONE);
    client_expect(&alice, "presence_changed");
    world.ledger.failing = LEDGER_UNAVAILABLE;
    client_send(&carol, "{\"type\":\"call_request\",\"to\":\"bob\"}");
    client_expect(&carol, "error");
    assert_true(client_has(&carol, "CALL_UNAVAILABLE"));
    client_expect_nothing(&bob);
    client_send(&alice, "{\"type\":\"call_request\",\"to\":\"bob\"}");
    client_expect(&alice, "call_ringing");
    client_expect(&bob, "call_incoming");
}

static void a_dropped_graph_is_not_used(void **unused)
{
    (void)unused;
    world.ledger.failing = LEDGER_UNAVAILABLE;
    world.ledger.holding = true;
    query(&alice, "\"bob\"");
    world_settle(&world);
    graph_reader_drop(&world.presence->graphs, SLICE("bob"));
    world.ledger.holding = false;
    fake_ledger_release_all(&world.ledger);
    client_expect(&alice, "error");
}

/* ---- never more than the ledger would show ---- */

/* Returns the status and last seen in a snapshot of one user, or "unknown". */
static void note(struct client *client, char out[64])
{
    client_expect(client, "presence_snapshot");
    bool seen = client_has(client, "\"status\":\"offline\"");
    snprintf(out, 64, "%s%s", seen ? "offline" : "unknown",
             client_has(client, "\"last_seen\":null") ? "" : " seen");
}

static void relate(bool contacts, bool by_bob, bool by_alice)
{
    world.ledger.contact_count = 0;
    world.ledger.block_count = 0;
    fake_ledger_befriend(&world.ledger, "alice", "dave"); /* so that both graphs are cached */
    fake_ledger_befriend(&world.ledger, "bob", "dave");
    if (contacts)
        fake_ledger_befriend(&world.ledger, "alice", "bob");
    if (by_bob)
        fake_ledger_block(&world.ledger, "bob", "alice");
    if (by_alice)
        fake_ledger_block(&world.ledger, "alice", "bob");
}

static void compare(unsigned presence, unsigned last_seen, unsigned relation)
{
    char by_ledger[64], by_cache[64];
    world_advance(&world, 100); /* commands are limited */
    relate(relation & 1, relation & 2, relation & 4);
    cache("alice");
    show("bob", (enum ledger_visibility)presence, (enum ledger_visibility)last_seen);
    skip_messages(&alice);
    query(&alice, "\"bob\"");
    note(&alice, by_ledger);
    world.ledger.failing = LEDGER_UNAVAILABLE;
    query(&alice, "\"bob\"");
    note(&alice, by_cache);
    world.ledger.failing = LEDGER_OK;
    if (strcmp(by_ledger, by_cache) != 0)
        fail_msg("settings %u %u, relation %u: the ledger shows %s, the cache %s", presence,
                 last_seen, relation, by_ledger, by_cache);
}

static void cached_profiles_never_show_more_than_the_ledger(void **unused)
{
    (void)unused;
    client_hang_up(&bob); /* offline, so that last seen is set */
    world_settle(&world);
    for (unsigned presence = 0; presence < 3; presence++)
        for (unsigned last_seen = 0; last_seen < 3; last_seen++)
            for (unsigned relation = 0; relation < 8; relation++)
                compare(presence, last_seen, relation);
    client_connect(&bob, &world, "bob");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(contacts_see_each_other_without_the_ledger),
        TEST(every_status_without_an_answer_uses_the_cache),
        TEST(subscriptions_are_accepted),
        TEST(a_user_without_a_cached_graph_is_unknown),
        TEST(a_viewer_without_a_cached_graph_is_no_contact),
        TEST(a_view_that_the_cache_hides_is_shown_when_the_ledger_answers),
        TEST(contacts_may_call_and_others_may_not_without_the_ledger),
        TEST(a_dropped_graph_is_not_used),
        TEST(cached_profiles_never_show_more_than_the_ledger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
