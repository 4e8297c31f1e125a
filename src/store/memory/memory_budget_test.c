/* Runs the conformance suite on the budget store in memory, and tests its memory, its bound and its locks. */
#include "conformance/budget_store_suite.h"
#include "store/memory/memory_budget.h"
#include "support/virtual_clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { SWEEPS = MEMORY_BUDGET_SHARDS / MEMORY_BUDGET_SWEPT_SHARDS, HOUR_MS = 3600000 };

struct memory_backend {
    struct clock clock; /* first: see virtual_clock.h */
    struct memory_budget *budget;
};

static void start_memory_budget(void *context)
{
    struct memory_backend *backend = context;
    backend->clock = virtual_clock_begin();
    backend->budget = memory_budget_make(42);
    assert_non_null(backend->budget);
}

static struct budget_store *make_port(void *context)
{
    struct memory_backend *backend = context;
    return memory_budget_store(backend->budget, &backend->clock);
}

static void stop_memory_budget(void *context)
{
    memory_budget_free(&((struct memory_backend *)context)->budget);
}

static void on_budget_taken(void *arg, enum state_status status,
                            const struct budget_outcome *outcome)
{
    assert_int_equal(status, STATE_OK);
    *(bool *)arg = outcome->granted;
}

/* A budget of 60 per hour, at most 20 at once. */
static bool take(struct budget_store *store, unsigned user, unsigned cost)
{
    char name[16];
    int len = snprintf(name, sizeof(name), "user-%u", user);
    struct rate rate = rate_make(60, 3600 * RATE_SECOND_US, 20);
    struct budget_claim claim = {BUDGET_CHATS, {name, (size_t)len}, rate, cost * rate.interval_us};
    bool granted = false;
    budget_store_take(store, &claim, on_budget_taken, &granted);
    return granted;
}

static void sweep_all(struct memory_backend *backend)
{
    for (int i = 0; i < SWEEPS; i++)
        memory_budget_sweep(backend->budget, backend->clock.now_ms);
}

static void million_users_who_act_once_leave_no_memory_behind(void **state)
{
    (void)state;
    struct memory_backend backend;
    start_memory_budget(&backend);
    struct budget_store *store = make_port(&backend);
    for (unsigned i = 0; i < 1000000; i++)
        assert_true(take(store, i, 1));
    assert_in_range(memory_budget_bytes(backend.budget), 1, 24 << 20);
    virtual_clock_pass(&backend, HOUR_MS);
    sweep_all(&backend);
    assert_int_equal(memory_budget_bytes(backend.budget), 0);
    assert_true(take(store, 1, 1));
    budget_store_free(&store);
    stop_memory_budget(&backend);
}

/* Users whose budgets are full again need no memory, although others act all the time. */
static void memory_follows_the_users_who_act_now(void **state)
{
    (void)state;
    enum { USERS = 20000, STILL_ACTIVE = 100 };
    struct memory_backend backend;
    start_memory_budget(&backend);
    struct budget_store *store = make_port(&backend);
    for (unsigned i = 0; i < USERS; i++)
        take(store, i, 1);
    size_t most = memory_budget_bytes(backend.budget);
    virtual_clock_pass(&backend, HOUR_MS / 60);
    for (unsigned i = 0; i < STILL_ACTIVE; i++)
        take(store, i, 20);
    sweep_all(&backend);
    assert_true(memory_budget_bytes(backend.budget) < most / 16);
    for (unsigned i = 0; i < STILL_ACTIVE; i++) /* their budgets survive the sweep */
        assert_false(take(store, i, 1));
    budget_store_free(&store);
    stop_memory_budget(&backend);
}

/* An attacker with many tokens fills the table: the one who exhausted a budget is not forgotten. */
static void full_table_keeps_those_who_used_most(void **state)
{
    (void)state;
    enum { FLOODERS = 100, OTHERS = 4000000 };
    struct memory_backend backend;
    start_memory_budget(&backend);
    struct budget_store *store = make_port(&backend);
    for (unsigned i = 0; i < FLOODERS; i++)
        assert_true(take(store, OTHERS + i, 20));
    for (unsigned i = 0; i < OTHERS; i++)
        assert_true(take(store, i, 1));
    assert_true(memory_budget_bytes(backend.budget) <= 24 << 20);
    for (unsigned i = 0; i < FLOODERS; i++)
        assert_false(take(store, OTHERS + i, 1));
    budget_store_free(&store);
    stop_memory_budget(&backend);
}

/* ---- several threads ---- */

enum { THREADS = 4, ROUNDS = 5000, SHARED_USERS = 100 };

struct taker {
    struct budget_store *store;
    unsigned granted;
};

static void *run_taker(void *arg)
{
    struct taker *taker = arg;
    for (unsigned i = 0; i < ROUNDS; i++)
        taker->granted += take(taker->store, i % SHARED_USERS, 1);
    return NULL;
}

static void workers_share_a_budget(void **state)
{
    (void)state;
    struct memory_backend backend;
    struct taker takers[THREADS];
    pthread_t threads[THREADS];
    unsigned granted = 0;
    start_memory_budget(&backend);
    for (int i = 0; i < THREADS; i++) {
        takers[i] = (struct taker){.store = make_port(&backend)};
        assert_int_equal(pthread_create(&threads[i], NULL, run_taker, &takers[i]), 0);
    }
    sweep_all(&backend);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        granted += takers[i].granted;
        budget_store_free(&takers[i].store);
    }
    assert_int_equal(granted, 20 * SHARED_USERS);
    stop_memory_budget(&backend);
}

int main(void)
{
    struct memory_backend memory;
    const struct budget_store_suite_backend backend = {
        .name = "memory_budget",
        .context = &memory,
        .start = start_memory_budget,
        .port = make_port,
        .stop = stop_memory_budget,
        .pass = virtual_clock_pass,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(million_users_who_act_once_leave_no_memory_behind),
        cmocka_unit_test(memory_follows_the_users_who_act_now),
        cmocka_unit_test(full_table_keeps_those_who_used_most),
        cmocka_unit_test(workers_share_a_budget),
    };
    return budget_store_suite_run(&backend) +
           cmocka_run_group_tests_name("memory_budget_own", tests, NULL, NULL);
}
