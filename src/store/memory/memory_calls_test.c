/* Runs the conformance suite on the call store in memory, and tests its bound and its lock. */
#include "conformance/call_store_harness.h"
#include "store/memory/memory_calls.h"
#include "support/virtual_clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>

enum { RING_MS = 30000, GRACE_MS = 5000, WINDOW_MS = 45000 };

struct memory_backend {
    struct clock clock; /* first: see virtual_clock.h */
    struct memory_calls *calls;
};

static void start_memory_calls(void *context)
{
    struct memory_backend *backend = context;
    backend->clock = virtual_clock_begin();
    backend->calls = memory_calls_make(&(struct memory_calls_options){
        .ring_timeout_ms = RING_MS,
        .reconnect_grace_ms = GRACE_MS,
        .lease_window_ms = WINDOW_MS,
        .hash_seed = 42,
    });
    assert_non_null(backend->calls);
}

static struct call_store *make_port(void *context)
{
    struct memory_backend *backend = context;
    return memory_calls_store(backend->calls, &backend->clock);
}

static void stop_memory_calls(void *context)
{
    memory_calls_free(&((struct memory_backend *)context)->calls);
}

/* ---- ended calls are bounded ---- */

static void on_call_answered(void *arg, const struct call_answer *answer)
{
    *(enum call_result *)arg = answer->result;
}

static void on_calls_reaped(void *arg, const struct call *ended, size_t count)
{
    (void)arg;
    (void)ended;
    (void)count;
}

static void oldest_ended_calls_beyond_the_bound_are_forgotten(void **state)
{
    (void)state;
    struct memory_backend backend;
    start_memory_calls(&backend);
    struct call_store *store = make_port(&backend);
    struct call_device alice = harness_device("alice", 0, 1);
    enum call_result result;
    char id[16];
    for (int i = 0; i <= MEMORY_CALLS_ENDED_MAX; i++) {
        snprintf(id, sizeof(id), "%d", i);
        call_store_request(store, slice_of(id), &alice, SLICE("bob"), on_call_answered, &result);
        assert_int_equal(result, CALL_DONE);
        call_store_end(store, slice_of(id), alice.user_id, on_call_answered, &result);
        assert_int_equal(result, CALL_DONE);
    }
    call_store_reap(store, 1, on_calls_reaped, NULL);
    call_store_get(store, SLICE("0"), alice.user_id, on_call_answered, &result);
    assert_int_equal(result, CALL_NOT_FOUND);
    call_store_get(store, SLICE("1"), alice.user_id, on_call_answered, &result);
    assert_int_equal(result, CALL_DONE);
    call_store_free(&store);
    stop_memory_calls(&backend);
}

/* ---- threads ---- */

enum { RACERS = 4, RACES = 500 };

struct race {
    struct memory_backend *backend;
    unsigned number;
    pthread_barrier_t *gate;
    atomic_int *answered;
    atomic_int *ended;
};

static void *run_race(void *arg)
{
    const struct race *race = arg;
    struct call_store *store = make_port(race->backend);
    struct call_device own = harness_device("bob", race->number, race->number);
    struct call_device alice = harness_device("alice", 0, 1);
    enum call_result result;
    for (int i = 0; i < RACES; i++) {
        char id[16];
        snprintf(id, sizeof(id), "race-%d", i);
        if (race->number == 0)
            call_store_request(store, slice_of(id), &alice, SLICE("bob"), on_call_answered,
                               &result);
        pthread_barrier_wait(race->gate);
        call_store_answer(store, slice_of(id), &own, on_call_answered, &result);
        *race->answered += result == CALL_DONE;
        pthread_barrier_wait(race->gate);
        call_store_end(store, slice_of(id), race->number % 2 ? SLICE("bob") : SLICE("alice"),
                       on_call_answered, &result);
        *race->ended += result == CALL_DONE;
        pthread_barrier_wait(race->gate);
    }
    call_store_free(&store);
    return NULL;
}

static void only_one_of_several_racing_answers_and_ends_is_done(void **state)
{
    (void)state;
    struct memory_backend backend;
    struct race races[RACERS];
    pthread_t threads[RACERS];
    pthread_barrier_t gate;
    atomic_int answered = 0, ended = 0;
    start_memory_calls(&backend);
    pthread_barrier_init(&gate, NULL, RACERS);
    for (unsigned i = 0; i < RACERS; i++) {
        races[i] = (struct race){&backend, i, &gate, &answered, &ended};
        assert_int_equal(pthread_create(&threads[i], NULL, run_race, &races[i]), 0);
    }
    for (unsigned i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(answered, RACES);
    assert_int_equal(ended, RACES);
    pthread_barrier_destroy(&gate);
    stop_memory_calls(&backend);
}

int main(void)
{
    struct memory_backend memory;
    const struct call_store_suite_backend backend = {
        .name = "memory",
        .context = &memory,
        .ring_timeout_ms = RING_MS,
        .reconnect_grace_ms = GRACE_MS,
        .lease_window_ms = WINDOW_MS,
        .start = start_memory_calls,
        .port = make_port,
        .stop = stop_memory_calls,
        .pass = virtual_clock_pass,
        .wall_ms = virtual_clock_wall_ms,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oldest_ended_calls_beyond_the_bound_are_forgotten),
        cmocka_unit_test(only_one_of_several_racing_answers_and_ends_is_done),
    };
    return call_store_suite_run(&backend) + cmocka_run_group_tests(tests, NULL, NULL);
}
