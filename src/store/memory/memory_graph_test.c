/* Runs the conformance suite on the graph store in memory, and tests its bounds, pins and lock. */
#include "conformance/graph_store_suite.h"
#include "store/memory/memory_graph.h"
#include "store/memory/state/memory_state.h"
#include "support/virtual_clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WINDOW_MS = 60000, CONTACTS_TOTAL_MAX = 20000, THREADS = 3, THREAD_STEPS = 3000 };

struct memory_backend {
    struct clock clock; /* first: see virtual_clock.h */
    struct memory_state *memory_state;
    struct state_store *state;
    struct memory_graphs *graphs;
    struct graph_store *ports[GRAPH_STORE_SUITE_PORTS];
};

static void start_memory_graphs(void *context)
{
    struct memory_backend *backend = context;
    backend->clock = virtual_clock_begin();
    backend->memory_state = memory_state_make(&(struct memory_state_options){
        .lease_window_ms = WINDOW_MS,
        .offline_records_max = 100000,
        .hash_seed = 42,
        .started_at_ms = backend->clock.wall_ms,
    });
    backend->graphs = memory_graphs_make(
        &(struct memory_graphs_options){.contacts_total_max = CONTACTS_TOTAL_MAX, .hash_seed = 42});
    assert_non_null(backend->memory_state);
    assert_non_null(backend->graphs);
    backend->state = memory_state_store(backend->memory_state, &backend->clock);
    for (size_t i = 0; i < GRAPH_STORE_SUITE_PORTS; i++) {
        backend->ports[i] = memory_graphs_store(backend->graphs, backend->state, &backend->clock);
        assert_non_null(backend->ports[i]);
    }
}

static struct graph_store *port(void *context, size_t index)
{
    return ((struct memory_backend *)context)->ports[index];
}

static struct state_store *get_state_port(void *context)
{
    return ((struct memory_backend *)context)->state;
}

static void stop_memory_graphs(void *context)
{
    struct memory_backend *backend = context;
    for (size_t i = 0; i < GRAPH_STORE_SUITE_PORTS; i++)
        graph_store_free(&backend->ports[i]);
    memory_graphs_free(&backend->graphs);
    state_store_free(&backend->state);
    memory_state_free(&backend->memory_state);
}

/* ---- bounds ---- */

static int set_up(void **state)
{
    struct memory_backend *backend = malloc(sizeof(*backend));
    assert_non_null(backend);
    start_memory_graphs(backend);
    *state = backend;
    return 0;
}

static int tear_down(void **state)
{
    stop_memory_graphs(*state);
    free(*state);
    return 0;
}

struct answer {
    bool known;
    uint64_t ticket;
    size_t contacts;
};

static void on_graph_looked_up(void *arg, enum state_status status,
                               const struct graph_lookup *lookup)
{
    assert_int_equal(status, STATE_OK);
    *(struct answer *)arg = (struct answer){lookup->known, lookup->ticket,
                                            lookup->known ? lookup->graph.contacts.count : 0};
}

static struct answer look_up(struct graph_store *store, struct slice user)
{
    struct answer answer;
    graph_lookup(store, user, on_graph_looked_up, &answer);
    return answer;
}

static struct slice name(char text[24], const char *prefix, unsigned number)
{
    return (struct slice){text, (size_t)snprintf(text, 24, "%s-%u", prefix, number)};
}

/* Puts a graph with `count` numbered contacts from `first` on. */
static void put_graph(struct graph_store *store, struct slice user, unsigned first, size_t count)
{
    char(*texts)[24] = malloc(count * sizeof(*texts));
    struct slice *ids = malloc(count * sizeof(*ids));
    for (unsigned i = 0; i < count; i++)
        ids[i] = name(texts[i], "contact", first + i);
    graph_put(store, user, look_up(store, user).ticket,
              &(struct social_graph){.contacts = {ids, count}});
    free(texts);
    free(ids);
}

static void graphs_of_offline_users_are_evicted_first(void **state)
{
    struct memory_backend *backend = *state;
    struct graph_store *store = backend->ports[0];
    const size_t count = 6000; /* three of them fit */
    put_graph(store, SLICE("here"), 0, count);
    graph_set_online(store, SLICE("here"), true, INT64_MAX);
    put_graph(store, SLICE("left-first"), 10000, count);
    backend->clock.now_ms++;
    put_graph(store, SLICE("left-later"), 20000, count);
    put_graph(store, SLICE("new"), 30000, count);
    assert_true(look_up(store, SLICE("here")).known);
    assert_false(look_up(store, SLICE("left-first")).known);
    assert_true(look_up(store, SLICE("left-later")).known);
    assert_true(look_up(store, SLICE("new")).known);
    struct memory_graphs_counts counts = memory_graphs_count(backend->graphs);
    assert_int_equal(counts.graphs, 3);
    assert_in_range(counts.cost, 3 * count, CONTACTS_TOTAL_MAX);
}

static void least_recently_used_graph_of_online_users_is_evicted_next(void **state)
{
    struct memory_backend *backend = *state;
    struct graph_store *store = backend->ports[0];
    char text[24];
    for (unsigned i = 0; i < 3; i++) {
        put_graph(store, name(text, "here", i), 10000 * i, 6000);
        graph_set_online(store, name(text, "here", i), true, INT64_MAX);
    }
    look_up(store, SLICE("here-0"));
    put_graph(store, SLICE("new"), 30000, 6000);
    assert_true(look_up(store, SLICE("here-0")).known);
    assert_false(look_up(store, SLICE("here-1")).known);
    assert_true(look_up(store, SLICE("here-2")).known);
}

