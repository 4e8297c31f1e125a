/* Runs the conformance suite on the typing store in memory, and tests its clean-up and its locks. */
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

static void start_memory_typing(void *context)
{
    struct memory_backend *backend = context;
    backend->clock = virtual_clock_begin();
    backend->typing = memory_typing_make(&(struct memory_typing_options){
        .ttl_ms = TTL_MS, .rate_per_second = RATE, .hash_seed = 42});
    assert_non_null(backend->typing);
}

static struct typing_store *make_port(void *context)
{
    struct memory_backend *backend = context;
    return memory_typing_store(backend->typing, &backend->clock);
}

static void stop_memory_typing(void *context)
{
    memory_typing_free(&((struct memory_backend *)context)->typing);
}

static void on_typing_started(void *arg, enum state_status status,
                              const struct typing_outcome *outcome)
{
    (void)arg;
    (void)outcome;
    assert_int_equal(status, STATE_OK);
}

static void start_typing(struct typing_store *store, unsigned number)
{
    char chat[16], user[16];
    struct ulid conn_id = {{1}};
    int chat_len = snprintf(chat, sizeof(chat), "chat-%u", number % 500);
    int user_len = snprintf(user, sizeof(user), "user-%u", number);
    typing_store_start(store, (struct slice){chat, (size_t)chat_len},
                       (struct slice){user, (size_t)user_len}, &conn_id, on_typing_started, NULL);
}

static void expired_notices_are_dropped_by_later_updates(void **state)
{
    (void)state;
    enum { USERS = 20000 };
    struct memory_backend backend;
    start_memory_typing(&backend);
    struct typing_store *store = make_port(&backend);
    for (unsigned i = 0; i < USERS; i++)
        start_typing(store, i);
    assert_int_equal(memory_typing_count(backend.typing), USERS);
    virtual_clock_pass(&backend, TTL_MS);
    for (unsigned i = 0; i < USERS; i++) /* other users in the same shards */
        start_typing(store, USERS + i);
    assert_int_equal(memory_typing_count(backend.typing), USERS);
    typing_store_free(&store);
    stop_memory_typing(&backend);
}

/* ---- several threads ---- */

enum { THREADS = 4, ROUNDS = 5000 };

static void *run_typist(void *arg)
{
    struct typing_store *store = arg;
    for (unsigned i = 0; i < ROUNDS; i++)
        start_typing(store, i % 1000);
    return NULL;
}

static void concurrent_updates_keep_one_record_per_user(void **state)
{
    (void)state;
    struct memory_backend backend;
    pthread_t threads[THREADS];
    struct typing_store *stores[THREADS];
    start_memory_typing(&backend);
    for (int i = 0; i < THREADS; i++) {
        stores[i] = make_port(&backend);
        assert_int_equal(pthread_create(&threads[i], NULL, run_typist, stores[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        typing_store_free(&stores[i]);
    }
    assert_int_equal(memory_typing_count(backend.typing), 1000);
    stop_memory_typing(&backend);
}

int main(void)
{
    struct memory_backend memory;
    const struct typing_store_suite_backend backend = {
        .name = "memory_typing",
        .context = &memory,
        .ttl_ms = TTL_MS,
        .interval_ms = 1000 / RATE,
        .start = start_memory_typing,
        .port = make_port,
        .stop = stop_memory_typing,
        .pass = virtual_clock_pass,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expired_notices_are_dropped_by_later_updates),
        cmocka_unit_test(concurrent_updates_keep_one_record_per_user),
    };
    return typing_store_suite_run(&backend) +
           cmocka_run_group_tests_name("memory_typing_own", tests, NULL, NULL);
}
