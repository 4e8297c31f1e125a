/* Parked sessions with every allocation failing in turn: what could not be kept is never passed over in silence. */
#include "store/memory/memory_recovery.h"
#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { WINDOW_MS = 1000, NOT_RECOVERED = -1 };

/* How many events came back, or NOT_RECOVERED. */
static void count(void *arg, const struct parked_session *record)
{
    *(int *)arg = record ? (int)record->event_count : NOT_RECOVERED;
}

/* Parks as many as are kept and appends two more, of which either may find no memory: the first two must go. Who
 * has got all but the last that were parked then gets the other events, every one of them, or nothing. */
static size_t park_and_append(alloc_fault_start fail_at, size_t n)
{
    struct clock clock = {.now_ms = 1, .wall_ms = 1};
    struct memory_recovery *recovery = memory_recovery_make(WINDOW_MS, 7);
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
    recovery_take(store, user, pid, RECOVERY_EVENTS_MAX - 1, count, &recovered);
    assert_int_equal(recovered, failed ? NOT_RECOVERED : 3);
    recovery_store_free(&store);
    memory_recovery_free(&recovery);
    return failed;
}

static void what_was_lost_for_want_of_memory_is_not_recovered(void **state)
{
    (void)state;
    assert_true(alloc_fault_sweep(alloc_fault_after, park_and_append) > RECOVERY_EVENTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_lost_for_want_of_memory_is_not_recovered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
