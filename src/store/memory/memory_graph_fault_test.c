/* Without memory a circle is not kept, or an audience not known; nothing is lost or left behind. */
#include "store/memory/memory_graph.h"
#include "store/memory/memory_state.h"
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

static void keep(void *arg, enum state_status status, const struct circle_audience *audience)
{
    struct answer *answer = arg;
    *answer = (struct answer){.status = status};
    if (status == STATE_OK)
        *answer = (struct answer){status, audience->known, audience->ticket,
                                  audience->known ? audience->circle.contacts.count : 0};
}

static struct answer ask(struct circle_store *store)
{
    struct answer answer;
    circle_audience(store, SLICE("user"), keep, &answer);
    return answer;
}

static void whatever_fails_the_next_try_works(void **unused)
{
    (void)unused;
    struct clock clock = {.now_ms = 1, .wall_ms = 1700000000000};
    struct memory_state *memory_state = memory_state_make(
        &(struct memory_state_options){.lease_window_ms = 1000, .offline_records_max = 100});
    struct state_store *state = memory_state_store(memory_state, &clock);
    struct memory_circles *circles = memory_circles_make(
        &(struct memory_circles_options){.contacts_total_max = 2 * CIRCLE_CONTACTS_MAX});
    struct circle_store *store = memory_circles_store(circles, state, &clock);
    struct slice contacts[] = {SLICE("a"), SLICE("b"), SLICE("c")};
    struct circle circle = {.contacts = {contacts, 3}, .blocked = {contacts, 1}};
    assert_non_null(store);
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        uint64_t ticket = ask(store).ticket;
        alloc_fault_after(n);
        circle_put(store, SLICE("user"), ticket, &circle);
        struct answer answer = ask(store);
        failed = alloc_fault_off();
        assert_true(failed || (answer.status == STATE_OK && answer.known));
        circle_drop(store, SLICE("user"));
        assert_int_equal(memory_circles_count(circles).nodes, 0);
        assert_int_equal(memory_circles_count(circles).cost, 0);
    }
    circle_store_free(&store);
    memory_circles_free(&circles);
    state_store_free(&state);
    memory_state_free(&memory_state);
}

static void a_store_that_cannot_be_made_is_none(void **unused)
{
    (void)unused;
    size_t n = 1;
    for (size_t failed = 1; failed > 0; n++) {
        alloc_fault_after(n);
        struct memory_circles *circles = memory_circles_make(
            &(struct memory_circles_options){.contacts_total_max = 2 * CIRCLE_CONTACTS_MAX});
        failed = alloc_fault_off();
        assert_int_equal(circles == NULL, failed > 0);
        memory_circles_free(&circles);
    }
    assert_true(n > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_fails_the_next_try_works),
        cmocka_unit_test(a_store_that_cannot_be_made_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
