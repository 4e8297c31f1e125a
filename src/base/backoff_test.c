#include "base/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MIN_MS = 50, MAX_MS = 1000, DRAWS = 2000 };

static struct random source;

static void expect_between(unsigned failures, int64_t least_ms, int64_t most_ms)
{
    int64_t shortest = INT64_MAX, longest = 0;
    for (int i = 0; i < DRAWS; i++) {
        int64_t drawn = backoff_ms(&source, failures, MIN_MS, MAX_MS);
        assert_in_range(drawn, least_ms, most_ms);
        shortest = drawn < shortest ? drawn : shortest;
        longest = drawn > longest ? drawn : longest;
    }
    /* The draws cover the whole range. */
    assert_true(longest - shortest >= (most_ms - least_ms) * 9 / 10);
}

static void wait_doubles_up_to_the_maximum(void **unused)
{
    (void)unused;
    random_init_seeded(&source, 1);
    expect_between(0, 25, 50);
    expect_between(1, 50, 100);
    expect_between(4, 400, 800);
    expect_between(5, 500, 1000);
    expect_between(4000000000U, 500, 1000);
}

static void extreme_bounds_do_not_overflow(void **unused)
{
    (void)unused;
    random_init_seeded(&source, 1);
    assert_true(backoff_ms(&source, 100, 1, INT64_MAX) >= INT64_MAX / 2);
    assert_in_range(backoff_ms(&source, 0, 10, 4), 2, 4);
}

static void wait_without_jitter_doubles_exactly(void **unused)
{
    (void)unused;
    static const int64_t EXPECTED_MS[] = {100, 200, 400, 800, 1000, 1000};
    for (unsigned i = 0; i < sizeof(EXPECTED_MS) / sizeof(*EXPECTED_MS); i++)
        assert_int_equal(backoff_without_jitter_ms(i, 100, 1000), EXPECTED_MS[i]);
    assert_int_equal(backoff_without_jitter_ms(4000000000U, 100, INT64_MAX), INT64_MAX);
    assert_int_equal(backoff_without_jitter_ms(4000000000U, 0, 1000), 0);
    assert_int_equal(backoff_without_jitter_ms(3, 10, 4), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_doubles_up_to_the_maximum),
        cmocka_unit_test(wait_without_jitter_doubles_exactly),
        cmocka_unit_test(extreme_bounds_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