static void contacts_beyond_the_bound_are_left_out(void **state)
{
    struct memory_backend *backend = *state;
    struct graph_store *store = backend->ports[0];
    put_graph(store, SLICE("popular"), 0, GRAPH_CONTACTS_MAX + 100);
    assert_true(look_up(store, SLICE("popular")).known);
    assert_int_equal(memory_graphs_count(backend->graphs).users, GRAPH_CONTACTS_MAX + 1);
}

static void dropped_graphs_leave_no_users_behind(void **state)
{
    struct memory_backend *backend = *state;
    char text[24];
    for (unsigned i = 0; i < 5; i++)
        put_graph(backend->ports[0], name(text, "user", i), 100 * i, 1000);
    assert_int_equal(memory_graphs_count(backend->graphs).users, 1400 + 5);
    for (unsigned i = 0; i < 5; i++)
        graph_drop(backend->ports[1], name(text, "user", i));
    struct memory_graphs_counts counts = memory_graphs_count(backend->graphs);
    assert_int_equal(counts.graphs, 0);
    assert_int_equal(counts.users, 0);
    assert_int_equal(counts.cost, 0);
}

/* Drops the graph that the lookup returns, which must last until this completion returns. */
static void on_graph_looked_up_drop_it(void *arg, enum state_status status,
                                       const struct graph_lookup *lookup)
{
    assert_int_equal(status, STATE_OK);
    graph_drop(arg, SLICE("user"));
    assert_int_equal(lookup->graph.contacts.count, 1);
    assert_true(slice_is(lookup->graph.contacts.ids[0], "contact-7"));
}

static void dropped_graph_lasts_until_its_lookup_completes(void **state)
{
    struct memory_backend *backend = *state;
    put_graph(backend->ports[0], SLICE("user"), 0, 10);
    graph_set_online(backend->ports[0], SLICE("contact-7"), true, INT64_MAX);
    graph_lookup(backend->ports[0], SLICE("user"), on_graph_looked_up_drop_it, backend->ports[1]);
    assert_int_equal(memory_graphs_count(backend->graphs).users, 0);
}

/* ---- threads ---- */

struct racer {
    struct memory_backend *backend;
    unsigned number;
};

static void on_transition_set_online(void *arg, enum state_status status,
                                     const struct state_transition *transition)
{
    (void)status;
    graph_set_online(arg, transition->presence.user_id,
                     transition->presence.status != PRESENCE_OFFLINE, transition->presence.version);
}

/* Opens and closes leases, puts and drops graphs of users who are shared by all threads. */
static void *run_racer(void *arg)
{
    struct racer *racer = arg;
    struct memory_backend *backend = racer->backend;
    struct clock clock = virtual_clock_begin();
    struct state_store *state = memory_state_store(backend->memory_state, &clock);
    struct graph_store *store = memory_graphs_store(backend->graphs, state, &clock);
    char text[24], peer[24];
    for (unsigned i = 0; i < THREAD_STEPS; i++) {
        struct slice user = name(text, "racer", i % 5);
        struct slice other = name(peer, "racer", (i + racer->number) % 5);
        struct lease lease = {.user_id = other, .gateway_id = SLICE("g")};
        lease.conn_id.bytes[0] = (uint8_t)racer->number;
        lease.conn_id.bytes[1] = (uint8_t)(i % 5);
        state_open(state, &lease, on_transition_set_online, store);
        struct answer answer = look_up(store, user);
        if (!answer.known)
            graph_put(store, user, answer.ticket, &(struct social_graph){.contacts = {&other, 1}});
        state_close(state, other, &lease.conn_id, on_transition_set_online, store);
        if (i % 7 == racer->number)
            graph_drop(store, user);
    }
    graph_store_free(&store);
    state_store_free(&state);
    return NULL;
}

/* At the end nobody has a lease, so nobody may be online, in whatever order the threads ran. */
static void concurrent_changes_leave_nobody_online(void **state)
{
    struct memory_backend *backend = *state;
    pthread_t threads[THREADS];
    struct racer racers[THREADS];
    char text[24];
    for (unsigned i = 0; i < THREADS; i++) {
        racers[i] = (struct racer){backend, i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_racer, &racers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(look_up(backend->ports[0], name(text, "racer", i)).contacts, 0);
        graph_drop(backend->ports[0], name(text, "racer", i));
    }
    assert_int_equal(memory_graphs_count(backend->graphs).users, 0);
}

int main(void)
{
    struct memory_backend backend;
    const struct graph_store_suite_backend suite = {
        .name = "memory",
        .context = &backend,
        .start = start_memory_graphs,
        .port = port,
        .state = get_state_port,
        .stop = stop_memory_graphs,
        .pass = virtual_clock_pass,
    };
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(graphs_of_offline_users_are_evicted_first),
        TEST(least_recently_used_graph_of_online_users_is_evicted_next),
        TEST(contacts_beyond_the_bound_are_left_out),
        TEST(dropped_graphs_leave_no_users_behind),
        TEST(dropped_graph_lasts_until_its_lookup_completes),
        TEST(concurrent_changes_leave_nobody_online),
    };
#undef TEST
    int failed = graph_store_suite_run(&suite);
    return failed + cmocka_run_group_tests_name("memory_graph", tests, NULL, NULL);
}
