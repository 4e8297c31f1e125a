/* Takes budgets while every allocation from some point on fails: users are granted more, never less, and nothing leaks. */
#include "store/memory/memory_budget.h"
#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { USERS = 2000 };

static void on_budget_taken(void *arg, enum state_status status,
                            const struct budget_outcome *outcome)
{
    assert_int_equal(status, STATE_OK);
    *(size_t *)arg += outcome->granted;
}

static void take(struct budget_store *store, unsigned user, size_t *granted)
{
    char name[16];
    int len = snprintf(name, sizeof(name), "user-%u", user);
    struct rate rate = rate_make(1, RATE_SECOND_US, 1);
    struct budget_claim claim = {BUDGET_CHATS, {name, (size_t)len}, rate, rate.interval_us};
    budget_store_take(store, &claim, on_budget_taken, granted);
}

static size_t take_twice_each(alloc_fault_start fail_at, size_t n)
{
    struct clock clock = {.now_ms = 1, .wall_ms = 1};
    struct memory_budget *budget = memory_budget_make(7);
    struct budget_store *store = memory_budget_store(budget, &clock);
    size_t first = 0, second = 0;
    fail_at(n);
    for (unsigned i = 0; i < USERS; i++)
        take(store, i, &first);
    for (unsigned i = 0; i < USERS; i++)
        take(store, i, &second);
    for (size_t i = 0; i < MEMORY_BUDGET_SHARDS; i++)
        memory_budget_sweep(budget, clock.now_ms);
    size_t failed = alloc_fault_off();
    assert_int_equal(first, USERS);
    if (!failed)
        assert_int_equal(second, 0);
    budget_store_free(&store);
    memory_budget_free(&budget);
    return failed;
}

static void users_are_granted_more_without_memory_never_less(void **state)
{
    (void)state;
    assert_true(alloc_fault_sweep(alloc_fault_after, take_twice_each) > MEMORY_BUDGET_SHARDS);
    assert_true(alloc_fault_sweep(alloc_fault_from, take_twice_each) > MEMORY_BUDGET_SHARDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_are_granted_more_without_memory_never_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
