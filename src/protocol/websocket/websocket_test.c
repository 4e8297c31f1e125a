#include "protocol/websocket/websocket.h"

#include "protocol/websocket/websocket_encode.h"
#include "protocol/websocket/websocket_mask.h"
#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define MESSAGE_BYTES_MAX 1000
#define FINAL 0x80

static const struct websocket_limits server = {MESSAGE_BYTES_MAX, true};
static const struct websocket_limits client = {MESSAGE_BYTES_MAX, false};

/* A stream of bytes as a client would send it. */
struct stream {
    char bytes[8192];
    size_t len;
};

/* The events of a stream as text: "text(abc) ping() error(1002)". */
struct event_log {
    char text[8192];
    size_t len;
};

static void send_frame(struct stream *stream, uint8_t first, struct slice payload)
{
    static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    uint8_t header[WEBSOCKET_MASKED_HEADER_BYTES_MAX];
    size_t size = websocket_masked_header_write(header, WEBSOCKET_OPCODE_TEXT, payload.len, mask);
    header[0] = first;
    assert_true(stream->len + size + payload.len <= sizeof stream->bytes);
    memcpy(stream->bytes + stream->len, header, size);
    stream->len += size;
    if (payload.len > 0)
        memcpy(stream->bytes + stream->len, payload.data, payload.len);
    websocket_unmask(stream->bytes + stream->len, payload.len, websocket_mask_of(mask));
    stream->len += payload.len;
}

static void send_raw(struct stream *stream, struct slice bytes)
{
    memcpy(stream->bytes + stream->len, bytes.data, bytes.len);
    stream->len += bytes.len;
}

static void log_event(struct event_log *log, enum websocket_event event,
                      const struct websocket_message *message)
{
    static const char *const names[] = {"", "text", "binary", "ping", "pong", "close", "error"};
    char *end = log->text + log->len;
    size_t capacity = sizeof log->text - log->len;
    if (event == WEBSOCKET_ERROR)
        log->len += (size_t)snprintf(end, capacity, "error(%d) ", message->close_code);
    else if (event == WEBSOCKET_CLOSE)
        log->len += (size_t)snprintf(end, capacity, "close(%d %.*s) ", message->close_code,
                                     (int)message->len, message->data);
    else
        log->len += (size_t)snprintf(end, capacity, "%s(%.*s) ", names[event], (int)message->len,
                                     message->data);
}

/* Decodes an exact copy of one chunk, so that the sanitizer finds any access outside it. */
static bool decode_chunk(struct websocket_decoder *decoder, const struct websocket_limits *limits,
                         const char *bytes, size_t len, struct event_log *log)
{
    char *chunk = exact_copy((struct slice){bytes, len});
    char *data = chunk;
    struct websocket_message message;
    enum websocket_event event;
    do {
        event = websocket_decode(decoder, limits, &data, &len, &message);
        if (event != WEBSOCKET_NEED_MORE)
            log_event(log, event, &message);
    } while (event != WEBSOCKET_NEED_MORE && event != WEBSOCKET_CLOSE && event != WEBSOCKET_ERROR);
    if (event == WEBSOCKET_NEED_MORE)
        assert_int_equal(len, 0);
    free(chunk);
    return event == WEBSOCKET_NEED_MORE;
}

static void decode_in_chunks(const struct stream *stream, const struct websocket_limits *limits,
                             size_t chunk_bytes, struct event_log *log)
{
    struct websocket_decoder decoder = {NULL};
    bool open = true;
    log->len = 0;
    log->text[0] = '\0';
    for (size_t at = 0; open && at < stream->len; at += chunk_bytes) {
        size_t left = stream->len - at;
        open = decode_chunk(&decoder, limits, stream->bytes + at,
                            left < chunk_bytes ? left : chunk_bytes, log);
    }
    websocket_decoder_free(&decoder);
}

/* The events must be the same for every size of chunks. */
static void expect_events(const struct stream *stream, const struct websocket_limits *limits,
                          const char *expected)
{
    static struct event_log log;
    for (size_t chunk_bytes = 1; chunk_bytes <= 20; chunk_bytes++) {
        decode_in_chunks(stream, limits, chunk_bytes, &log);
        assert_string_equal(log.text, expected);
    }
    decode_in_chunks(stream, limits, stream->len, &log);
    assert_string_equal(log.text, expected);
}

