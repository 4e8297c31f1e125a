/* Users without a subscription: which of them get a change, with a ledger that the test controls. */
#include "presence/notify.h"

#include "presence/presence_plane.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct world world;
static struct client alice, bob, carol;

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    client_connect_three(&world, &alice, &bob, &carol);
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    client_end_world(&world, CLIENTS(&alice, &bob, &carol));
    return 0;
}

static size_t loads(void)
{
    return world.ledger.submitted[LEDGER_GRAPH];
}

static void contacts_get_a_change_and_others_do_not(void **unused)
{
    (void)unused;
    client_set_away(&bob, true);
    client_expect_change(&alice, "bob", "away");
    client_set_away(&bob, false);
    client_expect_change(&alice, "bob", "online");
    client_expect_nothing(&alice);
    client_expect_nothing(&carol);
    client_expect_nothing(&bob);
}

static void a_graph_is_loaded_once_for_many_changes(void **unused)
{
    (void)unused;
    size_t before = loads();
    for (int i = 0; i < 5; i++) {
        client_set_away(&bob, i % 2 == 0);
        client_expect(&alice, "presence_changed");
    }
    assert_int_equal(loads(), before);
    assert_int_equal(world_metric(&world, METRIC_FRIENDS_SKIPPED), 0);
}

static void changes_wait_for_one_load_in_order(void **unused)
{
    (void)unused;
    size_t before = loads();
    graph_reader_drop(&world.presence->graphs, SLICE("bob"));
    world.ledger.holding = true;
    client_set_away(&bob, true);
    client_set_away(&bob, false);
    client_set_away(&bob, true);
    client_expect_nothing(&alice);
    assert_false(graph_reader_is_idle(&world.presence->graphs));
    world.ledger.holding = false;
    fake_ledger_release_all(&world.ledger);
    world_settle(&world);
    assert_int_equal(loads(), before + 1);
    assert_true(graph_reader_is_idle(&world.presence->graphs));
    client_expect_change(&alice, "bob", "away"); /* the newest replaced the others in the queue */
    client_expect_nothing(&alice);
    assert_int_equal(world_metric(&world, METRIC_FRIENDS_SKIPPED), 0);
}

static void a_graph_loaded_before_a_drop_is_not_used(void **unused)
{
    (void)unused;
    graph_reader_drop(&world.presence->graphs, SLICE("bob"));
    world.ledger.holding = true;
    client_set_away(&bob, true); /* the ledger answers now, without carol */
    fake_ledger_befriend(&world.ledger, "bob", "carol");
    graph_reader_drop(&world.presence->graphs, SLICE("bob"));
    world.ledger.holding = false;
    fake_ledger_release_all(&world.ledger);
    world_settle(&world);
    client_expect_change(&alice, "bob", "away");
    client_expect_change(&carol, "bob", "away");
}

static void without_the_ledger_contacts_get_nothing_until_it_answers(void **unused)
{
    (void)unused;
    graph_reader_drop(&world.presence->graphs, SLICE("bob"));
    world.ledger.failing = LEDGER_UNAVAILABLE;
    client_set_away(&bob, true);
    client_expect_nothing(&alice);
    assert_int_equal(world_metric(&world, METRIC_FRIENDS_SKIPPED), 1);
    world.ledger.failing = LEDGER_OK;
    client_set_away(&bob, false);
    client_expect_change(&alice, "bob", "online");
}

static void reads_that_wait_for_a_load_are_bounded(void **unused)
{
    (void)unused;
    graph_reader_drop(&world.presence->graphs, SLICE("bob"));
    world.ledger.holding = true;
    for (int i = 0; i < GRAPH_READER_WAITING_MAX + 5; i++) {
        struct presence_change change = {.presence = {.user_id = SLICE("bob"),
                                                      .status = PRESENCE_AWAY,
                                                      .last_seen_ms = TIME_NONE,
                                                      .version = i},
                                         .timestamp_ms = i};
        notify_change(world.presence, &change);
    }
    assert_int_equal(world_metric(&world, METRIC_FRIENDS_SKIPPED), 5);
    world.ledger.holding = false;
    fake_ledger_release_all(&world.ledger);
    world_settle(&world);
    client_expect_change(&alice, "bob", "away");
}

