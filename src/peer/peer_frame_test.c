/* Frames of a peer link, whole and in pieces. */
#include "peer/peer_frame.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void written_frames_are_taken_one_by_one(void **state)
{
    (void)state;
    struct buffer out = BUFFER_INIT;
    assert_true(peer_frame_write(&out, (struct slice[]){SLICE("one"), SLICE(" frame")}, 2));
    assert_true(peer_frame_write(&out, NULL, 0));
    assert_true(peer_frame_write(&out, &SLICE("another"), 1));
    struct slice input = buffer_slice(&out), frame;
    assert_memory_equal(input.data, "\0\0\0\x09one", 7);
    assert_int_equal(peer_frame_take(&input, &frame), PEER_FRAME_WHOLE);
    assert_true(slice_is(frame, "one frame"));
    assert_int_equal(peer_frame_take(&input, &frame), PEER_FRAME_WHOLE);
    assert_int_equal(frame.len, 0);
    assert_int_equal(peer_frame_take(&input, &frame), PEER_FRAME_WHOLE);
    assert_true(slice_is(frame, "another"));
    assert_int_equal(input.len, 0);
    buffer_free(&out);
}

static void an_incomplete_frame_is_not_taken(void **state)
{
    (void)state;
    static const char whole[] = "\0\0\0\x05parts";
    for (size_t len = 0; len < sizeof(whole) - 1; len++) {
        char *bytes = exact_copy((struct slice){whole, len});
        struct slice input = {bytes, len}, frame = SLICE_NONE;
        assert_int_equal(peer_frame_take(&input, &frame), PEER_FRAME_INCOMPLETE);
        assert_int_equal(input.len, len);
        assert_null(frame.data);
        free(bytes);
    }
}

/* 16 MB and one more; the length alone decides. */
static void a_frame_beyond_its_bound_is_refused(void **state)
{
    (void)state;
    struct slice most = {"\x01\0\0\0", 4}, more = {"\x01\0\0\x01", 4}, frame;
    assert_int_equal(peer_frame_take(&most, &frame), PEER_FRAME_INCOMPLETE);
    assert_int_equal(peer_frame_take(&more, &frame), PEER_FRAME_TOO_LONG);
    assert_int_equal(peer_frame_take(&(struct slice){"\xff\xff\xff\xff", 4}, &frame),
                     PEER_FRAME_TOO_LONG);
    struct buffer out = BUFFER_INIT;
    char *bytes = calloc(1, PEER_FRAME_BYTES_MAX);
    assert_non_null(bytes);
    struct slice pieces[] = {{bytes, PEER_FRAME_BYTES_MAX}, SLICE("x")};
    assert_false(peer_frame_write(&out, pieces, 2));
    assert_int_equal(out.len, 0);
    assert_true(peer_frame_write(&out, pieces, 1));
    free(bytes);
    buffer_free(&out);
}

static void a_full_buffer_keeps_its_earlier_frames(void **state)
{
    (void)state;
    struct buffer out = BUFFER_BOUNDED(12);
    assert_true(peer_frame_write(&out, &SLICE("here"), 1));
    assert_false(peer_frame_write(&out, &SLICE("too much"), 1));
    assert_false(out.failed);
    assert_int_equal(out.len, 8);
    assert_true(peer_frame_write(&out, NULL, 0));
    assert_memory_equal(out.data, "\0\0\0\x04here\0\0\0\0", 12);
    buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_frames_are_taken_one_by_one),
        cmocka_unit_test(an_incomplete_frame_is_not_taken),
        cmocka_unit_test(a_frame_beyond_its_bound_is_refused),
        cmocka_unit_test(a_full_buffer_keeps_its_earlier_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
