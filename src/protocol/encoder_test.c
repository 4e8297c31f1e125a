/* Messages become framed blobs, and a message to many becomes one blob. */
#include "protocol/encoder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct dialect *const native = &DIALECT_TABLE_NATIVE;

static int set_up(void **state)
{
    struct encoder *encoder = malloc(sizeof(*encoder));
    if (!encoder)
        return -1;
    encoder_init(encoder);
    *state = encoder;
    return 0;
}

static int tear_down(void **state)
{
    encoder_free(*state);
    free(*state);
    return 0;
}

static void blob_is_one_unmasked_text_frame(void **state)
{
    struct message message = {.type = MESSAGE_OK, .id = SLICE("1")};
    struct blob *blob = encoder_encode(*state, native, &message);
    assert_non_null(blob);
    assert_int_equal((uint8_t)blob->bytes[0], 0x81);
    assert_int_equal(blob->bytes[1], strlen("{\"type\":\"ok\",\"id\":1}"));
    assert_true(slice_is(blob_payload(blob), "{\"type\":\"ok\",\"id\":1}"));
    assert_int_equal(blob->payload_at, 2);
    blob_drop(&blob);
}

static void payload_of_every_length_has_its_header(void **state)
{
    static const size_t sizes[] = {0, 97, 98, 99, 60000, 65535, 65536, 300000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *text = malloc(sizes[i] + 2);
        memset(text, 'x', sizes[i] + 2);
        text[0] = text[sizes[i] + 1] = '"';
        struct message message = {.type = MESSAGE_DELIVERY, .data = {text, sizes[i] + 2}};
        struct blob *blob = encoder_encode(*state, native, &message);
        assert_non_null(blob);
        size_t len = blob_payload(blob).len;
        assert_int_equal(len, sizes[i] + strlen("{\"type\":\"delivery\",\"data\":\"\"}"));
        assert_int_equal(blob->payload_at, len < 126 ? 2 : len < 65536 ? 4 : 10);
        blob_drop(&blob);
        free(text);
    }
}

static void large_scratch_is_freed(void **state)
{
    struct encoder *encoder = *state;
    char *text = calloc(1, 200000);
    memset(text, '1', 200000);
    struct message large = {.type = MESSAGE_DELIVERY, .data = {text, 200000}};
    struct message small = {.type = MESSAGE_OK};
    struct blob *blob = encoder_encode(encoder, native, &large);
    blob_drop(&blob);
    assert_int_equal(encoder->scratch.cap, 0);
    blob = encoder_encode(encoder, native, &small);
    blob_drop(&blob);
    assert_true(encoder->scratch.cap > 0);
    free(text);
}

static void heartbeat_acks_of_one_millisecond_share_one_blob(void **state)
{
    struct encoder *encoder = *state;
    struct blob *first = encoder_heartbeat_ack(encoder, native, 0);
    struct blob *second = encoder_heartbeat_ack(encoder, native, 0);
    assert_ptr_equal(first, second);
    assert_int_equal(first->refs, 3); /* two of ours and the encoder's */
    struct blob *later = encoder_heartbeat_ack(encoder, native, 1);
    assert_ptr_not_equal(first, later);
    assert_int_equal(first->refs, 2);
    assert_true(
        slice_is(blob_payload(first),
                 "{\"type\":\"heartbeat_ack\",\"server_time\":\"1970-01-01T00:00:00.000Z\"}"));
    assert_true(
        slice_is(blob_payload(later),
                 "{\"type\":\"heartbeat_ack\",\"server_time\":\"1970-01-01T00:00:00.001Z\"}"));
    blob_drop(&first);
    blob_drop(&second);
    blob_drop(&later);
}

static void broadcast_is_encoded_once_when_first_needed(void **state)
{
    struct message message = {.type = MESSAGE_OK};
    struct broadcast broadcast = {.message = &message};
    assert_null(broadcast.blobs[DIALECT_SLOT_NATIVE]);
    struct blob *blob = broadcast_blob(&broadcast, *state, native);
    assert_non_null(blob);
    assert_ptr_equal(broadcast_blob(&broadcast, *state, native), blob);
    assert_int_equal(blob->refs, 1);
    struct blob *kept = blob_share(blob);
    broadcast_end(&broadcast);
    assert_null(broadcast.blobs[DIALECT_SLOT_NATIVE]);
    assert_true(slice_is(blob_payload(kept), "{\"type\":\"ok\"}"));
    blob_drop(&kept);
    broadcast_end(&broadcast);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(blob_is_one_unmasked_text_frame, set_up, tear_down),
        cmocka_unit_test_setup_teardown(payload_of_every_length_has_its_header, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_scratch_is_freed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(heartbeat_acks_of_one_millisecond_share_one_blob, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(broadcast_is_encoded_once_when_first_needed, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