/* ---- aged graphs ---- */

/* Wraps the world's graph store and marks every graph as aged. */
struct aging_store {
    struct graph_store store;
    struct graph_store *inner;
    graph_lookup_done done;
    void *arg;
    size_t puts, drops;
};

static struct aging_store aging;

static void return_aged(void *arg, enum state_status status, const struct graph_lookup *found)
{
    (void)arg;
    struct graph_lookup aged = *found;
    aged.aged = aged.known;
    aging.done(aging.arg, status, &aged);
}

static void aging_lookup(struct graph_store *store, struct slice user_id, graph_lookup_done done,
                         void *arg)
{
    (void)store;
    aging.done = done;
    aging.arg = arg;
    graph_lookup(aging.inner, user_id, return_aged, NULL);
}

static void aging_put(struct graph_store *store, struct slice user_id, uint64_t ticket,
                      const struct social_graph *graph)
{
    (void)store;
    aging.puts++;
    graph_put(aging.inner, user_id, ticket, graph);
}

static void aging_drop(struct graph_store *store, struct slice user_id)
{
    (void)store;
    aging.drops++;
    graph_drop(aging.inner, user_id);
}

static void aging_set_online(struct graph_store *store, struct slice user_id, bool online,
                             int64_t version)
{
    (void)store;
    graph_set_online(aging.inner, user_id, online, version);
}

static void aging_free(struct graph_store *store)
{
    (void)store;
    graph_store_free(&aging.inner);
}

static void age_all_graphs(void)
{
    static const struct graph_store_operations OPERATIONS = {
        .lookup = aging_lookup,
        .put = aging_put,
        .drop = aging_drop,
        .set_online = aging_set_online,
        .free = aging_free,
    };
    aging = (struct aging_store){.store = {&OPERATIONS}, .inner = world.presence->graphs.store};
    world.presence->graphs.store = &aging.store;
}

static void an_aged_graph_is_used_while_it_is_loaded_again(void **unused)
{
    (void)unused;
    age_all_graphs();
    size_t before = loads();
    world.ledger.holding = true;
    client_set_away(&bob, true);
    client_expect_change(&alice, "bob", "away"); /* before the ledger has answered */
    assert_int_equal(loads(), before + 1);
    client_set_away(&bob, false);
    client_expect_change(&alice, "bob", "online"); /* the ledger is read once */
    assert_int_equal(loads(), before + 1);
    world.ledger.holding = false;
    fake_ledger_release_all(&world.ledger);
    world_settle(&world);
    assert_int_equal(aging.puts, 1);
    assert_true(graph_reader_is_idle(&world.presence->graphs));
}

static void an_aged_graph_is_used_without_the_ledger(void **unused)
{
    (void)unused;
    age_all_graphs();
    world.ledger.failing = LEDGER_UNAVAILABLE;
    for (int i = 0; i < 3; i++) {
        client_set_away(&bob, i % 2 == 0);
        client_expect_change(&alice, "bob", i % 2 == 0 ? "away" : "online");
    }
    assert_int_equal(aging.puts, 0);
    assert_int_equal(world_metric(&world, METRIC_FRIENDS_SKIPPED), 0);
}

/* The drop was lost when the last contact ended. */
static void an_aged_graph_that_became_empty_is_dropped(void **unused)
{
    (void)unused;
    age_all_graphs();
    world.ledger.contact_count = 0;
    client_set_away(&bob, true);
    client_expect(&alice, "presence_changed"); /* the last change that she gets */
    world_settle(&world);
    assert_int_equal(aging.drops, 1);
    client_set_away(&bob, false);
    client_expect_nothing(&alice);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(contacts_get_a_change_and_others_do_not),
        TEST(a_graph_is_loaded_once_for_many_changes),
        TEST(changes_wait_for_one_load_in_order),
        TEST(a_graph_loaded_before_a_drop_is_not_used),
        TEST(without_the_ledger_contacts_get_nothing_until_it_answers),
        TEST(reads_that_wait_for_a_load_are_bounded),
        TEST(an_aged_graph_is_used_while_it_is_loaded_again),
        TEST(an_aged_graph_is_used_without_the_ledger),
        TEST(an_aged_graph_that_became_empty_is_dropped),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
