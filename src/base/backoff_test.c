#include "base/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MIN_MS = 50, MAX_MS = 1000, DRAWS = 2000 };

static struct random chance;

static void expect_between(unsigned failures, int64_t least_ms, int64_t most_ms)
{
    int64_t shortest = INT64_MAX, longest = 0;
    for (int i = 0; i < DRAWS; i++) {
        int64_t drawn = backoff_ms(&chance, failures, MIN_MS, MAX_MS);
        assert_in_range(drawn, least_ms, most_ms);
        shortest = drawn < shortest ? drawn : shortest;
        longest = drawn > longest ? drawn : longest;
    }
    /* all of it is used */
    assert_true(longest - shortest >= (most_ms - least_ms) * 9 / 10);
}

static void it_doubles_up_to_the_most(void **unused)
{
    (void)unused;
    random_init_seeded(&chance, 1);
    expect_between(0, 25, 50);
    expect_between(1, 50, 100);
    expect_between(4, 400, 800);
    expect_between(5, 500, 1000);
    expect_between(4000000000U, 500, 1000);
}

static void nothing_is_too_large(void **unused)
{
    (void)unused;
    random_init_seeded(&chance, 1);
    assert_true(backoff_ms(&chance, 100, 1, INT64_MAX) >= INT64_MAX / 2);
    assert_in_range(backoff_ms(&chance, 0, 10, 4), 2, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_doubles_up_to_the_most),
        cmocka_unit_test(nothing_is_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
