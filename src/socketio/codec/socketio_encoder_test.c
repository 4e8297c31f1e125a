/* What the encoder does for Socket.IO's dialects alone: offsets of events, and blobs packed from text. */
#include "protocol/encoder.h"
#include "socketio/codec/socketio_dialect.h"
#include "socketio/codec/socketio_offset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

/* ---- offsets ---- */

static struct blob *encode_event(struct encoder *encoder)
{
    struct message message = {
        .type = MESSAGE_DELIVERY, .id = SLICE_NONE, .data = SLICE("{\"a\":1}")};
    struct blob *blob = encoder_encode(encoder, &DIALECT_TABLE_SOCKETIO, &message);
    assert_non_null(blob);
    return blob;
}

static void offsets_grow_even_when_the_clock_goes_back(void **state)
{
    struct clock clock = {.wall_ms = 1000};
    struct encoder *encoder = *state;
    encoder->offset_clock = &clock;
    static const int64_t times_ms[] = {1000, 1000, 900, 2000};
    static const uint64_t expected[] = {1000000, 1000001, 1000002, 2000000};
    for (size_t i = 0; i < 4; i++) {
        clock.wall_ms = times_ms[i];
        struct blob *blob = encode_event(encoder);
        assert_true(socketio_offset_of(blob) == expected[i]);
        blob_drop(&blob);
    }
    encoder->offset_clock = NULL;
}

/* The clock of the gateway to which a client comes back may be behind. */
static void an_event_encoded_elsewhere_gets_an_offset_beyond_those_passed(void **state)
{
    struct clock clock = {.wall_ms = 1000};
    struct encoder *encoder = *state;
    encoder->offset_clock = &clock;
    struct blob *blob = encode_event(encoder);
    char before[64], after[64];
    size_t len = blob->len;
    memcpy(before, blob->bytes, len);
    encoder_pass(encoder, 5000000);
    encoder_pass(encoder, 10);
    socketio_offset_replace(blob, encoder_next_offset(encoder));
    assert_true(socketio_offset_of(blob) == 5000001);
    memcpy(after, blob->bytes, len);
    enum { OFFSET_AND_END = 18 };
    assert_memory_equal(before, after, len - OFFSET_AND_END);
    assert_memory_equal(after + len - 2, "\"]", 2);
    blob_drop(&blob);
    encoder->offset_clock = NULL;
}

/* ---- packed ---- */

static const struct message online_in_call = {
    .type = MESSAGE_CONTACT_PRESENCE,
    .id = SLICE_NONE,
    .change = {.presence = {.user_id = SLICE("bob"), .in_call = true},
               .announcement = PRESENCE_ANNOUNCE_ONLINE},
};

static void a_packed_blob_has_the_frames_and_the_offset_of_its_text(void **state)
{
    struct clock clock = {.wall_ms = 1000};
    struct encoder *encoder = *state;
    struct broadcast broadcast = {.message = &online_in_call};
    encoder->offset_clock = &clock;
    struct blob *packed = broadcast_blob(&broadcast, encoder, &DIALECT_TABLE_SOCKETIO_PACKED);
    assert_non_null(packed);
    assert_ptr_equal(broadcast_blob(&broadcast, encoder, &DIALECT_TABLE_SOCKETIO_PACKED), packed);
    struct blob *text = broadcast_blob(&broadcast, encoder, &DIALECT_TABLE_SOCKETIO);
    assert_true(socketio_offset_of(text) == 1000000);
    assert_true(encoder->offset == 1000000);
    char offset[] = "\xb0"
                    "00000000000f4240";
    assert_memory_equal(packed->bytes + packed->len - 17, offset, 17);
    struct slice first = {packed->bytes + 2, (size_t)packed->bytes[1]};
    char expected[] = "\x83\xa4type\x02\xa3nsp\xa1/\xa4"
                      "data\x92\xad"
                      "friend_online\x81\xa6userId\xa3"
                      "bob";
    assert_int_equal((uint8_t)packed->bytes[0], 0x82);
    assert_true(slice_equal(first, (struct slice){expected, sizeof(expected) - 1}));
    assert_int_equal((uint8_t)first.data[first.len], 0x82);
    broadcast_end(&broadcast);
    encoder->offset_clock = NULL;
}

static void translating_a_blob_packs_a_copy_and_leaves_the_text_alone(void **state)
{
    struct message message = {
        .type = MESSAGE_DELIVERY, .id = SLICE_NONE, .data = SLICE("\"\\u0061\"")};
    struct blob *text = encoder_encode(*state, &DIALECT_TABLE_SOCKETIO, &message);
    struct blob *same = encoder_translate(*state, &DIALECT_TABLE_SOCKETIO, text);
    assert_ptr_equal(same, text);
    struct blob *packed = encoder_translate(*state, &DIALECT_TABLE_SOCKETIO_PACKED, text);
    assert_true(slice_is(blob_payload(text), "42[\"delivery\",{\"data\":\"\\u0061\"}]"));
    assert_memory_equal(packed->bytes + packed->len - 2,
                        "\xa1"
                        "a",
                        2);
    blob_drop(&same);
    blob_drop(&text);
    blob_drop(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(offsets_grow_even_when_the_clock_goes_back, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            an_event_encoded_elsewhere_gets_an_offset_beyond_those_passed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_packed_blob_has_the_frames_and_the_offset_of_its_text,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(translating_a_blob_packs_a_copy_and_leaves_the_text_alone,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
