#include "base/ulid.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void assert_text(const struct ulid *ulid, const char *expected)
{
    char text[ULID_TEXT_LEN + 1] = {0};
    ulid_write(text, ulid);
    assert_string_equal(text, expected);
}

static void known_ulids_are_written_and_parsed(void **state)
{
    (void)state;
    static const struct {
        struct ulid ulid;
        const char *text;
    } pairs[] = {
        {{{0}}, "00000000000000000000000000"},
        {{{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}},
         "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"},
        {{{0x01, 0x56, 0x3d, 0xf3, 0x64, 0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
         "01ARYZ6S410000000000000001"},
        {{{0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde,
           0xf0}},
         "0J6HB7H6NWVVR14D2PF2DBSQQG"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_text(&pairs[i].ulid, pairs[i].text);
        struct ulid parsed;
        assert_true(ulid_parse(slice_of(pairs[i].text), &parsed));
        assert_true(ulid_equal(&parsed, &pairs[i].ulid));
    }
}

static void parse_ignores_case(void **state)
{
    (void)state;
    struct ulid upper, lower;
    assert_true(ulid_parse(SLICE("01ARYZ6S41TSV4RRFFQ69G5FAV"), &upper));
    assert_true(ulid_parse(SLICE("01aryz6s41tsv4rrffq69g5fav"), &lower));
    assert_true(ulid_equal(&upper, &lower));
    assert_text(&lower, "01ARYZ6S41TSV4RRFFQ69G5FAV");
}

static void parse_refuses_everything_else(void **state)
{
    (void)state;
    struct ulid ulid;
    assert_false(ulid_parse(SLICE_NONE, &ulid));
    assert_false(ulid_parse(SLICE("01ARYZ6S41TSV4RRFFQ69G5FA"), &ulid));
    assert_false(ulid_parse(SLICE("01ARYZ6S41TSV4RRFFQ69G5FAVV"), &ulid));
    assert_false(ulid_parse(SLICE("80000000000000000000000000"), &ulid));
    assert_false(ulid_parse(SLICE("ZZZZZZZZZZZZZZZZZZZZZZZZZZ"), &ulid));
    char text[] = "01ARYZ6S41TSV4RRFFQ69G5FAV";
    for (int byte = 0; byte < 256; byte++) {
        bool valid = byte && strchr("0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz", byte);
        text[13] = (char)byte;
        assert_int_equal(ulid_parse((struct slice){text, ULID_TEXT_LEN}, &ulid), valid);
    }
}

static void texts_sort_by_time(void **state)
{
    (void)state;
    struct random random;
    random_init_seeded(&random, 31);
    char before[ULID_TEXT_LEN], after[ULID_TEXT_LEN];
    int64_t wall_ms = 1769853600000;
    struct ulid ulid = ulid_make(wall_ms, &random);
    ulid_write(before, &ulid);
    for (int i = 0; i < 2000; i++) {
        wall_ms += 1 + (int64_t)random_below(&random, 100000);
        ulid = ulid_make(wall_ms, &random);
        ulid_write(after, &ulid);
        assert_int_equal(ulid_time_ms(&ulid), wall_ms);
        assert_true(memcmp(before, after, sizeof(before)) < 0);
        struct ulid parsed;
        assert_true(ulid_parse((struct slice){after, sizeof(after)}, &parsed));
        assert_true(ulid_equal(&parsed, &ulid));
        memcpy(before, after, sizeof(before));
    }
}

static void time_comes_first_and_is_clamped(void **state)
{
    (void)state;
    static const struct {
        int64_t wall_ms;
        uint8_t bytes[6];
    } cases[] = {
        {0x0123456789ab, {0x01, 0x23, 0x45, 0x67, 0x89, 0xab}},
        {-5, {0}},
        {INT64_MAX, {255, 255, 255, 255, 255, 255}},
    };
    struct random random;
    random_init_seeded(&random, 32);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ulid ulid = ulid_make(cases[i].wall_ms, &random);
        assert_memory_equal(ulid.bytes, cases[i].bytes, 6);
    }
}

static void two_ulids_of_one_millisecond_differ(void **state)
{
    (void)state;
    struct random random;
    random_init_system(&random);
    struct ulid a = ulid_make(1, &random), b = ulid_make(1, &random);
    assert_false(ulid_equal(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_ulids_are_written_and_parsed),
        cmocka_unit_test(parse_ignores_case),
        cmocka_unit_test(parse_refuses_everything_else),
        cmocka_unit_test(texts_sort_by_time),
        cmocka_unit_test(time_comes_first_and_is_clamped),
        cmocka_unit_test(two_ulids_of_one_millisecond_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
