#include "base/hash_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <xxhash.h>

#include <cmocka.h>

static void same_seed_makes_the_same_hashes_and_another_seed_others(void **state)
{
    struct hash_key key, same, other;
    char text[300] = {0};
    (void)state;
    hash_key_init(&key, 1);
    hash_key_init(&same, 1);
    hash_key_init(&other, 2);
    for (size_t len = 1; len < sizeof(text); len++) {
        struct slice bytes = {text, len};
        assert_true(hash_key_hash(&key, bytes) == hash_key_hash(&same, bytes));
        assert_true(hash_key_hash(&key, bytes) != hash_key_hash(&other, bytes));
    }
}

/* These two differ by what the public hash adds for its seed, as whoever reads its source can compute. */
static void inputs_that_collide_without_a_key_do_not_collide_with_one(void **state)
{
    struct hash_key key;
    (void)state;
    hash_key_init(&key, 7);
    assert_true(XXH3_64bits_withSeed("teamteam", 8, 1) == XXH3_64bits_withSeed("teanueam", 8, 2));
    assert_true(hash_key_hash(&key, SLICE("teamteam")) != hash_key_hash(&key, SLICE("teanueam")));
}

/* The public secret makes both blocks of this input 0, so what they are multiplied with does not matter. */
static void inputs_that_cancel_the_public_secret_do_not_collide(void **state)
{
    uint8_t inputs[2][32] = {{0}, {0}};
    const struct slice bytes[] = {{(const char *)inputs[0], 32}, {(const char *)inputs[1], 32}};
    struct hash_key key;
    (void)state;
    hash_key_init(&key, 7);
    memcpy(inputs[0], "\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe", 8);
    memcpy(inputs[1], "\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe", 8);
    inputs[1][8] = 1;
    assert_true(XXH3_64bits(inputs[0], 32) == XXH3_64bits(inputs[1], 32));
    assert_true(hash_key_hash(&key, bytes[0]) != hash_key_hash(&key, bytes[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_makes_the_same_hashes_and_another_seed_others),
        cmocka_unit_test(inputs_that_collide_without_a_key_do_not_collide_with_one),
        cmocka_unit_test(inputs_that_cancel_the_public_secret_do_not_collide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
