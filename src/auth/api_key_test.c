#include "auth/api_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void key_has_its_prefix_and_differs_from_every_other(void **state)
{
    (void)state;
    struct random random;
    char one[API_KEY_TEXT_LEN], other[API_KEY_TEXT_LEN];
    random_init_system(&random);
    assert_true(api_key_make(&random, one));
    assert_true(api_key_make(&random, other));
    assert_memory_equal(one, "rk_", 3);
    assert_memory_not_equal(one, other, API_KEY_TEXT_LEN);
}

static void hash_is_sha256_of_the_whole_key(void **state)
{
    (void)state;
    char hash[API_KEY_HASH_LEN];
    char text[] = "rk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    char expected[] = "f09559e766f61996b6306a064fff75a4e32b0b3c6642ba0a9640cdd908f70863";
    assert_true(api_key_hash(slice_of(text), hash));
    assert_true(api_key_hash_equal(hash, slice_of(expected)));
    expected[63] ^= 1;
    assert_false(api_key_hash_equal(hash, slice_of(expected)));
    assert_false(api_key_hash_equal(hash, (struct slice){expected, 63}));
    text[45] = 'B';
    char changed[API_KEY_HASH_LEN];
    assert_true(api_key_hash(slice_of(text), changed));
    assert_memory_not_equal(hash, changed, API_KEY_HASH_LEN);
}

static void text_that_is_no_key_has_no_hash(void **state)
{
    (void)state;
    char hash[API_KEY_HASH_LEN];
    assert_false(api_key_hash(SLICE(""), hash));
    assert_false(api_key_hash(SLICE("rk_"), hash));
    assert_false(api_key_hash(SLICE("RK_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), hash));
    assert_false(api_key_hash(SLICE("rk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), hash));
}

static void names_are_plain(void **state)
{
    (void)state;
    char longest[API_KEY_NAME_BYTES_MAX + 1];
    memset(longest, 'n', sizeof(longest));
    assert_true(api_key_name_valid(SLICE("shop-2.back_end")));
    assert_true(api_key_name_valid((struct slice){longest, API_KEY_NAME_BYTES_MAX}));
    assert_false(api_key_name_valid((struct slice){longest, sizeof(longest)}));
    assert_false(api_key_name_valid(SLICE("")));
    assert_false(api_key_name_valid(SLICE("a b")));
    assert_false(api_key_name_valid(SLICE("a/b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_has_its_prefix_and_differs_from_every_other),
        cmocka_unit_test(hash_is_sha256_of_the_whole_key),
        cmocka_unit_test(text_that_is_no_key_has_no_hash),
        cmocka_unit_test(names_are_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
