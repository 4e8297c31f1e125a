/* Lateness of frames: what was stuck is recognised, whatever the difference between the two clocks. */
#include "aggregate/aggregate_lateness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { AHEAD_MS = 987654, PING_MS = 500 };

/* Pings for a while; returns when the last one was sent. */
static int64_t ping_for(struct aggregate_lateness *lateness, int64_t from_ms, int64_t duration_ms)
{
    int64_t at_ms = from_ms;
    for (; at_ms < from_ms + duration_ms; at_ms += PING_MS)
        assert_int_equal(aggregate_lateness_note(lateness, at_ms, at_ms + AHEAD_MS), 0);
    return at_ms;
}

static void test_clocks_that_differ_make_no_frame_late(void **unused)
{
    (void)unused;
    struct aggregate_lateness lateness = {0};
    ping_for(&lateness, 1000, 60000);
    struct aggregate_lateness behind = {0};
    assert_int_equal(aggregate_lateness_note(&behind, 5000000, 10), 0);
    assert_int_equal(aggregate_lateness_note(&behind, 5000500, 510), 0);
}

static void test_frames_that_waited_are_late_by_as_much(void **unused)
{
    (void)unused;
    struct aggregate_lateness lateness = {0};
    int64_t at_ms = ping_for(&lateness, 1000, 30000);
    /* The receiver stands still for two minutes; all frames of that time are read at once. */
    int64_t read_ms = at_ms + AHEAD_MS + 120000;
    assert_int_equal(aggregate_lateness_note(&lateness, at_ms, read_ms), 120000);
    assert_int_equal(aggregate_lateness_note(&lateness, at_ms + 1000, read_ms), 119000);
    assert_int_equal(aggregate_lateness_note(&lateness, at_ms + 120000, read_ms), 0);
}

static void test_a_clock_that_drifts_is_followed(void **unused)
{
    (void)unused;
    struct aggregate_lateness lateness = {0};
    int64_t sent_ms = 0;
    for (int64_t i = 0; i < 100000; i++, sent_ms += PING_MS) /* 100 parts per million, for a day */
        assert_true(aggregate_lateness_note(&lateness, sent_ms, sent_ms + sent_ms / 10000) <= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clocks_that_differ_make_no_frame_late),
        cmocka_unit_test(test_frames_that_waited_are_late_by_as_much),
        cmocka_unit_test(test_a_clock_that_drifts_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
