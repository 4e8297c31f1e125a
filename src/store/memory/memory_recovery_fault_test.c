/* Parks a session once for each allocation, which fails: a session that lost an event is not recovered. */
#include "store/memory/memory_recovery.h"
#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { RECOVERY_MS = 1000, NOT_RECOVERED = -1 };

/* Keeps the number of recovered events, or NOT_RECOVERED. */
static void on_session_taken(void *arg, const struct parked_session *session)
{
    *(int *)arg = session ? (int)session->event_count : NOT_RECOVERED;
}

/* Parks as many events as a session keeps and appends two more, so the first two are dropped. A client that
 * received all but the last parked event gets all three events that it missed, or nothing. */
static size_t park_and_append(alloc_fault_start fail_at, size_t n)
{
    struct clock clock = {.now_ms = 1, .wall_ms = 1};
    struct memory_recovery *recovery = memory_recovery_make(RECOVERY_MS, 7);
    struct recovery_store *store = memory_recovery_store(recovery, &clock);
    struct recovery_event events[RECOVERY_EVENTS_MAX];
    const struct slice user = SLICE("ann"), pid = SLICE("secret");
    int recovered = 0;
    for (uint64_t i = 0; i < RECOVERY_EVENTS_MAX; i++)
        events[i] = (struct recovery_event){.offset = i + 1, .id = i + 1, .frames = SLICE("kept")};
    fail_at(n);
    recovery_park(store, &(struct parked_session){.user_id = user,
                                                  .pid = pid,
                                                  .sid = SLICE("public"),
                                                  .events = events,
                                                  .event_count = RECOVERY_EVENTS_MAX});
    for (uint64_t id = 1000; id < 1002; id++)
        recovery_append(store, &user, 1,
                        &(struct recovery_event){RECOVERY_MISSED, id, SLICE("missed")});
    size_t failed = alloc_fault_off();
    recovery_take(store, user, pid, RECOVERY_EVENTS_MAX - 1, on_session_taken, &recovered);
    assert_int_equal(recovered, failed ? NOT_RECOVERED : 3);
    recovery_store_free(&store);
    memory_recovery_free(&recovery);
    return failed;
}

static void session_that_lost_an_event_is_not_recovered(void **state)
{
    (void)state;
    assert_true(alloc_fault_sweep(alloc_fault_after, park_and_append) > RECOVERY_EVENTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(session_that_lost_an_event_is_not_recovered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
