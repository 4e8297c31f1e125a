#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void same_seed_gives_the_same_numbers(void **state)
{
    (void)state;
    struct random a, b;
    random_init_seeded(&a, 42);
    random_init_seeded(&b, 42);
    for (int i = 0; i < 1000; i++)
        assert_true(random_u64(&a) == random_u64(&b));
}

/* Recorded runs are replayed from their seed, so the numbers of a seed must never change. */
static void numbers_of_a_seed_never_change(void **state)
{
    (void)state;
    struct random random;
    random_init_seeded(&random, 0);
    assert_true(random_u64(&random) == UINT64_C(0x99ec5f36cb75f2b4));
    assert_true(random_u64(&random) == UINT64_C(0xbf6e1f784956452a));
    assert_true(random_u64(&random) == UINT64_C(0x1a5f849d4933e6e0));
}

static void similar_seeds_differ(void **state)
{
    (void)state;
    struct random a, b;
    random_init_seeded(&a, 1);
    random_init_seeded(&b, 2);
    int equal_bits = 64 - __builtin_popcountll(random_u64(&a) ^ random_u64(&b));
    assert_in_range(equal_bits, 12, 52);
}

/* The stream of bytes does not depend on the sizes of the pieces that are read. */
static void bytes_are_one_stream(void **state)
{
    (void)state;
    struct random whole, pieces;
    random_init_seeded(&whole, 7);
    random_init_seeded(&pieces, 7);
    uint8_t expected[3 * RANDOM_BLOCK_BYTES + 5], got[sizeof(expected)];
    random_bytes(&whole, expected, sizeof(expected));
    for (size_t at = 0, step = 0; at < sizeof(got); step = (step + 3) % 37) {
        size_t count = step < sizeof(got) - at ? step : sizeof(got) - at;
        random_bytes(&pieces, got + at, count);
        at += count;
    }
    assert_memory_equal(expected, got, sizeof(got));
}

static void returned_bytes_are_erased(void **state)
{
    (void)state;
    static const uint8_t nothing[100];
    struct random random;
    random_init_system(&random);
    uint8_t bytes[100];
    random_bytes(&random, bytes, sizeof(bytes));
    assert_memory_equal(random.block, nothing, sizeof(nothing));
}

static void system_source_does_not_repeat(void **state)
{
    (void)state;
    struct random a, b;
    random_init_system(&a);
    random_init_system(&b);
    uint64_t last = 0;
    for (int i = 0; i < 2 * RANDOM_BLOCK_BYTES / 8; i++) {
        uint64_t value = random_u64(&a);
        assert_true(value != last && value != random_u64(&b));
        last = value;
    }
}

static void below_stays_below_its_bound(void **state)
{
    (void)state;
    static const uint64_t bounds[] = {1, 2, 3, 10, 1000, UINT64_C(1) << 63, UINT64_MAX};
    struct random random;
    random_init_seeded(&random, 3);
    assert_true(random_below(&random, 0) == 0);
    for (size_t b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++) {
        for (int i = 0; i < 1000; i++)
            assert_true(random_below(&random, bounds[b]) < bounds[b]);
    }
}

static void below_is_unbiased(void **state)
{
    (void)state;
    enum { BINS = 6, DRAWS = 60000 };
    struct random random;
    random_init_seeded(&random, 4);
    int bins[BINS] = {0};
    for (int i = 0; i < DRAWS; i++)
        bins[random_below(&random, BINS)]++;
    for (int i = 0; i < BINS; i++)
        assert_in_range(bins[i], DRAWS / BINS - 500, DRAWS / BINS + 500);

    /* With a bound of three quarters of the range, plain remainders hit the lowest third twice. */
    const uint64_t bound = UINT64_C(3) << 62;
    int low = 0;
    for (int i = 0; i < DRAWS; i++)
        low += random_below(&random, bound) < bound / 3;
    assert_in_range(low, DRAWS / 3 - 1000, DRAWS / 3 + 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_gives_the_same_numbers),
        cmocka_unit_test(numbers_of_a_seed_never_change),
        cmocka_unit_test(similar_seeds_differ),
        cmocka_unit_test(bytes_are_one_stream),
        cmocka_unit_test(returned_bytes_are_erased),
        cmocka_unit_test(system_source_does_not_repeat),
        cmocka_unit_test(below_stays_below_its_bound),
        cmocka_unit_test(below_is_unbiased),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
