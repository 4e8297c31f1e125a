/*
 * The decoder under failing allocations: whichever one fails, the result is an error that closes with 1011,
 * nothing leaks (the sanitizer checks), and whole frames, which need no memory, are still decoded.
 */
#include "protocol/websocket/websocket.h"

#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct websocket_limits limits = {1000, false};

/* Every kind of incomplete input: a cut header, cut payloads, fragments, a cut control frame. */
static const char stream[] = "\x01\x03one"
                             "\x89\x04ping"
                             "\x00\x05 two "
                             "\x80\x05three"
                             "\x82\x0aten bytes!"
                             "\x8a\x02hi";

/* Decodes the stream in pieces, counts the events and returns the last one. */
static enum websocket_event decode_in_pieces(size_t piece_bytes, unsigned *events,
                                             struct websocket_message *message)
{
    struct websocket_decoder decoder = {NULL};
    enum websocket_event event = WEBSOCKET_NEED_MORE;
    *events = 0;
    for (size_t at = 0; at < sizeof stream - 1 && event != WEBSOCKET_ERROR; at += piece_bytes) {
        char piece[sizeof stream];
        char *data = piece;
        size_t left = sizeof stream - 1 - at;
        size_t len = left < piece_bytes ? left : piece_bytes;
        memcpy(piece, stream + at, len);
        do {
            event = websocket_decode(&decoder, &limits, &data, &len, message);
            *events += event != WEBSOCKET_NEED_MORE && event != WEBSOCKET_ERROR;
        } while (event != WEBSOCKET_NEED_MORE && event != WEBSOCKET_ERROR);
    }
    if (event == WEBSOCKET_ERROR)
        assert_null(decoder.partial);
    websocket_decoder_free(&decoder);
    return event;
}

static void any_failing_allocation_closes_with_1011(void **unused)
{
    (void)unused;
    for (size_t piece_bytes = 1; piece_bytes < sizeof stream; piece_bytes++) {
        size_t failed = 1;
        for (size_t n = 1; failed > 0; n++) {
            struct websocket_message message = {0};
            unsigned events;
            alloc_fault_after(n);
            enum websocket_event event = decode_in_pieces(piece_bytes, &events, &message);
            failed = alloc_fault_off();
            assert_int_equal(event, failed ? WEBSOCKET_ERROR : WEBSOCKET_NEED_MORE);
            if (failed)
                assert_int_equal(message.close_code, WEBSOCKET_CLOSE_INTERNAL);
            else
                assert_int_equal(events, 4);
            assert_true(n < 1000);
        }
    }
}

static void whole_frames_need_no_memory(void **unused)
{
    (void)unused;
    char frames[] = "\x81\x05hello\x89\x00\x82\x03"
                    "abc";
    char *data = frames;
    size_t len = sizeof frames - 1;
    struct websocket_decoder decoder = {NULL};
    struct websocket_message message;
    alloc_fault_from(1);
    assert_int_equal(websocket_decode(&decoder, &limits, &data, &len, &message), WEBSOCKET_TEXT);
    assert_int_equal(websocket_decode(&decoder, &limits, &data, &len, &message), WEBSOCKET_PING);
    assert_int_equal(websocket_decode(&decoder, &limits, &data, &len, &message), WEBSOCKET_BINARY);
    assert_int_equal(websocket_decode(&decoder, &limits, &data, &len, &message),
                     WEBSOCKET_NEED_MORE);
    alloc_fault_off();
    assert_int_equal(alloc_fault_seen(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_failing_allocation_closes_with_1011),
        cmocka_unit_test(whole_frames_need_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
