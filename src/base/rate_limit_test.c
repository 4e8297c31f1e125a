#include "base/rate_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool take_one(struct rate_limit *limit, uint32_t per_second, uint32_t burst, int64_t now_ms,
                     int64_t *retry_after_ms)
{
    struct rate rate = rate_make(per_second, RATE_SECOND_US, burst);
    return rate_limit_take(limit, &rate, rate.interval_us, now_ms, retry_after_ms);
}

static unsigned take_all(struct rate_limit *limit, uint32_t per_second, uint32_t burst,
                         int64_t now_ms, int64_t *retry_after_ms)
{
    unsigned taken = 0;
    while (taken < 1000 && take_one(limit, per_second, burst, now_ms, retry_after_ms))
        taken++;
    return taken;
}

static void new_limit_allows_a_full_burst(void **state)
{
    (void)state;
    for (uint32_t burst = 1; burst <= 50; burst++) {
        struct rate_limit limit = {0};
        int64_t retry_after_ms = 0;
        assert_int_equal(take_all(&limit, 10, burst, 123456, &retry_after_ms), burst);
        assert_int_equal(retry_after_ms, 100);
    }
}

static void units_return_evenly(void **state)
{
    (void)state;
    struct rate_limit limit = {0};
    int64_t retry_after_ms;
    int64_t now_ms = 5000;
    take_all(&limit, 10, 5, now_ms, &retry_after_ms);
    assert_int_equal(take_all(&limit, 10, 5, now_ms + 99, &retry_after_ms), 0);
    assert_int_equal(retry_after_ms, 1);
    assert_int_equal(take_all(&limit, 10, 5, now_ms + 100, &retry_after_ms), 1);
    assert_int_equal(take_all(&limit, 10, 5, now_ms + 350, &retry_after_ms), 2);
    assert_int_equal(take_all(&limit, 10, 5, now_ms + 1000000, &retry_after_ms), 5);
}

/* A client that waits as long as it is told is served; a millisecond earlier it is not. */
static void retry_after_is_exact(void **state)
{
    (void)state;
    static const uint32_t RATES[] = {1, 3, 7, 20, 333, 1000};
    for (size_t i = 0; i < sizeof(RATES) / sizeof(*RATES); i++) {
        struct rate_limit limit = {0};
        int64_t now_ms = 1000, retry_after_ms = 0;
        take_all(&limit, RATES[i], 3, now_ms, &retry_after_ms);
        for (int round = 0; round < 100; round++) {
            int64_t ignored_ms, wait_ms = retry_after_ms;
            assert_true(wait_ms >= 1);
            struct rate_limit earlier = limit;
            assert_false(take_one(&earlier, RATES[i], 3, now_ms + wait_ms - 1, &ignored_ms));
            now_ms += wait_ms;
            assert_true(take_one(&limit, RATES[i], 3, now_ms, &retry_after_ms));
            take_all(&limit, RATES[i], 3, now_ms, &retry_after_ms);
        }
    }
}

static void long_run_keeps_the_rate(void **state)
{
    (void)state;
    struct rate_limit limit = {0};
    int64_t retry_after_ms;
    unsigned taken = 0;
    for (int64_t now_ms = 1; now_ms <= 60000; now_ms++)
        taken += take_one(&limit, 20, 10, now_ms, &retry_after_ms);
    assert_in_range(taken, 60 * 20 + 9, 60 * 20 + 10);
}

static void refused_attempt_costs_nothing(void **state)
{
    (void)state;
    struct rate_limit limit = {0};
    int64_t retry_after_ms;
    take_all(&limit, 10, 1, 1000, &retry_after_ms);
    for (int i = 0; i < 1000; i++)
        assert_false(take_one(&limit, 10, 1, 1050, &retry_after_ms));
    assert_true(take_one(&limit, 10, 1, 1100, &retry_after_ms));
}

static void rate_of_zero_means_no_limit(void **state)
{
    (void)state;
    struct rate_limit limit = {0};
    int64_t retry_after_ms;
    assert_int_equal(take_all(&limit, 0, 1, 1000, &retry_after_ms), 1000);
}

/* An action that costs more than the whole budget is possible when the budget is full. */
static void full_budget_pays_for_anything(void **state)
{
    (void)state;
    struct rate rate = rate_make(10, RATE_SECOND_US, 5);
    struct rate_limit limit = {0};
    int64_t retry_after_ms;
    assert_true(rate_limit_take(&limit, &rate, 50 * rate.interval_us, 1000, &retry_after_ms));
    assert_false(rate_limit_take(&limit, &rate, rate.interval_us, 1000, &retry_after_ms));
    assert_int_equal(retry_after_ms, 100);
    assert_false(rate_limit_take(&limit, &rate, 50 * rate.interval_us, 1000, &retry_after_ms));
    assert_int_equal(retry_after_ms, 500);
}

static void dear_actions_take_more_of_the_budget(void **state)
{
    (void)state;
    struct rate rate = rate_make(10, RATE_SECOND_US, 5);
    struct rate_limit limit = {0};
    int64_t retry_after_ms;
    assert_true(rate_limit_take(&limit, &rate, 3 * rate.interval_us, 1000, &retry_after_ms));
    assert_false(rate_limit_take(&limit, &rate, 3 * rate.interval_us, 1000, &retry_after_ms));
    assert_int_equal(retry_after_ms, 100);
    assert_true(rate_limit_take(&limit, &rate, 2 * rate.interval_us, 1000, &retry_after_ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_limit_allows_a_full_burst),
        cmocka_unit_test(units_return_evenly),
        cmocka_unit_test(retry_after_is_exact),
        cmocka_unit_test(long_run_keeps_the_rate),
        cmocka_unit_test(refused_attempt_costs_nothing),
        cmocka_unit_test(rate_of_zero_means_no_limit),
        cmocka_unit_test(full_budget_pays_for_anything),
        cmocka_unit_test(dear_actions_take_more_of_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
