/* The memory backend against the suite that every backend must pass; and what is its own. */
#include "conformance/recovery_store_suite.h"
#include "store/memory/memory_recovery.h"
#include "support/virtual_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { WINDOW_MS = 1000 };

struct memory_backend {
    struct clock clock; /* first: see virtual_clock.h */
    struct memory_recovery *recovery;
};

static struct memory_backend the_backend;

static void start(void *context)
{
    struct memory_backend *backend = context;
    backend->clock = virtual_clock_begin();
    backend->recovery = memory_recovery_make(WINDOW_MS, 7);
    assert_non_null(backend->recovery);
}

static struct recovery_store *port(void *context)
{
    struct memory_backend *backend = context;
    struct recovery_store *store = memory_recovery_store(backend->recovery, &backend->clock);
    assert_non_null(store);
    return store;
}

static void stop(void *context)
{
    memory_recovery_free(&((struct memory_backend *)context)->recovery);
}

/* ---- what is its own ---- */

static void note(void *arg, const struct parked_session *record)
{
    *(bool *)arg = record != NULL;
}

static bool take(struct recovery_store *store, const char *user)
{
    bool found = false;
    recovery_take(store, slice_of(user), SLICE("secret"), 0, note, &found);
    return found;
}

static void park(struct recovery_store *store, const char *user)
{
    recovery_park(store, &(struct parked_session){.user_id = slice_of(user),
                                                  .pid = SLICE("secret"),
                                                  .sid = SLICE("public")});
}

static void empty_is_known_without_looking(void **unused)
{
    (void)unused;
    start(&the_backend);
    struct recovery_store *store = port(&the_backend);
    assert_true(recovery_is_empty(store));
    park(store, "ann");
    assert_false(recovery_is_empty(store));
    assert_true(take(store, "ann"));
    assert_true(recovery_is_empty(store));
    recovery_store_free(&store);
    stop(&the_backend);
}

static void a_process_keeps_so_many_sessions(void **unused)
{
    (void)unused;
    start(&the_backend);
    struct recovery_store *store = port(&the_backend);
    char user[16];
    for (int i = 0; i <= MEMORY_RECOVERY_SESSIONS_MAX; i++) {
        snprintf(user, sizeof(user), "user-%d", i);
        park(store, user);
    }
    assert_false(take(store, "user-0"));
    assert_true(take(store, "user-1"));
    recovery_store_free(&store);
    stop(&the_backend);
}

int main(void)
{
    const struct recovery_store_suite_backend backend = {
        .name = "memory_recovery",
        .context = &the_backend,
        .window_ms = WINDOW_MS,
        .start = start,
        .port = port,
        .stop = stop,
        .pass = virtual_clock_pass,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_is_known_without_looking),
        cmocka_unit_test(a_process_keeps_so_many_sessions),
    };
    return recovery_store_suite_run(&backend) +
           cmocka_run_group_tests_name("memory_recovery_own", tests, NULL, NULL);
}
