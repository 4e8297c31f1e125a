#include "base/blob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void blob_holds_head_and_payload(void **state)
{
    (void)state;
    struct blob *blob = blob_make(SLICE("\x81\x05"), SLICE("hello"));
    assert_int_equal(blob->len, 7);
    assert_memory_equal(blob->bytes, "\x81\x05hello", 7);
    assert_true(slice_is(blob_payload(blob), "hello"));
    blob_drop(&blob);
    assert_null(blob);
}

static void either_part_may_be_empty(void **state)
{
    (void)state;
    struct blob *blob = blob_make(SLICE("\x8a\x00"), SLICE_NONE);
    assert_int_equal(blob->len, 2);
    assert_int_equal(blob_payload(blob).len, 0);
    blob_drop(&blob);
    blob = blob_make(SLICE_NONE, SLICE("x"));
    assert_true(slice_is(blob_payload(blob), "x"));
    blob_drop(&blob);
}

static void last_reference_frees_the_blob(void **state)
{
    (void)state;
    struct blob *blob = blob_make(SLICE("h"), SLICE("p"));
    struct blob *second = blob_share(blob);
    struct blob *third = blob_share(blob);
    assert_ptr_equal(second, blob);
    assert_int_equal(blob->refs, 3);
    blob_drop(&blob);
    blob_drop(&third);
    assert_int_equal(second->refs, 1);
    assert_true(slice_is(blob_payload(second), "p"));
    blob_drop(&second);
    blob_drop(&second);
    assert_null(second);
}

static void head_beyond_255_bytes_is_refused(void **state)
{
    (void)state;
    char head[256] = {0};
    struct blob *blob = blob_make((struct slice){head, 255}, SLICE("p"));
    assert_true(slice_is(blob_payload(blob), "p"));
    blob_drop(&blob);
    assert_null(blob_make((struct slice){head, 256}, SLICE("p")));
}

static void payload_beyond_uint32_is_refused(void **state)
{
    (void)state;
    char byte = 'x'; /* the length alone decides: nothing is read */
    assert_null(blob_make(SLICE("h"), (struct slice){&byte, UINT32_MAX}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blob_holds_head_and_payload),
        cmocka_unit_test(either_part_may_be_empty),
        cmocka_unit_test(last_reference_frees_the_blob),
        cmocka_unit_test(head_beyond_255_bytes_is_refused),
        cmocka_unit_test(payload_beyond_uint32_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
