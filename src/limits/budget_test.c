/* Budgets: their rates, costs, and what holds when the fleet's store refuses or cannot tell. */
#include "limits/budget.h"
#include "store/memory/memory_budget.h"
#include "support/virtual_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ALICE SLICE("alice")

/* A fleet's store that answers what the test says, now or later. */
struct fake_fleet {
    struct budget_store store;
    enum state_status status;
    struct budget_outcome outcome;
    size_t taken;
    bool is_slow;
    budget_take_done done;
    void *arg;
};

struct fixture {
    struct clock clock; /* first: see virtual_clock.h */
    struct memory_budget *memory;
    struct metrics metrics;
    struct budgets budgets;
    struct fake_fleet fleet;
    struct budget_outcome answer;
    size_t answers;
};

static void fake_fleet_take(struct budget_store *store, const struct budget_claim *claim,
                            budget_take_done done, void *arg)
{
    struct fake_fleet *fleet = (struct fake_fleet *)store;
    (void)claim;
    fleet->taken++;
    fleet->done = done;
    fleet->arg = arg;
    if (!fleet->is_slow)
        done(arg, fleet->status, &fleet->outcome);
}

static const struct budget_store_operations FAKE_FLEET = {.take = fake_fleet_take};

static const struct config_limits LIMITS = {
    .messages_per_second_per_user = 30,
    .messages_per_second_per_user_burst = 60,
    .contact_requests_per_hour = 60,
    .contact_requests_per_hour_burst = 20,
    .chats_per_hour = 60,
    .chats_per_hour_burst = 20,
    .settings_per_minute = 0,
    .settings_per_minute_burst = 30,
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.clock = virtual_clock_begin(),
                               .memory = memory_budget_make(1),
                               .fleet = {.store = {&FAKE_FLEET}, .outcome = {.granted = true}}};
    fixture.budgets.local = memory_budget_store(fixture.memory, &fixture.clock);
    fixture.budgets.metrics = &fixture.metrics;
    budgets_init(&fixture.budgets, &LIMITS);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    budget_store_free(&fixture->budgets.local);
    memory_budget_free(&fixture->memory);
    return 0;
}

static unsigned take_all(struct fixture *fixture, enum budget_class budget, unsigned cost)
{
    unsigned taken = 0;
    int64_t retry_after_ms;
    while (taken < 1000 && budget_take(&fixture->budgets, budget, ALICE, cost, &retry_after_ms))
        taken++;
    return taken;
}

static void on_budget_asked(void *arg, const struct budget_outcome *outcome)
{
    struct fixture *fixture = arg;
    fixture->answers++;
    fixture->answer = *outcome;
}

static bool ask(struct fixture *fixture)
{
    budget_ask(&fixture->budgets, BUDGET_CONTACT_REQUESTS, ALICE, BUDGET_ONE, on_budget_asked,
               fixture);
    return fixture->answer.granted;
}

/* ---- tests ---- */

static void burst_is_granted_and_the_rest_is_counted_as_refused(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(take_all(fixture, BUDGET_MESSAGES, BUDGET_ONE), 60);
    assert_int_equal(fixture->metrics.values[METRIC_LIMITS_REFUSED_MESSAGES], 1);
    assert_int_equal(fixture->metrics.values[METRIC_RATE_LIMITED], 1);
    virtual_clock_pass(fixture, 1000);
    assert_int_equal(take_all(fixture, BUDGET_MESSAGES, BUDGET_ONE), 30);
}

static void forgotten_user_has_full_budgets_here_and_in_the_fleet(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(take_all(fixture, BUDGET_MESSAGES, BUDGET_ONE), 60);
    assert_int_equal(take_all(fixture, BUDGET_CHATS, BUDGET_ONE), 20);
    fixture->budgets.fleet = &fixture->fleet.store;
    budgets_forget(&fixture->budgets, ALICE);
    assert_int_equal(fixture->fleet.taken,
                     2); /* contact requests and chats; settings have no limit */
    assert_int_equal(take_all(fixture, BUDGET_MESSAGES, BUDGET_ONE), 60);
    assert_int_equal(take_all(fixture, BUDGET_CHATS, BUDGET_ONE), 20);
}

static void zero_means_no_limit(void **state)
{
    assert_int_equal(take_all(*state, BUDGET_SETTINGS, BUDGET_ONE), 1000);
}

static void dear_actions_cost_more_and_cheap_ones_less(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(take_all(fixture, BUDGET_CHATS, 5 * BUDGET_ONE), 4);
    virtual_clock_pass(fixture, 3600000);
    assert_int_equal(take_all(fixture, BUDGET_CHATS, BUDGET_ONE / 10), 200);
    virtual_clock_pass(fixture, 3600000);
    assert_int_equal(take_all(fixture, BUDGET_CHATS, 1000 * BUDGET_ONE), 1);
}

static void query_costs_by_the_users_it_names(void **state)
{
    (void)state;
    assert_int_equal(budget_cost_of_users(1), BUDGET_ONE);
    assert_int_equal(budget_cost_of_users(24), BUDGET_ONE);
    assert_int_equal(budget_cost_of_users(100), 5 * BUDGET_ONE);
}

static void fleet_may_refuse_what_the_process_would_grant(void **state)
{
    struct fixture *fixture = *state;
    fixture->budgets.fleet = &fixture->fleet.store;
    assert_true(ask(fixture));
    fixture->fleet.outcome = (struct budget_outcome){false, 1234};
    assert_false(ask(fixture));
    assert_int_equal(fixture->answer.retry_after_ms, 1234);
    assert_int_equal(fixture->answers, 2);
    assert_int_equal(fixture->metrics.values[METRIC_LIMITS_REFUSED_CONTACT_REQUESTS], 1);
}

static void flood_does_not_reach_the_fleet(void **state)
{
    struct fixture *fixture = *state;
    fixture->budgets.fleet = &fixture->fleet.store;
    for (int i = 0; i < 500; i++)
        ask(fixture);
    assert_int_equal(fixture->answers, 500);
    assert_int_equal(fixture->fleet.taken, 20);
}

static void process_decides_when_the_fleet_cannot_tell(void **state)
{
    struct fixture *fixture = *state;
    unsigned granted = 0;
    fixture->budgets.fleet = &fixture->fleet.store;
    fixture->fleet.outcome = (struct budget_outcome){0};
    for (int i = 0; i < 100; i++) {
        fixture->fleet.status = i % 2 ? STATE_UNAVAILABLE : STATE_UNKNOWN;
        granted += ask(fixture);
    }
    assert_int_equal(granted, 20);
}

static void answer_of_the_fleet_may_come_later(void **state)
{
    struct fixture *fixture = *state;
    fixture->budgets.fleet = &fixture->fleet.store;
    fixture->fleet.is_slow = true;
    ask(fixture);
    assert_int_equal(fixture->answers, 0);
    fixture->fleet.done(fixture->fleet.arg, STATE_OK, &fixture->fleet.outcome);
    assert_int_equal(fixture->answers, 1);
    assert_true(fixture->answer.granted);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(burst_is_granted_and_the_rest_is_counted_as_refused),
        TEST(forgotten_user_has_full_budgets_here_and_in_the_fleet),
        TEST(zero_means_no_limit),
        TEST(dear_actions_cost_more_and_cheap_ones_less),
        TEST(query_costs_by_the_users_it_names),
        TEST(fleet_may_refuse_what_the_process_would_grant),
        TEST(flood_does_not_reach_the_fleet),
        TEST(process_decides_when_the_fleet_cannot_tell),
        TEST(answer_of_the_fleet_may_come_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
