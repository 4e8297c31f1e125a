#include "base/seen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <xxhash.h>

#include <cmocka.h>

static int open_seen(void **state)
{
    *state = calloc(1, sizeof(struct seen));
    return *state ? 0 : -1;
}

static int close_seen(void **state)
{
    free(*state);
    return 0;
}

static void key_is_new_once(void **state)
{
    static const uint64_t keys[] = {0, 7, 7 + SEEN_SETS, UINT64_MAX};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        assert_true(seen_note(*state, keys[i]));
        assert_false(seen_note(*state, keys[i]));
    }
}

static void new_key_replaces_the_oldest_of_its_set(void **state)
{
    for (uint64_t i = 0; i < SEEN_WAYS; i++)
        assert_true(seen_note(*state, 7 + i * SEEN_SETS));
    assert_false(seen_note(*state, 7));
    assert_true(seen_note(*state, 7 + SEEN_WAYS * SEEN_SETS));
    assert_true(seen_note(*state, 7)); /* the oldest: forgotten */
    assert_false(seen_note(*state, 7 + 2 * SEEN_SETS));
}

/* A burst of a third of the capacity loses less than one per cent. */
static void burst_is_remembered(void **state)
{
    enum { BURST = SEEN_KEYS_MAX / 3 };
    size_t forgotten = 0;
    for (uint64_t i = 0; i < BURST; i++)
        seen_note(*state, XXH3_64bits(&i, sizeof(i)));
    for (uint64_t i = 0; i < BURST; i++)
        forgotten += seen_note(*state, XXH3_64bits(&i, sizeof(i)));
    assert_in_range(forgotten, 0, BURST / 100);
}

#define with_seen(test) cmocka_unit_test_setup_teardown(test, open_seen, close_seen)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_seen(key_is_new_once),
        with_seen(new_key_replaces_the_oldest_of_its_set),
        with_seen(burst_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
