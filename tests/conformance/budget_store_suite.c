#include "conformance/budget_store_suite.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PORTS = 2, POLLS_MAX = 1000, BURST = 5, INTERVAL_MS = 60000 };

#define ALICE SLICE("alice")
#define BOB SLICE("bob")

struct fixture {
    const struct budget_store_suite_backend *backend;
    struct budget_store *ports[PORTS];
    bool answered;
    struct budget_outcome outcome;
};

static void on_budget_taken(void *arg, enum state_status status,
                            const struct budget_outcome *outcome)
{
    struct fixture *fixture = arg;
    assert_int_equal(status, STATE_OK);
    assert_false(fixture->answered); /* a second answer */
    fixture->answered = true;
    fixture->outcome = *outcome;
}

/* Takes `cost` units of a budget of BURST in which one unit returns in INTERVAL_MS. */
static bool take(struct fixture *fixture, size_t port, enum budget_class budget, struct slice user,
                 int cost)
{
    struct rate rate = rate_make(1, INTERVAL_MS * INT64_C(1000), BURST);
    struct budget_claim claim = {budget, user, rate, cost * rate.interval_us};
    fixture->answered = false;
    budget_store_take(fixture->ports[port], &claim, on_budget_taken, fixture);
    for (int i = 0; i < POLLS_MAX && !fixture->answered && fixture->backend->poll; i++)
        fixture->backend->poll(fixture->backend->context);
    assert_true(fixture->answered);
    return fixture->outcome.granted;
}

static void exhaust(struct fixture *fixture, enum budget_class budget, struct slice user)
{
    for (size_t i = 0; i < BURST; i++)
        assert_true(take(fixture, i % PORTS, budget, user, 1));
    assert_false(take(fixture, 0, budget, user, 1));
}

static void pass_time(struct fixture *fixture, int64_t duration_ms)
{
    fixture->backend->pass(fixture->backend->context, duration_ms);
}

/* ---- tests ---- */

static void budget_is_one_on_all_gateways(void **state)
{
    struct fixture *fixture = *state;
    exhaust(fixture, BUDGET_CHATS, ALICE);
    assert_false(take(fixture, 1, BUDGET_CHATS, ALICE, 1));
    assert_in_range(fixture->outcome.retry_after_ms, INTERVAL_MS - 1, INTERVAL_MS);
}

static void users_and_classes_have_budgets_of_their_own(void **state)
{
    struct fixture *fixture = *state;
    exhaust(fixture, BUDGET_CHATS, ALICE);
    exhaust(fixture, BUDGET_CHATS, BOB);
    exhaust(fixture, BUDGET_SETTINGS, ALICE);
    assert_true(take(fixture, 0, BUDGET_CONTACT_REQUESTS, ALICE, 1));
}

static void negative_cost_gives_back_but_never_beyond_full(void **state)
{
    struct fixture *fixture = *state;
    exhaust(fixture, BUDGET_CHATS, ALICE);
    assert_true(take(fixture, 1, BUDGET_CHATS, ALICE, -2));
    assert_true(take(fixture, 0, BUDGET_CHATS, ALICE, 2));
    assert_false(take(fixture, 0, BUDGET_CHATS, ALICE, 1));
    assert_true(take(fixture, 0, BUDGET_CHATS, ALICE, -BURST));
    assert_true(take(fixture, 1, BUDGET_CHATS, ALICE, -BURST));
    exhaust(fixture, BUDGET_CHATS, ALICE);
}

static void units_return_with_time(void **state)
{
    struct fixture *fixture = *state;
    exhaust(fixture, BUDGET_CHATS, ALICE);
    pass_time(fixture, INTERVAL_MS / 2);
    assert_false(take(fixture, 0, BUDGET_CHATS, ALICE, 1));
    assert_in_range(fixture->outcome.retry_after_ms, INTERVAL_MS / 2 - 1, INTERVAL_MS / 2);
    pass_time(fixture, INTERVAL_MS / 2);
    assert_true(take(fixture, 1, BUDGET_CHATS, ALICE, 1));
    assert_false(take(fixture, 0, BUDGET_CHATS, ALICE, 1));
    pass_time(fixture, INT64_C(100) * INTERVAL_MS);
    exhaust(fixture, BUDGET_CHATS, ALICE);
}

