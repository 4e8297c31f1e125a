/* Frames between gateways and aggregators: read as written, and what is refused. */
#include "aggregate/aggregate_frame.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct aggregate_frame FRAMES[] = {
    {.kind = AGGREGATE_HELLO,
     .version = AGGREGATE_VERSION,
     .gateway_id = {"gw-1", 4},
     .instance = {"0123", 4},
     .process = {"boot:1:2", 8},
     .terms = {{15000, 0, 5000, 1, 30000, 2000, -1}}},
    {.kind = AGGREGATE_WELCOME, .version = 7, .is_available = true},
    {.kind = AGGREGATE_REFUSAL, .reason = {"because", 7}},
    {.kind = AGGREGATE_CALL,
     .id = UINT64_MAX,
     .operation = AGGREGATE_TOPIC_UNSUBSCRIBE,
     .sent_ms = INT64_MIN,
     .body = {"body", 4}},
    {.kind = AGGREGATE_ANSWER, .id = 3, .body = {"", 0}},
    {.kind = AGGREGATE_UNDONE, .id = 1},
    {.kind = AGGREGATE_NOTICE, .notice = AGGREGATE_LEAVING, .body = {"x", 1}},
    {.kind = AGGREGATE_PING, .sent_ms = 123456789},
    {.kind = AGGREGATE_PONG},
};

enum { FRAME_COUNT = sizeof(FRAMES) / sizeof(FRAMES[0]) };

static void test_frames_are_read_as_written(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < FRAME_COUNT; i++) {
        struct buffer out = BUFFER_INIT, again = BUFFER_INIT;
        struct aggregate_frame read;
        aggregate_frame_write(&out, &FRAMES[i]);
        assert_true(aggregate_frame_read(buffer_slice(&out), &read));
        assert_int_equal(read.kind, FRAMES[i].kind);
        assert_int_equal(read.id, FRAMES[i].id);
        assert_int_equal(read.operation, FRAMES[i].operation);
        assert_int_equal(read.notice, FRAMES[i].notice);
        assert_true(read.sent_ms == FRAMES[i].sent_ms);
        assert_true(slice_equal(read.body, FRAMES[i].body));
        assert_true(slice_equal(read.gateway_id, FRAMES[i].gateway_id));
        assert_memory_equal(&read.terms, &FRAMES[i].terms, sizeof(read.terms));
        aggregate_frame_write(&again, &read);
        assert_true(slice_equal(buffer_slice(&out), buffer_slice(&again)));
        buffer_free(&out);
        buffer_free(&again);
    }
}

static void test_every_cut_of_a_frame_without_a_body_is_refused(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < FRAME_COUNT; i++) {
        struct buffer out = BUFFER_INIT;
        struct aggregate_frame read;
        aggregate_frame_write(&out, &FRAMES[i]);
        bool has_body = FRAMES[i].kind == AGGREGATE_CALL || FRAMES[i].kind == AGGREGATE_ANSWER ||
                        FRAMES[i].kind == AGGREGATE_NOTICE;
        for (size_t len = 0; len < out.len && !has_body; len++) {
            char *copy = exact_copy((struct slice){out.data, len});
            assert_false(aggregate_frame_read((struct slice){copy, len}, &read));
            free(copy);
        }
        buffer_free(&out);
    }
}

static void test_unknown_kinds_operations_and_notices_are_refused(void **unused)
{
    (void)unused;
    struct aggregate_frame read;
    assert_false(aggregate_frame_read(SLICE("\x63"), &read));
    assert_false(aggregate_frame_read(SLICE("\x03\x01\x63\x00"), &read));
    assert_false(aggregate_frame_read(SLICE("\x06\x63"), &read));
    assert_false(aggregate_frame_read(SLICE(""), &read));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_are_read_as_written),
        cmocka_unit_test(test_every_cut_of_a_frame_without_a_body_is_refused),
        cmocka_unit_test(test_unknown_kinds_operations_and_notices_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
