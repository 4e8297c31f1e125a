#include "ledger/breaker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The default settings. */
static const struct breaker_limits LIMITS = {.failure_threshold = 5,
                                             .probe_count = 1,
                                             .failure_window_ms = 30000,
                                             .open_duration_ms = 30000};

static int set_up(void **state)
{
    static struct breaker breaker;
    assert_true(breaker_init(&breaker, &LIMITS));
    *state = &breaker;
    return 0;
}

static int tear_down(void **state)
{
    breaker_free(*state);
    return 0;
}

static bool run_operation(struct breaker *breaker, enum breaker_result result, int64_t now_ms)
{
    uint32_t ticket;
    if (!breaker_admit(breaker, now_ms, &ticket))
        return false;
    assert_int_not_equal(ticket, 0);
    breaker_report(breaker, ticket, result, now_ms);
    return true;
}

static void open_breaker_at(struct breaker *breaker, int64_t now_ms)
{
    for (uint32_t i = 0; i < LIMITS.failure_threshold; i++)
        assert_true(run_operation(breaker, BREAKER_FAILURE, now_ms));
    assert_int_equal(breaker->state, BREAKER_OPEN);
}

static void test_breaker_opens_at_threshold(void **state)
{
    struct breaker *breaker = *state;
    for (int i = 0; i < 4; i++)
        assert_true(run_operation(breaker, BREAKER_FAILURE, 1000 + i));
    assert_int_equal(breaker->state, BREAKER_CLOSED);
    assert_true(run_operation(breaker, BREAKER_SUCCESS, 1100));
    assert_true(run_operation(breaker, BREAKER_FAILURE, 31000));
    assert_int_equal(breaker->state, BREAKER_OPEN);
    assert_false(run_operation(breaker, BREAKER_SUCCESS, 31001));
}

static void test_failures_outside_the_failure_window_do_not_count(void **state)
{
    struct breaker *breaker = *state;
    for (int i = 0; i < 100; i++) {
        assert_true(
            run_operation(breaker, BREAKER_FAILURE, i * 7501)); /* the fifth comes after 30.004 s */
        assert_int_equal(breaker->state, BREAKER_CLOSED);
    }
    int64_t now_ms = 100 * 7501;
    run_operation(breaker, BREAKER_FAILURE, now_ms);
    assert_int_equal(breaker->state, BREAKER_CLOSED);
    run_operation(breaker, BREAKER_FAILURE, now_ms); /* the last five lie within 22.503 s */
    assert_int_equal(breaker->state, BREAKER_OPEN);
}

static void test_breaker_stays_open_for_open_duration(void **state)
{
    struct breaker *breaker = *state;
    open_breaker_at(breaker, 1000);
    uint32_t ticket;
    assert_int_equal(breaker_open_for_ms(breaker, 1000), 30000);
    assert_int_equal(breaker_open_for_ms(breaker, 30999), 1);
    assert_false(breaker_admit(breaker, 30999, &ticket));
    assert_true(breaker_admit(breaker, 31000, &ticket));
    assert_int_equal(breaker->state, BREAKER_HALF_OPEN);
    assert_int_equal(breaker_open_for_ms(breaker, 31000), 0);
}

static void test_one_probe_closes_or_reopens_breaker(void **state)
{
    struct breaker *breaker = *state;
    uint32_t probe, other;
    open_breaker_at(breaker, 0);
    assert_true(breaker_admit(breaker, 30000, &probe));
    assert_false(breaker_admit(breaker, 30000, &other));
    breaker_report(breaker, probe, BREAKER_FAILURE, 30500);
    assert_int_equal(breaker->state, BREAKER_OPEN);
    assert_false(breaker_admit(breaker, 60000, &probe));
    assert_true(breaker_admit(breaker, 60500, &probe));
    breaker_report(breaker, probe, BREAKER_SUCCESS, 60600);
    assert_int_equal(breaker->state, BREAKER_CLOSED);
    for (int i = 0; i < 4; i++) /* failures from before do not count */
        assert_true(run_operation(breaker, BREAKER_FAILURE, 60600));
    assert_int_equal(breaker->state, BREAKER_CLOSED);
}

static void test_probe_without_result_allows_another(void **state)
{
    struct breaker *breaker = *state;
    uint32_t probe;
    open_breaker_at(breaker, 0);
    assert_true(run_operation(breaker, BREAKER_NEITHER, 30000));
    assert_int_equal(breaker->state, BREAKER_HALF_OPEN);
    assert_true(breaker_admit(breaker, 30000, &probe));
    assert_false(breaker_admit(breaker, 30000, &probe));
}

static void test_reports_from_an_earlier_state_are_ignored(void **state)
{
    struct breaker *breaker = *state;
    uint32_t early, late, probe;
    assert_true(breaker_admit(breaker, 0, &early));
    assert_true(breaker_admit(breaker, 0, &late));
    open_breaker_at(breaker, 0);
    breaker_report(breaker, early, BREAKER_FAILURE, 10000);
    assert_int_equal(breaker_open_for_ms(breaker, 10000), 20000);
    assert_true(breaker_admit(breaker, 30000, &probe));
    breaker_report(breaker, late, BREAKER_SUCCESS, 30000);
    assert_int_equal(breaker->state, BREAKER_HALF_OPEN);
    breaker_report(breaker, probe, BREAKER_SUCCESS, 30001);
    assert_int_equal(breaker->state, BREAKER_CLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_breaker_opens_at_threshold, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failures_outside_the_failure_window_do_not_count,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_breaker_stays_open_for_open_duration, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_one_probe_closes_or_reopens_breaker, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_probe_without_result_allows_another, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_reports_from_an_earlier_state_are_ignored, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