static void refused_action_costs_nothing(void **state)
{
    struct fixture *fixture = *state;
    assert_true(take(fixture, 0, BUDGET_CHATS, ALICE, BURST - 1));
    assert_false(take(fixture, 0, BUDGET_CHATS, ALICE, 2));
    assert_in_range(fixture->outcome.retry_after_ms, INTERVAL_MS - 1, INTERVAL_MS);
    assert_true(take(fixture, 0, BUDGET_CHATS, ALICE, 1));
}

static void full_budget_pays_for_the_dearest_action(void **state)
{
    struct fixture *fixture = *state;
    assert_true(take(fixture, 0, BUDGET_CHATS, ALICE, 100 * BURST));
    assert_false(take(fixture, 1, BUDGET_CHATS, ALICE, 1));
    assert_in_range(fixture->outcome.retry_after_ms, INTERVAL_MS - 1, INTERVAL_MS);
}

/* The longest ids, special characters, and ids whose concatenation with a class is the same. */
static void ids_may_have_any_bytes_and_full_length(void **state)
{
    struct fixture *fixture = *state;
    char longest[USER_ID_BYTES_MAX];
    memset(longest, 'x', sizeof(longest));
    struct slice wide = {longest, sizeof(longest)}, odd = {"{a}:\0*\xff", 7};
    exhaust(fixture, BUDGET_CHATS, wide);
    exhaust(fixture, BUDGET_CHATS, (struct slice){longest, sizeof(longest) - 1});
    exhaust(fixture, BUDGET_CHATS, odd);
    exhaust(fixture, BUDGET_CHATS, SLICE("{a}:"));
    exhaust(fixture, BUDGET_CHATS, SLICE("settings:bob"));
    exhaust(fixture, BUDGET_SETTINGS, BOB);
}

/* ---- against a model ---- */

static void takes_match_a_model_over_random_steps(void **state)
{
    enum { USERS = 3, STEPS = 2000 };
    static const char *const NAMES[USERS] = {"a", "b", "c"};
    struct fixture *fixture = *state;
    struct random random;
    struct rate rate = rate_make(1, INTERVAL_MS * INT64_C(1000), BURST);
    struct rate_limit limits[USERS] = {{0}};
    int64_t now_ms = 1, retry_after_ms = 0;
    random_init_seeded(&random, 7);
    for (int step = 0; step < STEPS; step++) {
        size_t user = random_below(&random, USERS), port = random_below(&random, PORTS);
        unsigned cost = 1 + (unsigned)random_below(&random, BURST + 2);
        int64_t passing_ms = (int64_t)random_below(&random, 2 * INTERVAL_MS);
        pass_time(fixture, passing_ms);
        now_ms += passing_ms;
        bool granted = take(fixture, port, BUDGET_CHATS, slice_of(NAMES[user]), cost);
        assert_int_equal(granted, rate_limit_take(&limits[user], &rate, cost * rate.interval_us,
                                                  now_ms, &retry_after_ms));
        if (!granted)
            assert_int_equal(fixture->outcome.retry_after_ms, retry_after_ms);
    }
}

/* ---- running ---- */

static const struct budget_store_suite_backend *the_backend;

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.backend = the_backend};
    the_backend->start(the_backend->context);
    for (size_t i = 0; i < PORTS; i++)
        fixture.ports[i] = the_backend->port(the_backend->context);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < PORTS; i++)
        budget_store_free(&fixture->ports[i]);
    the_backend->stop(the_backend->context);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int budget_store_suite_run(const struct budget_store_suite_backend *backend)
{
    const struct CMUnitTest tests[] = {
        TEST(budget_is_one_on_all_gateways),
        TEST(users_and_classes_have_budgets_of_their_own),
        TEST(units_return_with_time),
        TEST(negative_cost_gives_back_but_never_beyond_full),
        TEST(refused_action_costs_nothing),
        TEST(full_budget_pays_for_the_dearest_action),
        TEST(ids_may_have_any_bytes_and_full_length),
        TEST(takes_match_a_model_over_random_steps),
    };
    the_backend = backend;
    return cmocka_run_group_tests_name(backend->name, tests, NULL, NULL);
}
