/* Engine.IO packets in frames and in polling payloads. */
#include "socketio/codec/engineio.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Writes the packets of a payload as "type:data ", binary ones in brackets, and "bad" where one is malformed. */
static void expect_payload(const char *text, size_t len, const char *expected)
{
    struct engineio_payload payload;
    struct engineio_packet packet;
    enum engineio_next next;
    char *copy = exact_copy((struct slice){text, len});
    struct buffer seen = BUFFER_INIT;
    engineio_payload_start(&payload, copy, len);
    while ((next = engineio_payload_next(&payload, &packet)) == ENGINEIO_PACKET)
        buffer_printf(&seen, packet.binary ? "%d[%.*s] " : "%d:%.*s ", (int)packet.type,
                      (int)packet.len, packet.data);
    if (next == ENGINEIO_BAD)
        buffer_append_text(&seen, "bad");
    assert_int_equal(engineio_payload_next(&payload, &packet), ENGINEIO_END);
    buffer_append_byte(&seen, '\0');
    assert_string_equal(seen.data, expected);
    buffer_free(&seen);
    free(copy);
}

#define EXPECT_PAYLOAD(text, expected) expect_payload((text), sizeof(text) - 1, (expected))

static void a_payload_is_read_packet_by_packet(void **unused)
{
    (void)unused;
    EXPECT_PAYLOAD("4hello", "4:hello ");
    EXPECT_PAYLOAD("4hello\x1e"
                   "2\x1e"
                   "3probe",
                   "4:hello 2: 3:probe ");
    EXPECT_PAYLOAD("bQUJD", "4[ABC] ");
    EXPECT_PAYLOAD("bQUI=\x1e"
                   "4x",
                   "4[AB] 4:x ");
    EXPECT_PAYLOAD("bQUI\n\x1e"
                   "bQUJD",
                   "4[AB] 4[ABC] ");
    EXPECT_PAYLOAD("b", "4[] ");
}

static void a_malformed_packet_ends_the_payload(void **unused)
{
    (void)unused;
    EXPECT_PAYLOAD("", "bad");
    EXPECT_PAYLOAD("7", "bad");
    EXPECT_PAYLOAD("x", "bad");
    EXPECT_PAYLOAD("4a\x1e", "4:a bad");
    EXPECT_PAYLOAD("4a\x1e\x1e"
                   "4b",
                   "4:a bad");
    EXPECT_PAYLOAD("bQ", "bad");
    EXPECT_PAYLOAD("bQUI=QUI=", "bad");
    EXPECT_PAYLOAD("bQU J", "bad");
    EXPECT_PAYLOAD("b!!!!", "bad");
}

static void a_payload_has_a_limited_number_of_packets(void **unused)
{
    (void)unused;
    struct engineio_payload payload;
    struct engineio_packet packet;
    struct buffer text = BUFFER_INIT;
    for (int i = 0; i < ENGINEIO_PACKETS_MAX + 1; i++)
        engineio_payload_append(&text, SLICE("3"));
    char *copy = exact_copy(buffer_slice(&text));
    engineio_payload_start(&payload, copy, text.len);
    for (int i = 0; i < ENGINEIO_PACKETS_MAX; i++)
        assert_int_equal(engineio_payload_next(&payload, &packet), ENGINEIO_PACKET);
    assert_int_equal(engineio_payload_next(&payload, &packet), ENGINEIO_BAD);
    assert_int_equal(engineio_payload_next(&payload, &packet), ENGINEIO_END);
    buffer_free(&text);
    free(copy);
}

/* `held` is the data of the packet in the frame; NULL: the packet is malformed. */
static void expect_frame(const char *frame, bool binary, enum engineio_type type, bool is_binary,
                         const char *held)
{
    struct engineio_packet packet;
    char *copy = exact_copy(slice_of(frame));
    assert_int_equal(engineio_parse(copy, strlen(frame), binary, &packet), held != NULL);
    if (held) {
        assert_int_equal(packet.type, type);
        assert_int_equal(packet.binary, is_binary);
        assert_int_equal(packet.len, strlen(held));
        assert_memory_equal(packet.data, held, packet.len);
    }
    free(copy);
}

static void a_frame_is_read_as_one_packet(void **unused)
{
    (void)unused;
    expect_frame("2probe", false, ENGINEIO_PING, false, "probe");
    expect_frame("2probe", true, ENGINEIO_MESSAGE, true, "2probe");
    expect_frame("", true, ENGINEIO_MESSAGE, true, "");
    expect_frame("", false, ENGINEIO_MESSAGE, false, NULL);
    expect_frame("bQUI=", false, ENGINEIO_MESSAGE, true, "AB");
    expect_frame("bQUI", false, ENGINEIO_MESSAGE, true, "AB");
    expect_frame("bQUI=\n", false, ENGINEIO_MESSAGE, true, "AB");
    expect_frame("bQUJD\r\nREU\n", false, ENGINEIO_MESSAGE, true, "ABCDE");
    expect_frame("bQUJDR", false, ENGINEIO_MESSAGE, true, NULL);
    expect_frame("bQU=D", false, ENGINEIO_MESSAGE, true, NULL);
}

static void a_binary_message_is_written_as_base64(void **unused)
{
    (void)unused;
    struct buffer payload = BUFFER_INIT;
    engineio_payload_append(&payload, SLICE("2"));
    engineio_payload_append_binary(&payload, SLICE("AB"));
    engineio_payload_append_binary(&payload, SLICE("\xff\x1e\x00"));
    engineio_payload_append_binary(&payload, SLICE(""));
    assert_true(slice_is(buffer_slice(&payload), "2\x1e"
                                                 "bQUI=\x1e"
                                                 "b/x4A\x1e"
                                                 "b"));
    buffer_free(&payload);
}

static void open_packet_contains_the_settings(void **unused)
{
    (void)unused;
    struct buffer out = BUFFER_INIT;
    struct engineio_open open = {.sid = SLICE("abc"),
                                 .upgrades = true,
                                 .ping_interval_ms = 25000,
                                 .ping_timeout_ms = 20000,
                                 .payload_bytes_max = 1000000};
    engineio_open_write(&out, &open);
    buffer_append_byte(&out, '\0');
    assert_string_equal(out.data,
                        "0{\"sid\":\"abc\",\"upgrades\":[\"websocket\"],\"pingInterval\":25000,"
                        "\"pingTimeout\":20000,\"maxPayload\":1000000}");
    buffer_clear(&out);
    open.upgrades = false;
    engineio_open_write(&out, &open);
    assert_non_null(memmem(out.data, out.len, "\"upgrades\":[],", 14));
    buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_payload_is_read_packet_by_packet),
        cmocka_unit_test(a_malformed_packet_ends_the_payload),
        cmocka_unit_test(a_payload_has_a_limited_number_of_packets),
        cmocka_unit_test(a_frame_is_read_as_one_packet),
        cmocka_unit_test(a_binary_message_is_written_as_base64),
        cmocka_unit_test(open_packet_contains_the_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
