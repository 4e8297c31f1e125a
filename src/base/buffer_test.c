#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define assert_holds(buffer, text) assert_true(slice_is(buffer_slice(buffer), (text)))

static void append_grows_the_buffer(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_INIT;
    for (int i = 0; i < 1000; i++) {
        buffer_append(&buffer, "abc", 3);
        buffer_append_byte(&buffer, 'd');
    }
    assert_false(buffer.failed);
    assert_int_equal(buffer.len, 4000);
    for (size_t i = 0; i < buffer.len; i++)
        assert_int_equal(buffer.data[i], "abcd"[i % 4]);
    buffer_free(&buffer);
    assert_null(buffer.data);
    assert_int_equal(buffer.len + buffer.cap, 0);
}

static void empty_text_can_be_appended(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_INIT;
    buffer_append(&buffer, NULL, 0);
    buffer_append_slice(&buffer, SLICE_NONE);
    buffer_append_text(&buffer, "");
    buffer_printf(&buffer, "%s", "");
    assert_false(buffer.failed);
    assert_int_equal(buffer.len, 0);
    buffer_consume(&buffer, 5);
    assert_int_equal(buffer.len, 0);
    buffer_free(&buffer);
}

static void extreme_numbers_are_written(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_INIT;
    static const int64_t values[] = {0, 7, -1, 10, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        buffer_append_int(&buffer, values[i]);
        buffer_append_byte(&buffer, ' ');
    }
    buffer_append_uint(&buffer, UINT64_MAX);
    assert_holds(&buffer,
                 "0 7 -1 10 9223372036854775807 -9223372036854775808 18446744073709551615");
    buffer_free(&buffer);
}

static void printf_appends_formatted_text(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_INIT;
    buffer_append_text(&buffer, "a");
    buffer_printf(&buffer, "%d-%.*s", 42, SLICE_FORMAT(SLICE("xyz")));
    assert_holds(&buffer, "a42-xyz");
    buffer_printf(&buffer, "%0300d", 1);
    assert_int_equal(buffer.len, 307);
    assert_int_equal(buffer.data[306], '1');
    buffer_free(&buffer);
}

static void bound_holds_within_the_capacity(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_BOUNDED(10);
    buffer_append_text(&buffer, "12345");
    buffer_append_text(&buffer, "67890");
    assert_false(buffer.failed);
    assert_true(buffer_reserve(&buffer, 0));
    assert_false(buffer_reserve(&buffer, 1));
    assert_true(buffer.failed);
    assert_holds(&buffer, "1234567890");
    buffer_free(&buffer);
    assert_int_equal(buffer.max, 10);
    assert_false(buffer.failed);
}

static void printf_may_fill_the_bound_exactly(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_BOUNDED(64);
    buffer_printf(&buffer, "%064d", 0);
    assert_false(buffer.failed);
    assert_int_equal(buffer.len, 64);
    buffer_printf(&buffer, "x");
    assert_true(buffer.failed);
    assert_int_equal(buffer.len, 64);
    buffer_free(&buffer);
}

static void failure_is_sticky_until_cleared(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_BOUNDED(4);
    buffer_append_text(&buffer, "abcde");
    assert_true(buffer.failed);
    buffer_append_byte(&buffer, 'x');
    buffer_append_int(&buffer, -1);
    buffer_printf(&buffer, "y");
    assert_int_equal(buffer.len, 0);
    buffer_clear(&buffer);
    buffer_append_text(&buffer, "abcd");
    assert_false(buffer.failed);
    assert_holds(&buffer, "abcd");
    buffer_free(&buffer);
}

static void impossible_size_fails(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_INIT;
    buffer_append_byte(&buffer, 'x');
    assert_false(buffer_reserve(&buffer, SIZE_MAX));
    buffer_clear(&buffer);
    buffer_append_byte(&buffer, 'x');
    assert_false(buffer_reserve(&buffer, SIZE_MAX / 2));
    buffer_free(&buffer);
}

static void consume_removes_from_the_front(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_INIT;
    buffer_append_text(&buffer, "hello world");
    buffer_consume(&buffer, 0);
    buffer_consume(&buffer, 6);
    assert_holds(&buffer, "world");
    buffer_consume(&buffer, 5);
    assert_int_equal(buffer.len, 0);
    buffer_append_text(&buffer, "again");
    buffer_consume(&buffer, 100);
    assert_int_equal(buffer.len, 0);
    buffer_free(&buffer);
}

static void detach_moves_the_bytes_out(void **state)
{
    (void)state;
    struct buffer buffer = BUFFER_BOUNDED(100);
    buffer_append_text(&buffer, "kept");
    size_t len;
    char *data = buffer_detach(&buffer, &len);
    assert_int_equal(len, 4);
    assert_memory_equal(data, "kept", 4);
    assert_null(buffer.data);
    assert_int_equal(buffer.max, 100);
    buffer_append_text(&buffer, "next");
    assert_memory_equal(data, "kept", 4);
    free(data);
    buffer_free(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_grows_the_buffer),
        cmocka_unit_test(empty_text_can_be_appended),
        cmocka_unit_test(extreme_numbers_are_written),
        cmocka_unit_test(printf_appends_formatted_text),
        cmocka_unit_test(bound_holds_within_the_capacity),
        cmocka_unit_test(printf_may_fill_the_bound_exactly),
        cmocka_unit_test(failure_is_sticky_until_cleared),
        cmocka_unit_test(impossible_size_fails),
        cmocka_unit_test(consume_removes_from_the_front),
        cmocka_unit_test(detach_moves_the_bytes_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