static void expect_frame(uint8_t first, struct slice payload, const char *expected)
{
    struct stream stream = {.len = 0};
    send_frame(&stream, first, payload);
    expect_events(&stream, &server, expected);
}

static void expect_raw(struct slice bytes, const struct websocket_limits *limits,
                       const char *expected)
{
    struct stream stream = {.len = 0};
    send_raw(&stream, bytes);
    expect_events(&stream, limits, expected);
}

static void whole_messages_are_decoded(void **unused)
{
    (void)unused;
    struct stream stream = {.len = 0};
    send_frame(&stream, FINAL | WEBSOCKET_OPCODE_TEXT, SLICE("hello, this is a masked text"));
    send_frame(&stream, FINAL | WEBSOCKET_OPCODE_BINARY, SLICE("\xff\xfe"));
    send_frame(&stream, FINAL | WEBSOCKET_OPCODE_TEXT, SLICE(""));
    send_frame(&stream, FINAL | WEBSOCKET_OPCODE_PING, SLICE("p"));
    send_frame(&stream, FINAL | WEBSOCKET_OPCODE_PONG, SLICE(""));
    expect_events(&stream, &server,
                  "text(hello, this is a masked text) binary(\xff\xfe) text() ping(p) pong() ");
}

static void client_side_takes_unmasked_frames(void **unused)
{
    (void)unused;
    expect_raw(SLICE("\x81\x02hi\x89\x00"), &client, "text(hi) ping() ");
    expect_raw(SLICE("\x81\x82"
                     "abcd"
                     "hi"),
               &client, "error(1002) ");
    expect_raw(SLICE("\x81\x02hi"), &server, "error(1002) ");
}

static void control_frames_between_fragments_are_decoded(void **unused)
{
    (void)unused;
    struct stream stream = {.len = 0};
    send_frame(&stream, WEBSOCKET_OPCODE_TEXT, SLICE("one \xe2"));
    send_frame(&stream, FINAL | WEBSOCKET_OPCODE_PING, SLICE("in between"));
    send_frame(&stream, WEBSOCKET_OPCODE_CONTINUATION, SLICE(""));
    send_frame(&stream, WEBSOCKET_OPCODE_CONTINUATION, SLICE("\x82\xac two "));
    send_frame(&stream, FINAL | WEBSOCKET_OPCODE_PONG, SLICE("again"));
    send_frame(&stream, FINAL | WEBSOCKET_OPCODE_CONTINUATION, SLICE("three"));
    send_frame(&stream, FINAL | WEBSOCKET_OPCODE_BINARY, SLICE("next"));
    expect_events(&stream, &server,
                  "ping(in between) pong(again) text(one \xe2\x82\xac two three) binary(next) ");
}

static void every_length_form_is_decoded(void **unused)
{
    (void)unused;
    static char payload[MESSAGE_BYTES_MAX + 1];
    static char expected[MESSAGE_BYTES_MAX + 20];
    const size_t lengths[] = {1, 7, 8, 9, 124, 125, 126, 127, 999, MESSAGE_BYTES_MAX};
    memset(payload, 'x', sizeof payload);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        snprintf(expected, sizeof expected, "binary(%.*s) ", (int)lengths[i], payload);
        expect_frame(FINAL | WEBSOCKET_OPCODE_BINARY, (struct slice){payload, lengths[i]},
                     expected);
    }
    expect_frame(FINAL | WEBSOCKET_OPCODE_BINARY, (struct slice){payload, sizeof payload},
                 "error(1009) ");
}

