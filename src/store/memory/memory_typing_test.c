/* The memory backend against the suite that every backend must pass, and what is its own. */
#include "conformance/typing_store_suite.h"
#include "store/memory/memory_typing.h"
#include "support/virtual_clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { TTL_MS = 5000, RATE = 1 };

struct memory_backend {
    struct clock clock; /* first: see virtual_clock.h */
    struct memory_typing *typing;
};

static void start(void *context)
{
    struct memory_backend *backend = context;
    backend->clock = virtual_clock_begin();
    backend->typing = memory_typing_make(&(struct memory_typing_options){
        .ttl_ms = TTL_MS, .rate_per_second = RATE, .hash_seed = 42});
    assert_non_null(backend->typing);
}

static struct typing_store *port(void *context)
{
    struct memory_backend *backend = context;
    return memory_typing_store(backend->typing, &backend->clock);
}

static void stop(void *context)
{
    memory_typing_free(&((struct memory_backend *)context)->typing);
}

static void ignore_outcome(void *arg, enum state_status status,
                           const struct typing_outcome *outcome)
{
    (void)arg;
    (void)outcome;
    assert_int_equal(status, STATE_OK);
}

static void type_in(struct typing_store *store, unsigned number)
{
    char chat[16], user[16];
    struct ulid conn_id = {{1}};
    int chat_len = snprintf(chat, sizeof(chat), "chat-%u", number % 500);
    int user_len = snprintf(user, sizeof(user), "user-%u", number);
    typing_store_start(store, (struct slice){chat, (size_t)chat_len},
                       (struct slice){user, (size_t)user_len}, &conn_id, ignore_outcome, NULL);
}

static void what_is_over_is_dropped(void **state)
{
    (void)state;
    enum { USERS = 20000 };
    struct memory_backend backend;
    start(&backend);
    struct typing_store *store = port(&backend);
    for (unsigned i = 0; i < USERS; i++)
        type_in(store, i);
    assert_int_equal(memory_typing_count(backend.typing), USERS);
    virtual_clock_pass(&backend, TTL_MS);
    for (unsigned i = 0; i < USERS; i++) /* others, in the same shards */
        type_in(store, USERS + i);
    assert_int_equal(memory_typing_count(backend.typing), USERS);
    typing_store_free(&store);
    stop(&backend);
}

/* ---- several threads ---- */

enum { THREADS = 4, ROUNDS = 5000 };

static void *work(void *arg)
{
    struct typing_store *store = arg;
    for (unsigned i = 0; i < ROUNDS; i++)
        type_in(store, i % 1000);
    return NULL;
}

static void threads_share_it(void **state)
{
    (void)state;
    struct memory_backend backend;
    pthread_t threads[THREADS];
    struct typing_store *stores[THREADS];
    start(&backend);
    for (int i = 0; i < THREADS; i++) {
        stores[i] = port(&backend);
        assert_int_equal(pthread_create(&threads[i], NULL, work, stores[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        typing_store_free(&stores[i]);
    }
    assert_int_equal(memory_typing_count(backend.typing), 1000);
    stop(&backend);
}

int main(void)
{
    struct memory_backend memory;
    const struct typing_store_suite_backend backend = {
        .name = "memory_typing",
        .context = &memory,
        .ttl_ms = TTL_MS,
        .interval_ms = 1000 / RATE,
        .start = start,
        .port = port,
        .stop = stop,
        .pass = virtual_clock_pass,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_over_is_dropped),
        cmocka_unit_test(threads_share_it),
    };
    return typing_store_suite_run(&backend) +
           cmocka_run_group_tests_name("memory_typing_own", tests, NULL, NULL);
}
