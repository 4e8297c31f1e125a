#include "protocol/websocket/websocket_encode.h"

#include "support/exact_copy.h"
#include "text/utf8.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void header_takes_the_shortest_form(void **unused)
{
    (void)unused;
    uint8_t out[WEBSOCKET_HEADER_BYTES_MAX];
    assert_int_equal(websocket_header_write(out, WEBSOCKET_OPCODE_TEXT, 125), 2);
    assert_memory_equal(out, "\x81\x7d", 2);
    assert_int_equal(websocket_header_write(out, WEBSOCKET_OPCODE_BINARY, 126), 4);
    assert_memory_equal(out, "\x82\x7e\x00\x7e", 4);
    assert_int_equal(websocket_header_write(out, WEBSOCKET_OPCODE_BINARY, 65535), 4);
    assert_memory_equal(out, "\x82\x7e\xff\xff", 4);
    assert_int_equal(websocket_header_write(out, WEBSOCKET_OPCODE_BINARY, 65536), 10);
    assert_memory_equal(out, "\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 10);
}

static void masked_header_carries_the_mask(void **unused)
{
    (void)unused;
    uint8_t out[WEBSOCKET_MASKED_HEADER_BYTES_MAX];
    const uint8_t mask[4] = {1, 2, 3, 4};
    assert_int_equal(websocket_masked_header_write(out, WEBSOCKET_OPCODE_PING, 3, mask), 6);
    assert_memory_equal(out, "\x89\x83\x01\x02\x03\x04", 6);
    assert_int_equal(websocket_masked_header_write(out, WEBSOCKET_OPCODE_TEXT, 70000, mask), 14);
    assert_memory_equal(out, "\x81\xff\x00\x00\x00\x00\x00\x01\x11\x70\x01\x02\x03\x04", 14);
}

static void close_payload_is_code_and_reason(void **unused)
{
    (void)unused;
    char out[WEBSOCKET_CONTROL_BYTES_MAX];
    assert_int_equal(websocket_close_write(out, 4001, SLICE("late")), 6);
    assert_memory_equal(out, "\x0f\xa1late", 6);
    assert_int_equal(websocket_close_write(out, WEBSOCKET_CLOSE_NORMAL, SLICE_NONE), 2);
    assert_int_equal(websocket_close_write(out, WEBSOCKET_CLOSE_NO_CODE, SLICE("unsent")), 0);
}

static void close_reason_is_cut_between_characters(void **unused)
{
    (void)unused;
    char out[WEBSOCKET_CONTROL_BYTES_MAX];
    char reason[200];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(reason, 'a', sizeof reason);
        for (size_t i = shift; i + 3 <= sizeof reason; i += 3)
            memcpy(reason + i, "\xe2\x82\xac", 3);
        size_t len = websocket_close_write(out, 1000, (struct slice){reason, sizeof reason - 3});
        assert_in_range(len, WEBSOCKET_CONTROL_BYTES_MAX - 2, WEBSOCKET_CONTROL_BYTES_MAX);
        assert_true(utf8_valid((struct slice){out + 2, len - 2}));
    }
}

static bool is_written_text(struct slice frames)
{
    char *copy = exact_copy(frames);
    bool is_text = websocket_written_is_text((struct slice){copy, frames.len});
    free(copy);
    return is_text;
}

static void only_whole_text_frames_are_recognised_as_written(void **unused)
{
    (void)unused;
    static char long_frame[10 + 65536] = "\x81\x7f\0\0\0\0\0\1\0\0";
    static const struct slice bad[] = {
        SLICE_NONE,
        SLICE("\x81"),
        SLICE("\x81\x01"),
        SLICE("\x81\x7e\x00"),
        SLICE("\x81\x7e\x00\x02"
              "a"),
        SLICE("\x81\x7f\x00\x00\x00\x00\x00\x00\x00"),
        SLICE("\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff"
              "a"),
        SLICE("\x81\xff"
              "a"),
        SLICE("\x01\x01"
              "a"),
        SLICE("\x88\x00"),
        SLICE("\x81\x01"
              "a"
              "\x81"),
    };
    assert_true(is_written_text(SLICE("\x81\x00")));
    assert_true(is_written_text(SLICE("\x81\x01"
                                      "a"
                                      "\x81\x02"
                                      "bc")));
    assert_true(is_written_text((struct slice){long_frame, sizeof long_frame}));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(is_written_text(bad[i]));
}

static void accept_key_is_the_one_of_the_rfc(void **unused)
{
    (void)unused;
    char out[WEBSOCKET_ACCEPT_BYTES + 1];
    assert_true(websocket_accept_key(SLICE("dGhlIHNhbXBsZSBub25jZQ=="), out));
    assert_string_equal(out, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void key_of_another_size_is_refused(void **unused)
{
    (void)unused;
    char out[WEBSOCKET_ACCEPT_BYTES + 1];
    const struct slice bad[] = {
        SLICE_NONE,
        SLICE("dGhlIHNhbXBsZSBub25jZQ"),
        SLICE("dGhlIHNhbXBsZSBub25jZQ=A"),
        SLICE("dGhlIHNhbXBsZSBub25jZTE="),
        SLICE("dGhlIHNhbXBsZSBub25jZTEy"),
        SLICE("dGhlIHNhbXBsZSBub25j_Q=="),
        SLICE("dGhlIHNhbXBsZSBub25jZQ==="),
        SLICE("========================"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *copy = exact_copy(bad[i]);
        assert_false(websocket_accept_key((struct slice){copy, bad[i].len}, out));
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_takes_the_shortest_form),
        cmocka_unit_test(masked_header_carries_the_mask),
        cmocka_unit_test(close_payload_is_code_and_reason),
        cmocka_unit_test(close_reason_is_cut_between_characters),
        cmocka_unit_test(only_whole_text_frames_are_recognised_as_written),
        cmocka_unit_test(accept_key_is_the_one_of_the_rfc),
        cmocka_unit_test(key_of_another_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
