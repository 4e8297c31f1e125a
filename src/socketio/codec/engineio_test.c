#include "socketio/codec/engineio.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Packets of a payload as "type:data ", binary ones in brackets; "bad" where it is none. */
static void expect_payload(const char *text, size_t len, const char *expected)
{
    struct engineio_payload payload;
    struct engineio_packet packet;
    enum engineio_next next;
    char *copy = malloc(len ? len : 1);
    struct buffer seen = BUFFER_INIT;
    memcpy(copy, text, len);
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

static void a_payload_is_its_packets(void **unused)
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
    EXPECT_PAYLOAD("b", "4[] ");
}

static void what_is_no_packet_ends_the_payload(void **unused)
{
    (void)unused;
    EXPECT_PAYLOAD("", "bad");
    EXPECT_PAYLOAD("7", "bad");
    EXPECT_PAYLOAD("x", "bad");
    EXPECT_PAYLOAD("4a\x1e", "4:a bad");
    EXPECT_PAYLOAD("4a\x1e\x1e"
                   "4b",
                   "4:a bad");
    EXPECT_PAYLOAD("bQUJ", "bad");
    EXPECT_PAYLOAD("bQU J", "bad");
    EXPECT_PAYLOAD("b!!!!", "bad");
}

static void packets_of_a_payload_are_bounded(void **unused)
{
    (void)unused;
    struct engineio_payload payload;
    struct engineio_packet packet;
    struct buffer text = BUFFER_INIT;
    for (int i = 0; i < ENGINEIO_PACKETS_MAX + 1; i++)
        engineio_payload_append(&text, SLICE("3"));
    engineio_payload_start(&payload, text.data, text.len);
    for (int i = 0; i < ENGINEIO_PACKETS_MAX; i++)
        assert_int_equal(engineio_payload_next(&payload, &packet), ENGINEIO_PACKET);
    assert_int_equal(engineio_payload_next(&payload, &packet), ENGINEIO_BAD);
    assert_int_equal(engineio_payload_next(&payload, &packet), ENGINEIO_END);
    buffer_free(&text);
}

static void a_frame_is_a_packet(void **unused)
{
    (void)unused;
    struct engineio_packet packet;
    char text[] = "2probe";
    assert_true(engineio_parse(text, 6, false, &packet));
    assert_int_equal(packet.type, ENGINEIO_PING);
    assert_memory_equal(packet.data, "probe", packet.len);
    assert_true(engineio_parse(text, 6, true, &packet));
    assert_int_equal(packet.type, ENGINEIO_MESSAGE);
    assert_true(packet.binary);
    assert_int_equal(packet.len, 6);
    assert_true(engineio_parse(text, 0, true, &packet));
    assert_false(engineio_parse(text, 0, false, &packet));
    char base64[] = "bQUI=";
    assert_true(engineio_parse(base64, 5, false, &packet));
    assert_true(packet.binary);
    assert_memory_equal(packet.data, "AB", packet.len);
    assert_false(engineio_parse(base64, 4, false, &packet));
}

static void a_binary_message_becomes_base64(void **unused)
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

static void the_open_packet_says_what_holds(void **unused)
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
        cmocka_unit_test(a_payload_is_its_packets),
        cmocka_unit_test(what_is_no_packet_ends_the_payload),
        cmocka_unit_test(packets_of_a_payload_are_bounded),
        cmocka_unit_test(a_frame_is_a_packet),
        cmocka_unit_test(a_binary_message_becomes_base64),
        cmocka_unit_test(the_open_packet_says_what_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
