/* Numbers, texts and lists on the wire: their extremes, and what is refused. */
#include "peer/wire.h"

#include "peer/wire_memory.h"
#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_numbers_are_read_as_written(void **unused)
{
    (void)unused;
    static const uint64_t numbers[] = {0, 1, 127, 128, 16383, 16384, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct buffer out = BUFFER_INIT;
        struct wire writer = wire_writing(&out);
        uint64_t got = numbers[i];
        wire_number(&writer, &got, UINT64_MAX);
        struct wire reader = wire_reading(buffer_slice(&out), NULL, NULL);
        got = 42;
        wire_number(&reader, &got, UINT64_MAX);
        assert_true(wire_end(&reader) && got == numbers[i]);
        buffer_free(&out);
    }
}

static void test_signed_numbers_are_read_as_written_and_small_ones_take_one_byte(void **unused)
{
    (void)unused;
    static const int64_t numbers[] = {0, -1, 1, -64, 63, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct buffer out = BUFFER_INIT;
        struct wire writer = wire_writing(&out);
        int64_t got = numbers[i];
        wire_signed(&writer, &got);
        assert_true(out.len == 1 || numbers[i] > 63 || numbers[i] < -64);
        struct wire reader = wire_reading(buffer_slice(&out), NULL, NULL);
        got = 42;
        wire_signed(&reader, &got);
        assert_true(wire_end(&reader) && got == numbers[i]);
        buffer_free(&out);
    }
}

static void expect_refused_number(struct slice input, uint64_t max)
{
    char *copy = exact_copy(input);
    struct wire reader = wire_reading((struct slice){copy, input.len}, NULL, NULL);
    uint64_t got = 42;
    wire_number(&reader, &got, max);
    assert_false(wire_end(&reader));
    assert_int_equal(got, 0);
    free(copy);
}

static void test_longer_forms_and_numbers_beyond_the_bound_are_refused(void **unused)
{
    (void)unused;
    expect_refused_number(SLICE(""), UINT64_MAX);
    expect_refused_number(SLICE("\x80"), UINT64_MAX);
    expect_refused_number(SLICE("\x80\x00"), UINT64_MAX);     /* a longer zero */
    expect_refused_number(SLICE("\xff\x80\x00"), UINT64_MAX); /* a longer 127 */
    expect_refused_number(SLICE("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), UINT64_MAX);
    expect_refused_number(SLICE("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), UINT64_MAX);
    expect_refused_number(SLICE("\x06"), 5);
}

static void test_failure_is_sticky(void **unused)
{
    (void)unused;
    struct wire reader = wire_reading(SLICE("\x02\x01\x01"), NULL, NULL);
    bool flag = true;
    uint64_t number = 42;
    wire_bool(&reader, &flag);
    wire_number(&reader, &number, 10);
    assert_false(flag);
    assert_int_equal(number, 0);
    assert_false(wire_end(&reader));
}

static void test_text_beyond_the_input_or_below_its_minimum_is_refused(void **unused)
{
    (void)unused;
    char *copy = exact_copy(SLICE("\x05four"));
    struct wire reader = wire_reading((struct slice){copy, 5}, NULL, NULL);
    struct slice text = SLICE("old");
    wire_text(&reader, &text, 0, 100);
    assert_false(wire_end(&reader));
    assert_int_equal(text.len, 0);
    free(copy);
    reader = wire_reading(SLICE("\x00"), NULL, NULL);
    wire_text(&reader, &text, 1, 100);
    assert_false(wire_end(&reader));
}

static void test_list_longer_than_the_input_takes_no_memory(void **unused)
{
    (void)unused;
    struct wire_memory memory = {0};
    struct wire reader =
        wire_reading(SLICE("\x90\x4e\x01x"), wire_memory_alloc, &memory); /* claims 10,000 ids */
    const struct slice *ids = NULL;
    size_t count = 0;
    wire_ids(&reader, &ids, &count, 20000, 128);
    assert_false(wire_end(&reader));
    assert_int_equal(count, 0);
    assert_null(memory.first);
}

static void test_lists_bytes_and_the_rest_are_read_as_written(void **unused)
{
    (void)unused;
    struct slice names[] = {SLICE("a"), SLICE("bc")}, rest = SLICE("left over");
    const struct slice *ids = names;
    size_t count = 2;
    char bytes[3] = "xyz";
    struct buffer out = BUFFER_INIT;
    struct wire writer = wire_writing(&out);
    wire_ids(&writer, &ids, &count, 2, 2);
    wire_bytes(&writer, bytes, sizeof(bytes));
    wire_rest(&writer, &rest);
    struct wire_memory memory = {0};
    struct wire reader = wire_reading(buffer_slice(&out), wire_memory_alloc, &memory);
    memset(bytes, 0, sizeof(bytes));
    rest = SLICE_NONE;
    wire_ids(&reader, &ids, &count, 2, 2);
    wire_bytes(&reader, bytes, sizeof(bytes));
    wire_rest(&reader, &rest);
    assert_true(wire_end(&reader));
    assert_true(count == 2 && slice_is(ids[0], "a") && slice_is(ids[1], "bc"));
    assert_memory_equal(bytes, "xyz", 3);
    assert_true(slice_is(rest, "left over"));
    wire_memory_free(&memory);
    buffer_free(&out);
}

static void test_bytes_beyond_the_input_are_refused(void **unused)
{
    (void)unused;
    char bytes[4] = "old", *copy = exact_copy(SLICE("abc"));
    struct wire reader = wire_reading((struct slice){copy, 3}, NULL, NULL);
    wire_bytes(&reader, bytes, sizeof(bytes));
    assert_false(wire_end(&reader));
    assert_memory_equal(bytes, "\0\0\0", 4);
    free(copy);
}

static void test_memory_beyond_its_bound_is_refused(void **unused)
{
    (void)unused;
    struct wire_memory memory = {.bytes_max = 100};
    assert_non_null(wire_memory_alloc(&memory, 60));
    assert_null(wire_memory_alloc(&memory, 60));
    wire_memory_free(&memory);
    assert_null(memory.first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_read_as_written),
        cmocka_unit_test(test_signed_numbers_are_read_as_written_and_small_ones_take_one_byte),
        cmocka_unit_test(test_longer_forms_and_numbers_beyond_the_bound_are_refused),
        cmocka_unit_test(test_failure_is_sticky),
        cmocka_unit_test(test_text_beyond_the_input_or_below_its_minimum_is_refused),
        cmocka_unit_test(test_list_longer_than_the_input_takes_no_memory),
        cmocka_unit_test(test_lists_bytes_and_the_rest_are_read_as_written),
        cmocka_unit_test(test_bytes_beyond_the_input_are_refused),
        cmocka_unit_test(test_memory_beyond_its_bound_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