static void eight_byte_length_is_read(void **unused)
{
    (void)unused;
    enum { FRAME_BYTES = 10 + 65536 };
    char *frame = calloc(1, FRAME_BYTES);
    const struct websocket_limits large = {65536, false};
    struct websocket_decoder decoder = {NULL};
    struct websocket_message message;
    char *data = frame;
    size_t len = FRAME_BYTES;
    assert_non_null(frame);
    memcpy(frame, "\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 10);
    assert_int_equal(websocket_decode(&decoder, &large, &data, &len, &message), WEBSOCKET_BINARY);
    assert_int_equal(message.len, 65536);
    assert_ptr_equal(message.data, frame + 10);
    free(frame);
}

static void protocol_faults_close_with_1002(void **unused)
{
    (void)unused;
    static const char long_control[126] = {0};
    for (unsigned bit = 0x10; bit <= 0x40; bit <<= 1)
        expect_frame((uint8_t)(FINAL | bit | WEBSOCKET_OPCODE_TEXT), SLICE("x"), "error(1002) ");
    for (unsigned opcode = 0; opcode < 16; opcode++) {
        if (opcode == 0 || (opcode > 2 && opcode < 8) || opcode > 10)
            expect_frame((uint8_t)(FINAL | opcode), SLICE("x"), "error(1002) ");
    }
    expect_frame(WEBSOCKET_OPCODE_PING, SLICE("x"), "error(1002) ");
    expect_frame(FINAL | WEBSOCKET_OPCODE_PING, (struct slice){long_control, 126}, "error(1002) ");
    expect_raw(SLICE("\x81\xfe\x00\x7d"
                     "mask"),
               &server, "error(1002) ");
    expect_raw(SLICE("\x81\xff\x00\x00\x00\x00\x00\x00\xff\xff"
                     "mask"),
               &server, "error(1002) ");
    expect_raw(SLICE("\x81\xff\x80\x00\x00\x00\x00\x00\x00\x00"
                     "mask"),
               &server, "error(1002) ");
}

static void new_message_inside_a_fragmented_one_is_refused(void **unused)
{
    (void)unused;
    struct stream stream = {.len = 0};
    send_frame(&stream, WEBSOCKET_OPCODE_TEXT, SLICE("one"));
    send_frame(&stream, FINAL | WEBSOCKET_OPCODE_TEXT, SLICE("two"));
    expect_events(&stream, &server, "error(1002) ");
}

/* The fault is in the first bytes; the decoder must not wait for more. */
static void faults_are_found_before_the_frame_is_complete(void **unused)
{
    (void)unused;
    expect_raw(SLICE("\x91"), &server, "error(1002) ");
    expect_raw(SLICE("\x83"), &server, "error(1002) ");
    expect_raw(SLICE("\x09"), &server, "error(1002) ");
    expect_raw(SLICE("\x80"), &server, "error(1002) ");
    expect_raw(SLICE("\x89\xfe"), &server, "error(1002) ");
    expect_raw(SLICE("\x81\x05"), &server, "error(1002) ");
    expect_raw(SLICE("\x81\xfe\x03\xe9"
                     "mask"),
               &server, "error(1009) ");
    expect_raw(SLICE("\x81\xff\x00\x00\x10\x00\x00\x00\x00\x00"
                     "mask"),
               &server, "error(1009) ");
    expect_raw(SLICE("\x81\x7d"
                     "abc\xff"),
               &client, "error(1007) ");
    expect_raw(SLICE("\x01\x01\xf4\x80\x01\x90"), &client, "error(1007) ");
}

static void fragments_count_together_for_the_bound(void **unused)
{
    (void)unused;
    static char half[MESSAGE_BYTES_MAX / 2 + 1];
    struct stream stream = {.len = 0};
    send_frame(&stream, WEBSOCKET_OPCODE_BINARY, (struct slice){half, sizeof half});
    send_frame(&stream, FINAL | WEBSOCKET_OPCODE_CONTINUATION, (struct slice){half, sizeof half});
    expect_events(&stream, &server, "error(1009) ");
}

static void invalid_text_closes_with_1007(void **unused)
{
    (void)unused;
    expect_frame(FINAL | WEBSOCKET_OPCODE_TEXT, SLICE("plain \xc0\xaf"), "error(1007) ");
    expect_frame(FINAL | WEBSOCKET_OPCODE_TEXT, SLICE("cut \xe2\x82"), "error(1007) ");
    struct stream stream = {.len = 0};
    send_frame(&stream, WEBSOCKET_OPCODE_TEXT, SLICE("cut \xe2"));
    send_frame(&stream, FINAL | WEBSOCKET_OPCODE_CONTINUATION, SLICE("\x82"));
    expect_events(&stream, &server, "error(1007) ");
}

static void close_frames_are_decoded(void **unused)
{
    (void)unused;
    const uint8_t close = FINAL | WEBSOCKET_OPCODE_CLOSE;
    expect_frame(close, SLICE(""), "close(1005 ) ");
    expect_frame(close, SLICE("\x03\xe8"), "close(1000 ) ");
    expect_frame(close,
                 SLICE("\x0f\xa1"
                       "bye"),
                 "close(4001 bye) ");
    expect_frame(close, SLICE("\x03"), "error(1002) ");
    expect_frame(close, SLICE("\x03\xe8\xff"), "error(1007) ");
}

static void only_allowed_close_codes_are_valid(void **unused)
{
    (void)unused;
    for (unsigned code = 0; code <= 0xffff; code++) {
        bool invalid = code < 1000 || (code >= 1004 && code <= 1006) ||
                       (code >= 1015 && code <= 2999) || code >= 5000;
        assert_int_equal(websocket_close_code_valid(code), !invalid);
    }
    expect_frame(FINAL | WEBSOCKET_OPCODE_CLOSE, SLICE("\x03\xed"), "error(1002) ");
}

static void whole_frame_is_returned_in_place_without_memory(void **unused)
{
    (void)unused;
    struct stream stream = {.len = 0};
    struct websocket_decoder decoder = {NULL};
    struct websocket_message message;
    send_frame(&stream, FINAL | WEBSOCKET_OPCODE_TEXT, SLICE("in place"));
    char *data = stream.bytes;
    size_t len = stream.len;
    assert_int_equal(websocket_decode(&decoder, &server, &data, &len, &message), WEBSOCKET_TEXT);
    assert_ptr_equal(message.data, stream.bytes + 6);
    assert_null(decoder.partial);
    assert_int_equal(len, 0);
}

static void memory_grows_with_arrived_bytes_only(void **unused)
{
    (void)unused;
    const struct websocket_limits large = {1 << 30, false};
    struct websocket_decoder decoder = {NULL};
    struct websocket_message message;
    char start[] = "\x82\x7f\x00\x00\x00\x00\x3f\xff\xff\xff"
                   "four";
    char *data = start;
    size_t len = sizeof start - 1;
    assert_int_equal(websocket_decode(&decoder, &large, &data, &len, &message),
                     WEBSOCKET_NEED_MORE);
    assert_in_range(websocket_decoder_memory_bytes(&decoder), 1, 256);
    websocket_decoder_free(&decoder);
    assert_null(decoder.partial);
    assert_int_equal(websocket_decoder_memory_bytes(&decoder), 0);
}

static void partial_is_freed_after_its_message(void **unused)
{
    (void)unused;
    struct websocket_decoder decoder = {NULL};
    struct websocket_message message;
    char first[] = "\x81\x04"
                   "ab";
    char second[] = "cd";
    char *data = first;
    size_t len = 4;
    assert_int_equal(websocket_decode(&decoder, &client, &data, &len, &message),
                     WEBSOCKET_NEED_MORE);
    assert_non_null(decoder.partial);
    data = second;
    len = 2;
    assert_int_equal(websocket_decode(&decoder, &client, &data, &len, &message), WEBSOCKET_TEXT);
    assert_memory_equal(message.data, "abcd", 4);
    assert_int_equal(websocket_decode(&decoder, &client, &data, &len, &message),
                     WEBSOCKET_NEED_MORE);
    assert_null(decoder.partial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_messages_are_decoded),
        cmocka_unit_test(client_side_takes_unmasked_frames),
        cmocka_unit_test(control_frames_between_fragments_are_decoded),
        cmocka_unit_test(every_length_form_is_decoded),
        cmocka_unit_test(eight_byte_length_is_read),
        cmocka_unit_test(protocol_faults_close_with_1002),
        cmocka_unit_test(new_message_inside_a_fragmented_one_is_refused),
        cmocka_unit_test(faults_are_found_before_the_frame_is_complete),
        cmocka_unit_test(fragments_count_together_for_the_bound),
        cmocka_unit_test(invalid_text_closes_with_1007),
        cmocka_unit_test(close_frames_are_decoded),
        cmocka_unit_test(only_allowed_close_codes_are_valid),
        cmocka_unit_test(whole_frame_is_returned_in_place_without_memory),
        cmocka_unit_test(memory_grows_with_arrived_bytes_only),
        cmocka_unit_test(partial_is_freed_after_its_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
