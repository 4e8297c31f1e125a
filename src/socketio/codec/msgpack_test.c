/* Every format of MessagePack, whole and cut short. */
#include "socketio/codec/msgpack.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES(literal) SLICE(literal)

enum { DEEP = 100000 };

static char *input; /* of the last item that was read, which borrows from it */

static struct slice exactly(struct slice bytes)
{
    free(input);
    input = exact_copy(bytes);
    return (struct slice){input, bytes.len};
}

static int free_input(void **unused)
{
    (void)unused;
    free(input);
    return 0;
}

static struct msgpack_item read_whole(struct slice bytes)
{
    struct slice rest = exactly(bytes);
    struct msgpack_item item;
    assert_true(msgpack_read(&rest, &item));
    assert_int_equal(rest.len, 0);
    return item;
}

static void integers_of_every_width_are_read_and_written(void **unused)
{
    (void)unused;
    static const struct {
        struct slice bytes;
        enum msgpack_type type;
        int64_t value;
    } rows[] = {
        {BYTES("\x00"), MSGPACK_NATURAL, 0},
        {BYTES("\x7f"), MSGPACK_NATURAL, 127},
        {BYTES("\xcc\x80"), MSGPACK_NATURAL, 128},
        {BYTES("\xcc\xff"), MSGPACK_NATURAL, 255},
        {BYTES("\xcd\x01\x00"), MSGPACK_NATURAL, 256},
        {BYTES("\xcd\xff\xff"), MSGPACK_NATURAL, 65535},
        {BYTES("\xce\x00\x01\x00\x00"), MSGPACK_NATURAL, 65536},
        {BYTES("\xce\xff\xff\xff\xff"), MSGPACK_NATURAL, 4294967295},
        {BYTES("\xcf\x00\x00\x00\x01\x00\x00\x00\x00"), MSGPACK_NATURAL, 4294967296},
        {BYTES("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"), MSGPACK_NATURAL, INT64_MAX},
        {BYTES("\xff"), MSGPACK_INTEGER, -1},
        {BYTES("\xe0"), MSGPACK_INTEGER, -32},
        {BYTES("\xd0\xdf"), MSGPACK_INTEGER, -33},
        {BYTES("\xd0\x80"), MSGPACK_INTEGER, -128},
        {BYTES("\xd1\xff\x7f"), MSGPACK_INTEGER, -129},
        {BYTES("\xd1\x80\x00"), MSGPACK_INTEGER, -32768},
        {BYTES("\xd2\xff\xff\x7f\xff"), MSGPACK_INTEGER, -32769},
        {BYTES("\xd2\x80\x00\x00\x00"), MSGPACK_INTEGER, INT32_MIN},
        {BYTES("\xd3\xff\xff\xff\xff\x7f\xff\xff\xff"), MSGPACK_INTEGER, INT32_MIN - 1LL},
        {BYTES("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), MSGPACK_INTEGER, INT64_MIN},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct msgpack_item item = read_whole(rows[i].bytes);
        struct buffer written = BUFFER_INIT;
        assert_int_equal(item.type, rows[i].type);
        assert_true(item.integer == rows[i].value);
        msgpack_write_int(&written, rows[i].value);
        assert_true(slice_equal(buffer_slice(&written), rows[i].bytes));
        buffer_free(&written);
    }
    struct msgpack_item largest = read_whole(BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"));
    assert_true(largest.natural == UINT64_MAX);
    assert_int_equal(read_whole(BYTES("\xd0\x05")).integer, 5);
}

static void nil_booleans_and_reals_are_read_and_written(void **unused)
{
    (void)unused;
    struct buffer written = BUFFER_INIT;
    assert_int_equal(read_whole(BYTES("\xc0")).type, MSGPACK_NIL);
    assert_int_equal(read_whole(BYTES("\xc2")).type, MSGPACK_BOOLEAN);
    assert_false(read_whole(BYTES("\xc2")).boolean);
    assert_true(read_whole(BYTES("\xc3")).boolean);
    assert_true(read_whole(BYTES("\xca\x3f\xc0\x00\x00")).real == 1.5);
    assert_true(read_whole(BYTES("\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00")).real == 1.5);
    msgpack_write_nil(&written);
    msgpack_write_bool(&written, false);
    msgpack_write_bool(&written, true);
    msgpack_write_double(&written, 1.5);
    assert_true(slice_equal(buffer_slice(&written),
                            BYTES("\xc0\xc2\xc3\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00")));
    buffer_free(&written);
}

static void strings_binary_and_extensions_are_read(void **unused)
{
    (void)unused;
    static const struct {
        struct slice bytes;
        enum msgpack_type type;
        size_t len;
    } rows[] = {
        {BYTES("\xa0"), MSGPACK_STRING, 0},
        {BYTES("\xa3xyz"), MSGPACK_STRING, 3},
        {BYTES("\xd9\x02xy"), MSGPACK_STRING, 2},
        {BYTES("\xda\x00\x02xy"), MSGPACK_STRING, 2},
        {BYTES("\xdb\x00\x00\x00\x02xy"), MSGPACK_STRING, 2},
        {BYTES("\xc4\x02xy"), MSGPACK_BINARY, 2},
        {BYTES("\xc5\x00\x02xy"), MSGPACK_BINARY, 2},
        {BYTES("\xc6\x00\x00\x00\x02xy"), MSGPACK_BINARY, 2},
        {BYTES("\xc7\x02\x05xy"), MSGPACK_EXTENSION, 2},
        {BYTES("\xc8\x00\x02\x05xy"), MSGPACK_EXTENSION, 2},
        {BYTES("\xc9\x00\x00\x00\x02\x05xy"), MSGPACK_EXTENSION, 2},
        {BYTES("\xd4\x00\x00"), MSGPACK_UNDEFINED, 1},
        {BYTES("\xd4\x01\x00"), MSGPACK_EXTENSION, 1},
        {BYTES("\xd5\x00xy"), MSGPACK_EXTENSION, 2},
        {BYTES("\xd6\x00wxyz"), MSGPACK_EXTENSION, 4},
        {BYTES("\xd7\x00stuvwxyz"), MSGPACK_EXTENSION, 8},
        {BYTES("\xd8\x00klmnopqrstuvwxyz"), MSGPACK_EXTENSION, 16},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct msgpack_item item = read_whole(rows[i].bytes);
        assert_int_equal(item.type, rows[i].type);
        assert_int_equal(item.bytes.len, rows[i].len);
        assert_ptr_equal(item.bytes.data + item.bytes.len, input + rows[i].bytes.len);
    }
}

static void strings_are_written_in_the_shortest_format(void **unused)
{
    (void)unused;
    static const struct {
        size_t len;
        size_t head_len;
    } rows[] = {{0, 1}, {31, 1}, {32, 2}, {255, 2}, {256, 3}, {65535, 3}, {65536, 5}};
    char *text = calloc(1, 65536);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buffer written = BUFFER_INIT;
        msgpack_write_string(&written, (struct slice){text, rows[i].len});
        assert_int_equal(written.len, rows[i].head_len + rows[i].len);
        assert_int_equal(read_whole(buffer_slice(&written)).bytes.len, rows[i].len);
        buffer_free(&written);
    }
    free(text);
}

static void a_container_is_read_as_its_head(void **unused)
{
    (void)unused;
    static const struct {
        struct slice bytes;
        enum msgpack_type type;
        uint32_t count;
    } rows[] = {
        {BYTES("\x90"), MSGPACK_ARRAY, 0},
        {BYTES("\x92\x01\x02"), MSGPACK_ARRAY, 2},
        {BYTES("\xdc\x00\x02\x01\x02"), MSGPACK_ARRAY, 2},
        {BYTES("\xdd\x00\x00\x00\x02\x01\x02"), MSGPACK_ARRAY, 2},
        {BYTES("\x80"), MSGPACK_MAP, 0},
        {BYTES("\x81\x01\x02"), MSGPACK_MAP, 1},
        {BYTES("\xde\x00\x01\x01\x02"), MSGPACK_MAP, 1},
        {BYTES("\xdf\x00\x00\x00\x01\x01\x02"), MSGPACK_MAP, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slice bytes = exactly(rows[i].bytes);
        struct slice rest = bytes;
        struct msgpack_item item;
        assert_true(msgpack_read(&rest, &item));
        assert_int_equal(item.type, rows[i].type);
        assert_int_equal(item.count, rows[i].count);
        rest = bytes;
        assert_true(msgpack_skip(&rest));
        assert_int_equal(rest.len, 0);
    }
}

static void a_container_is_written_with_its_final_count(void **unused)
{
    (void)unused;
    static const uint32_t counts[] = {0, 1, 15, 16, 70000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct buffer written = BUFFER_INIT;
        struct msgpack_item item;
        buffer_append_byte(&written, 'x');
        size_t map_at = msgpack_write_open(&written, MSGPACK_MAP);
        msgpack_write_int(&written, 7);
        size_t array_at = msgpack_write_open(&written, MSGPACK_ARRAY);
        for (uint32_t at = 0; at < counts[i]; at++)
            msgpack_write_nil(&written);
        msgpack_write_close(&written, array_at, counts[i]);
        msgpack_write_close(&written, map_at, 1);
        struct slice all = exactly(slice_after(buffer_slice(&written), 1));
        struct slice rest = all;
        assert_true(msgpack_read(&rest, &item) && item.type == MSGPACK_MAP && item.count == 1);
        assert_true(msgpack_read(&rest, &item) && item.natural == 7);
        assert_true(msgpack_read(&rest, &item) && item.type == MSGPACK_ARRAY);
        assert_int_equal(item.count, counts[i]);
        assert_int_equal(rest.len, counts[i]);
        assert_true(msgpack_skip(&all));
        buffer_free(&written);
    }
}

static void a_truncated_value_is_refused(void **unused)
{
    (void)unused;
    static const struct slice values[] = {
        BYTES("\xcf\x00\x00\x00\x01\x00\x00\x00\x00"),
        BYTES("\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"),
        BYTES("\xa3xyz"),
        BYTES("\xd9\x02xy"),
        BYTES("\xdb\x00\x00\x00\x02xy"),
        BYTES("\xc6\x00\x00\x00\x02xy"),
        BYTES("\xc9\x00\x00\x00\x02\x05xy"),
        BYTES("\xd4\x00\x00"),
        BYTES("\xd8\x00klmnopqrstuvwxyz"),
        BYTES("\x92\x01\x02"),
        BYTES("\xdd\x00\x00\x00\x02\x01\x02"),
        BYTES("\x81\xa1x\x92\x01\x02"),
        BYTES("\xdf\x00\x00\x00\x01\x01\x02"),
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        for (size_t len = 0; len < values[i].len; len++) {
            struct slice rest = exactly(slice_first(values[i], len));
            assert_false(msgpack_skip(&rest));
        }
    }
}

static void a_length_beyond_the_input_is_refused_at_once(void **unused)
{
    (void)unused;
    static const struct slice values[] = {
        BYTES("\xc1"),
        BYTES("\xdd\xff\xff\xff\xff\x01"),
        BYTES("\xdf\xff\xff\xff\xff\x01\x02"),
        BYTES("\xdf\x00\x00\x00\x02\x01\x02\x03"),
        BYTES("\xdb\xff\xff\xff\xffx"),
        BYTES("\xc6\xff\xff\xff\xffx"),
        BYTES("\xc9\xff\xff\xff\xff\x00x"),
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct slice rest = exactly(values[i]);
        struct msgpack_item item;
        assert_false(msgpack_read(&rest, &item));
    }
}

static void skipping_deep_nesting_uses_no_stack(void **unused)
{
    (void)unused;
    char *deep = malloc(DEEP);
    memset(deep, 0x91, DEEP);
    struct slice rest = {deep, DEEP};
    assert_false(msgpack_skip(&rest));
    deep[DEEP - 1] = (char)0xc0;
    rest = (struct slice){deep, DEEP};
    assert_true(msgpack_skip(&rest));
    assert_int_equal(rest.len, 0);
    free(deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_of_every_width_are_read_and_written),
        cmocka_unit_test(nil_booleans_and_reals_are_read_and_written),
        cmocka_unit_test(strings_binary_and_extensions_are_read),
        cmocka_unit_test(strings_are_written_in_the_shortest_format),
        cmocka_unit_test(a_container_is_read_as_its_head),
        cmocka_unit_test(a_container_is_written_with_its_final_count),
        cmocka_unit_test(a_truncated_value_is_refused),
        cmocka_unit_test(a_length_beyond_the_input_is_refused_at_once),
        cmocka_unit_test(skipping_deep_nesting_uses_no_stack),
    };
    return cmocka_run_group_tests(tests, NULL, free_input);
}
