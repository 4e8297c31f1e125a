/* When memory runs out, a put keeps no graph and a lookup is unavailable; neither leaves anything behind. */
#include "store/memory/memory_graph.h"
#include "store/memory/state/memory_state.h"
#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct answer {
    enum state_status status;
    bool known;
    uint64_t ticket;
    size_t contacts;
};

static void on_graph_looked_up(void *arg, enum state_status status,
                               const struct graph_lookup *lookup)
{
    struct answer *answer = arg;
    *answer = (struct answer){.status = status};
    if (status == STATE_OK)
        *answer = (struct answer){status, lookup->known, lookup->ticket,
                                  lookup->known ? lookup->graph.contacts.count : 0};
}

static struct answer look_up(struct graph_store *store)
{
    struct answer answer;
    graph_lookup(store, SLICE("user"), on_graph_looked_up, &answer);
    return answer;
}

static void failed_put_leaves_nothing_behind(void **unused)
{
    (void)unused;
    struct clock clock = {.now_ms = 1, .wall_ms = 1700000000000};
    struct memory_state *memory_state = memory_state_make(
        &(struct memory_state_options){.lease_window_ms = 1000, .offline_records_max = 100});
    struct state_store *state = memory_state_store(memory_state, &clock);
    struct memory_graphs *graphs = memory_graphs_make(
        &(struct memory_graphs_options){.contacts_total_max = 2 * GRAPH_CONTACTS_MAX});
    struct graph_store *store = memory_graphs_store(graphs, state, &clock);
    struct slice contacts[] = {SLICE("a"), SLICE("b"), SLICE("c")};
    struct social_graph graph = {.contacts = {contacts, 3}, .blocked = {contacts, 1}};
    assert_non_null(store);
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        uint64_t ticket = look_up(store).ticket;
        alloc_fault_after(n);
        graph_put(store, SLICE("user"), ticket, &graph);
        struct answer answer = look_up(store);
        failed = alloc_fault_off();
        assert_true(failed || (answer.status == STATE_OK && answer.known));
        graph_drop(store, SLICE("user"));
        assert_int_equal(memory_graphs_count(graphs).users, 0);
        assert_int_equal(memory_graphs_count(graphs).cost, 0);
    }
    graph_store_free(&store);
    memory_graphs_free(&graphs);
    state_store_free(&state);
    memory_state_free(&memory_state);
}

static void store_is_not_made_when_an_allocation_fails(void **unused)
{
    (void)unused;
    size_t n = 1;
    for (size_t failed = 1; failed > 0; n++) {
        alloc_fault_after(n);
        struct memory_graphs *graphs = memory_graphs_make(
            &(struct memory_graphs_options){.contacts_total_max = 2 * GRAPH_CONTACTS_MAX});
        failed = alloc_fault_off();
        assert_int_equal(graphs == NULL, failed > 0);
        memory_graphs_free(&graphs);
    }
    assert_true(n > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_put_leaves_nothing_behind),
        cmocka_unit_test(store_is_not_made_when_an_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
