#include "store/redis/redis_keys.h"

#include "redis/protocol/redis_slot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct redis_keys SINGLE = {.cluster = false};
static const struct redis_keys CLUSTER = {.cluster = true};

static void expect_key(const struct redis_keys *keys, struct slice user, const char *expected)
{
    char out[REDIS_KEY_BYTES_MAX];
    assert_true(slice_is(redis_key_user(keys, out, "a:", user, ":b"), expected));
}

static void single_server_uses_plain_names(void **state)
{
    (void)state;
    char out[REDIS_KEY_BYTES_MAX];
    expect_key(&SINGLE, SLICE("alice"), "a:alice:b");
    expect_key(&SINGLE, SLICE("{x}%7D"), "a:{x}%7D:b");
    assert_true(slice_is(redis_key_plain(out, "connection:", SLICE("c}")), "connection:c}"));
    assert_true(slice_is(redis_key_plain(out, "alone", SLICE_NONE), "alone"));
}

static void cluster_encodes_only_ids_that_break_the_hash_tag(void **state)
{
    (void)state;
    expect_key(&CLUSTER, SLICE("alice"), "a:{alice}:b");
    expect_key(&CLUSTER, SLICE("50%"), "a:{50%}:b");
    expect_key(&CLUSTER, SLICE("{"), "a:{{}:b");
    expect_key(&CLUSTER, SLICE("}"), "a:{%7D}:b");
    expect_key(&CLUSTER, SLICE("%}"), "a:{%25%7D}:b");
    expect_key(&CLUSTER, SLICE("%7D"), "a:{%257D}:b");
    expect_key(&CLUSTER, SLICE("%25"), "a:{%2525}:b");
    expect_key(&CLUSTER, SLICE("%7d"), "a:{%7d}:b");
}

static void key_beside_another_is_in_the_same_slot(void **state)
{
    (void)state;
    static const char *const keys[] = {"c:plain", "c:a{b", "c:{", "c:{{", "c:😀 %7D", "c:"};
    char out[REDIS_KEY_BYTES_MAX];
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct slice key = slice_of(keys[i]);
        struct slice beside = redis_key_beside(out, "p:", key, SLICE("}{x}:"));
        assert_int_equal(redis_slot(beside), redis_slot(key));
        assert_true(slice_starts_with(beside, SLICE("p:{")));
    }
    assert_null(redis_key_beside(out, "p:", SLICE("c:a}b"), SLICE("x")).data);
    assert_null(redis_key_beside(out, "p:", SLICE("c:{t}"), SLICE("x")).data);
}

static int compare_keys(const void *left, const void *right)
{
    return strcmp(left, right);
}

/* Tries all short ids of the characters that matter: no two share a key, all keys of one id share a slot, and reading a
 * key gives the id back. */
static void encoding_is_injective_and_reversible(void **state)
{
    enum { LETTERS = 7, LENGTH = 5, IDS = 7 * 7 * 7 * 7 * 7 };
    static const char letters[] = "{}%257D";
    (void)state;
    char(*keys)[64] = calloc(IDS, sizeof(*keys));
    assert_non_null(keys);
    for (unsigned number = 0; number < IDS; number++) {
        char id[LENGTH], out[REDIS_KEY_BYTES_MAX], read[REDIS_KEY_BYTES_MAX];
        unsigned rest = number;
        for (size_t i = 0; i < LENGTH; i++, rest /= LETTERS)
            id[i] = letters[rest % LETTERS];
        struct slice user, tail,
            key = redis_key_user(&CLUSTER, out, "a:", (struct slice){id, LENGTH}, ":b");
        assert_true(redis_key_read_user(&CLUSTER, read, key, "a:", &user, &tail));
        assert_true(slice_equal(user, (struct slice){id, LENGTH}));
        assert_true(slice_is(tail, ":b"));
        uint16_t slot = redis_slot(key);
        key = redis_key_user(&CLUSTER, out, "", (struct slice){id, LENGTH}, "");
        assert_int_equal(redis_slot(key), slot);
        assert_true(key.len < sizeof(*keys));
        memcpy(keys[number], key.data, key.len);
    }
    qsort(keys, IDS, sizeof(*keys), compare_keys);
    for (size_t i = 1; i < IDS; i++)
        assert_string_not_equal(keys[i - 1], keys[i]);
    free(keys);
}

static void foreign_key_is_not_read(void **state)
{
    static const char *const foreign[] = {"",     "a:",        "b:{x}",  "a:x",   "a:{}",
                                          "a:{x", "a:{%25%x}", "a:x{y}", "a:{%7", "a:{%25}:b"};
    (void)state;
    char out[REDIS_KEY_BYTES_MAX];
    struct slice user, rest;
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        assert_false(redis_key_read_user(&CLUSTER, out, slice_of(foreign[i]), "a:", &user, &rest));
    assert_true(redis_key_read_user(&SINGLE, out, SLICE("a:{x}:y"), "a:", &user, &rest));
    assert_true(slice_is(user, "{x}:y"));
    assert_int_equal(rest.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_server_uses_plain_names),
        cmocka_unit_test(cluster_encodes_only_ids_that_break_the_hash_tag),
        cmocka_unit_test(key_beside_another_is_in_the_same_slot),
        cmocka_unit_test(encoding_is_injective_and_reversible),
        cmocka_unit_test(foreign_key_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
