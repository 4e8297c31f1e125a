/* The budget store on Redis, on a single server and on a cluster: the suite of all backends, and tests of its own. */
#include "conformance/budget_store_suite.h"
#include "store/redis/redis_budget.h"
#include "support/redis_fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct redis_fleet the_fleet;

static struct budget_store *make_store(struct redis_fleet *fleet, size_t client,
                                       const struct clock *clock)
{
    struct budget_store *store = redis_budget_make(
        &(struct redis_budget_options){.client = fleet->clients[client], .clock = clock});
    assert_non_null(store);
    return store;
}

static struct budget_store *make_port(void *context)
{
    struct redis_fleet *fleet = context;
    return make_store(fleet, redis_fleet_next_client(fleet), &fleet->clock);
}

static void stop(void *context)
{
    redis_fleet_settle(context, 1);
}

/* ---- tests of its own ---- */

struct answers {
    size_t count;
    size_t failed;
    struct budget_outcome outcome;
};

static void on_taken(void *arg, enum state_status status, const struct budget_outcome *outcome)
{
    struct answers *answers = arg;
    answers->count++;
    answers->failed += status != STATE_OK;
    answers->outcome = *outcome;
}

static int set_up(void **state)
{
    redis_fleet_empty(&the_fleet);
    *state = &the_fleet;
    return 0;
}

static void take(struct budget_store *store, unsigned cost, struct answers *answers)
{
    struct rate rate = rate_make(60, 60 * RATE_SECOND_US, 20);
    struct budget_claim claim = {BUDGET_CHATS, SLICE("alice"), rate, cost * rate.interval_us};
    budget_store_take(store, &claim, on_taken, answers);
}

static struct slice alices_key(const struct redis_fleet *fleet)
{
    return fleet->cluster ? SLICE("budget:chats:{alice}") : SLICE("budget:chats:alice");
}

/* Without a clock the script uses the server's time. */
static void key_ends_when_the_budget_is_full(void **state)
{
    struct redis_fleet *fleet = *state;
    struct budget_store *store = make_store(fleet, 0, NULL);
    struct answers answers = {0};
    struct slice key = alices_key(fleet);
    take(store, 3, &answers);
    redis_fleet_settle(fleet, 1);
    assert_true(answers.outcome.granted);
    long left_ms = strtol(redis_fleet_ask(fleet, key, REDIS_ARGS(SLICE("PTTL"), key)), NULL, 10);
    assert_in_range(left_ms, 1000, 3000);
    budget_store_free(&store);
}

static void foreign_values_are_replaced(void **state)
{
    struct redis_fleet *fleet = *state;
    struct budget_store *store = make_store(fleet, 0, NULL);
    struct answers answers = {0};
    struct slice key = alices_key(fleet);
    redis_fleet_ask(fleet, key, REDIS_ARGS(SLICE("RPUSH"), key, SLICE("x")));
    take(store, 20, &answers);
    redis_fleet_settle(fleet, 1);
    assert_true(answers.outcome.granted);
    redis_fleet_ask(fleet, key, REDIS_ARGS(SLICE("SET"), key, SLICE("soon")));
    take(store, 20, &answers);
    redis_fleet_settle(fleet, 1);
    assert_true(answers.outcome.granted);
    redis_fleet_ask(fleet, key,
                    REDIS_ARGS(SLICE("SET"), key, SLICE("9e15"))); /* far in the future */
    take(store, 1, &answers);
    redis_fleet_settle(fleet, 1);
    assert_false(answers.outcome.granted);
    assert_in_range(answers.outcome.retry_after_ms, 1, 1000);
    assert_int_equal(answers.failed, 0);
    budget_store_free(&store);
}

static void operation_completes_after_the_store_is_freed(void **state)
{
    struct redis_fleet *fleet = *state;
    struct budget_store *store = make_store(fleet, 0, &fleet->clock);
    struct answers answers = {0};
    take(store, 1, &answers);
    budget_store_free(&store);
    redis_fleet_settle(fleet, 1);
    assert_int_equal(answers.count, 1);
}

static void without_an_answer_the_store_cannot_tell(void **state)
{
    struct redis_fleet *fleet = *state;
    struct budget_store *store = make_store(fleet, 0, NULL);
    struct answers answers = {0};
    redis_fleet_kill(fleet);
    take(store, 1, &answers);
    worker_loop_run(&fleet->worker, 200);
    assert_int_equal(answers.count, 1);
    assert_int_equal(answers.failed, 1);
    budget_store_free(&store);
}

static int run(bool cluster)
{
    const struct budget_store_suite_backend backend = {
        .name = cluster ? "redis_budget_cluster" : "redis_budget",
        .context = &the_fleet,
        .start = redis_fleet_empty,
        .port = make_port,
        .stop = stop,
        .pass = redis_fleet_pass,
        .poll = redis_fleet_poll,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(key_ends_when_the_budget_is_full, set_up),
        cmocka_unit_test_setup(foreign_values_are_replaced, set_up),
        cmocka_unit_test_setup(operation_completes_after_the_store_is_freed, set_up),
        cmocka_unit_test_setup(without_an_answer_the_store_cannot_tell, set_up),
    };
    redis_fleet_open(&the_fleet, cluster);
    int failed = budget_store_suite_run(&backend) +
                 cmocka_run_group_tests_name("redis_budget_own", tests, NULL, NULL);
    redis_fleet_close(&the_fleet);
    return failed;
}

int main(void)
{
    return run(false) + run(true);
}
