#include "metrics/metrics.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static size_t bucket_after(int64_t microseconds)
{
    struct metrics metrics = {0};
    metrics_latency(&metrics, LATENCY_TYPING, microseconds);
    for (size_t i = 0; i < METRICS_HISTOGRAM_BUCKETS; i++)
        if (metrics.latencies[LATENCY_TYPING].buckets[i])
            return i;
    return SIZE_MAX;
}

static void bucket_counts_up_to_its_power_of_two(void **state)
{
    (void)state;
    assert_int_equal(bucket_after(0), 0);
    assert_int_equal(bucket_after(1), 0);
    assert_int_equal(bucket_after(2), 1);
    assert_int_equal(bucket_after(3), 2);
    assert_int_equal(bucket_after(4), 2);
    assert_int_equal(bucket_after(5), 3);
    for (size_t i = 2; i < METRICS_HISTOGRAM_BUCKETS - 1; i++) {
        assert_int_equal(bucket_after(INT64_C(1) << i), i);
        assert_int_equal(bucket_after((INT64_C(1) << i) + 1), i + 1);
    }
}

static void extreme_durations_fall_into_the_outer_buckets(void **state)
{
    (void)state;
    assert_int_equal(bucket_after(-1), 0);
    assert_int_equal(bucket_after(INT64_MIN), 0);
    assert_int_equal(bucket_after(INT64_MAX), METRICS_HISTOGRAM_BUCKETS - 1);
}

static void histogram_sums_durations(void **state)
{
    (void)state;
    struct metrics metrics = {0};
    metrics_latency(&metrics, LATENCY_PERSIST, 100);
    metrics_latency(&metrics, LATENCY_PERSIST, 28);
    metrics_latency(&metrics, LATENCY_PERSIST, -50);
    assert_int_equal(metrics.latencies[LATENCY_PERSIST].sum_us, 128);
    assert_int_equal(metrics.latencies[LATENCY_PUBLISH].sum_us, 0);
}

static void values_add_count_and_set(void **state)
{
    (void)state;
    struct metrics metrics = {0};
    metrics_count(&metrics, METRIC_HEARTBEATS);
    metrics_add(&metrics, METRIC_HEARTBEATS, 4);
    metrics_set(&metrics, METRIC_SUBSCRIPTIONS, 7);
    metrics_add(&metrics, METRIC_SUBSCRIPTIONS, -8);
    assert_int_equal(metrics.values[METRIC_HEARTBEATS], 5);
    assert_int_equal(metrics.values[METRIC_SUBSCRIPTIONS], -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bucket_counts_up_to_its_power_of_two),
        cmocka_unit_test(extreme_durations_fall_into_the_outer_buckets),
        cmocka_unit_test(histogram_sums_durations),
        cmocka_unit_test(values_add_count_and_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
