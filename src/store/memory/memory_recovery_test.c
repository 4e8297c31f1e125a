/* Runs the conformance suite on the recovery store in memory, and tests its bound. */
#include "conformance/recovery_store_suite.h"
#include "store/memory/memory_recovery.h"
#include "support/virtual_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { RECOVERY_MS = 1000 };

struct memory_backend {
    struct clock clock; /* first: see virtual_clock.h */
    struct memory_recovery *recovery;
};

static struct memory_backend the_backend;

static void start_memory_recovery(void *context)
{
    struct memory_backend *backend = context;
    backend->clock = virtual_clock_begin();
    backend->recovery = memory_recovery_make(RECOVERY_MS, 7);
    assert_non_null(backend->recovery);
}

static struct recovery_store *make_port(void *context)
{
    struct memory_backend *backend = context;
    struct recovery_store *store = memory_recovery_store(backend->recovery, &backend->clock);
    assert_non_null(store);
    return store;
}

static void stop_memory_recovery(void *context)
{
    memory_recovery_free(&((struct memory_backend *)context)->recovery);
}

/* ---- tests of this backend only ---- */

static void on_session_taken(void *arg, const struct parked_session *session)
{
    *(bool *)arg = session != NULL;
}

static bool take_session(struct recovery_store *store, const char *user)
{
    bool found = false;
    recovery_take(store, slice_of(user), SLICE("secret"), 0, on_session_taken, &found);
    return found;
}

static void park_session(struct recovery_store *store, const char *user)
{
    recovery_park(store, &(struct parked_session){.user_id = slice_of(user),
                                                  .pid = SLICE("secret"),
                                                  .sid = SLICE("public")});
}

static void store_is_empty_until_a_session_is_parked(void **unused)
{
    (void)unused;
    start_memory_recovery(&the_backend);
    struct recovery_store *store = make_port(&the_backend);
    assert_true(recovery_is_empty(store));
    park_session(store, "ann");
    assert_false(recovery_is_empty(store));
    assert_true(take_session(store, "ann"));
    assert_true(recovery_is_empty(store));
    recovery_store_free(&store);
    stop_memory_recovery(&the_backend);
}

static void oldest_session_beyond_the_bound_is_dropped(void **unused)
{
    (void)unused;
    start_memory_recovery(&the_backend);
    struct recovery_store *store = make_port(&the_backend);
    char user[16];
    for (int i = 0; i <= MEMORY_RECOVERY_SESSIONS_MAX; i++) {
        snprintf(user, sizeof(user), "user-%d", i);
        park_session(store, user);
    }
    assert_false(take_session(store, "user-0"));
    assert_true(take_session(store, "user-1"));
    recovery_store_free(&store);
    stop_memory_recovery(&the_backend);
}

static void memory_of_parked_sessions_is_counted_and_the_oldest_give_way(void **unused)
{
    (void)unused;
    static const char frames[1000];
    const struct recovery_event event = {.offset = 1, .frames = {frames, sizeof(frames)}};
    start_memory_recovery(&the_backend);
    struct recovery_store *store = make_port(&the_backend);
    assert_int_equal(recovery_held_bytes(store), 0);
    park_session(store, "ann");
    park_session(store, "ben");
    size_t empty = recovery_held_bytes(store);
    recovery_append(store, (const struct slice[]){SLICE("ann")}, 1, &event);
    assert_true(recovery_held_bytes(store) >= empty + sizeof(frames));
    assert_true(recovery_shed(store, 1) >= sizeof(frames));
    assert_int_equal(recovery_held_bytes(store), empty / 2);
    assert_false(take_session(store, "ann"));
    assert_true(take_session(store, "ben"));
    assert_int_equal(recovery_held_bytes(store), 0);
    assert_int_equal(recovery_shed(store, 1), 0);
    recovery_store_free(&store);
    stop_memory_recovery(&the_backend);
}

int main(void)
{
    const struct recovery_store_suite_backend backend = {
        .name = "memory_recovery",
        .context = &the_backend,
        .recovery_ms = RECOVERY_MS,
        .start = start_memory_recovery,
        .port = make_port,
        .stop = stop_memory_recovery,
        .pass = virtual_clock_pass,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_is_empty_until_a_session_is_parked),
        cmocka_unit_test(oldest_session_beyond_the_bound_is_dropped),
        cmocka_unit_test(memory_of_parked_sessions_is_counted_and_the_oldest_give_way),
    };
    return recovery_store_suite_run(&backend) +
           cmocka_run_group_tests_name("memory_recovery_own", tests, NULL, NULL);
}
