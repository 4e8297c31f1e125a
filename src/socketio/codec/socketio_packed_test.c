/* Packets in MessagePack are read as the same packets in text, and written as the npm parser reads them. */
#include "socketio/codec/socketio_packed.h"

#include "socketio/codec/socketio_dialect.h"
#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES(literal) SLICE(literal)
#define TYPE "\xa4type"
#define NSP "\xa3nsp"
#define MAIN NSP "\xa1/"
#define DATA                                                                                       \
    "\xa4"                                                                                         \
    "data"
#define ID "\xa2id"
#define UNDEFINED "\xd4\x00\x00"

static struct buffer text;

static int free_text(void **unused)
{
    (void)unused;
    buffer_free(&text);
    return 0;
}

static bool unpack(struct slice packed, struct socketio_packet *out, const char **problem)
{
    char *copy = exact_copy(packed);
    buffer_free(&text);
    bool unpacked = socketio_unpack((struct slice){copy, packed.len}, &text, out, problem);
    free(copy);
    return unpacked;
}

static struct socketio_packet accept(struct slice packed)
{
    struct socketio_packet packet;
    const char *problem;
    if (!unpack(packed, &packet, &problem))
        fail_msg("%s", problem);
    return packet;
}

static void packets_of_every_type_are_read(void **unused)
{
    (void)unused;
    struct socketio_packet packet =
        accept(BYTES("\x83" TYPE "\x00" DATA "\x81\xa5token\xa1t" MAIN));
    assert_int_equal(packet.type, SOCKETIO_CONNECT);
    assert_true(socketio_is_main(&packet));
    assert_true(slice_is(packet.argument, "{\"token\":\"t\"}"));
    packet = accept(BYTES("\x83" TYPE "\x00" DATA UNDEFINED MAIN));
    assert_null(packet.argument.data);
    packet = accept(BYTES("\x82" TYPE "\x00" NSP "\xa6/admin"));
    assert_true(slice_is(packet.name_space, "/admin"));
    packet = accept(BYTES("\x82" TYPE "\x01" MAIN));
    assert_int_equal(packet.type, SOCKETIO_DISCONNECT);
    packet = accept(BYTES("\x83" TYPE "\x02" DATA "\x91\xa4ping" MAIN));
    assert_int_equal(packet.type, SOCKETIO_EVENT);
    assert_true(slice_is(packet.event, "ping"));
    assert_null(packet.ack_id.data);
    packet = accept(BYTES("\x84" ID "\x01" MAIN DATA "\x90" TYPE "\x03"));
    assert_int_equal(packet.type, SOCKETIO_ACK);
    assert_true(slice_is(packet.ack_id, "1"));
}

static void keys_are_read_in_any_order_and_unknown_ones_skipped(void **unused)
{
    (void)unused;
    struct socketio_packet packet =
        accept(BYTES("\x87" ID "\xcd\x01\x00" DATA "\x92\xa4ping\x81\xa2to\xa3"
                     "bob\xa7options\x81\xa8"
                     "compress\xc3\x07\x08\x91\x01\x80" MAIN TYPE "\x02"));
    assert_int_equal(packet.type, SOCKETIO_EVENT);
    assert_true(slice_is(packet.ack_id, "256"));
    assert_true(slice_is(packet.event, "ping"));
    assert_true(slice_is(packet.argument, "{\"to\":\"bob\"}"));
    assert_false(packet.unreadable);
    packet = accept(BYTES("\x84" TYPE "\x02" TYPE "\x01" DATA UNDEFINED MAIN));
    assert_int_equal(packet.type, SOCKETIO_DISCONNECT);
}

static void an_event_with_a_value_that_json_lacks_is_unreadable(void **unused)
{
    (void)unused;
    struct fields_scratch scratch;
    struct message message;
    const char *problem;
    struct socketio_packet packet =
        accept(BYTES("\x84" TYPE "\x02" ID "\x05" DATA "\x92\xa9heartbeat\xc4\x01x" MAIN));
    assert_true(packet.unreadable);
    assert_false(socketio_decode(&scratch, &packet, &message, &problem));
    assert_true(slice_is(message.id, "#5"));
    packet = accept(BYTES("\x83" TYPE "\x00" DATA "\x81\xa5token\xc4\x01x" MAIN));
    assert_true(slice_is(packet.argument, "{\"token\":null}"));
    assert_false(packet.unreadable);
}

static void a_malformed_packet_is_refused(void **unused)
{
    (void)unused;
    static const struct slice rows[] = {
        BYTES(""),
        BYTES("\x01"),
        BYTES("\x90"),
        BYTES("\x80"),
        BYTES("\x81" TYPE "\x00"),
        BYTES("\x81" MAIN),
        BYTES("\x82" TYPE "\x05" MAIN),
        BYTES("\x82" TYPE "\xff" MAIN),
        BYTES("\x82" TYPE "\xc0" MAIN),
        BYTES("\x82" TYPE "\xa1"
              "0" MAIN),
        BYTES("\x82" TYPE "\x00" MAIN "\x00"),
        BYTES("\x83" TYPE "\x00" MAIN),
        BYTES("\x82" TYPE "\x00" NSP "\xa0"),
        BYTES("\x82" TYPE "\x00" NSP "\xa1x"),
        BYTES("\x82" TYPE "\x00" NSP "\xa4/a,b"),
        BYTES("\x82" TYPE "\x00" NSP "\x07"),
        BYTES("\x83" TYPE "\x00" DATA "\xc0" MAIN),
        BYTES("\x83" TYPE "\x00" DATA "\x90" MAIN),
        BYTES("\x83" TYPE "\x01" DATA "\x80" MAIN),
        BYTES("\x82" TYPE "\x02" MAIN),
        BYTES("\x83" TYPE "\x02" DATA "\x07" MAIN),
        BYTES("\x83" TYPE "\x02" DATA "\xa1x" MAIN),
        BYTES("\x83" TYPE "\x02" DATA "\x80" MAIN),
        BYTES("\x83" TYPE "\x02" DATA "\x90" MAIN),
        BYTES("\x83" TYPE "\x02" DATA "\x91\xc4\x01x" MAIN),
        BYTES("\x83" TYPE "\x02" DATA "\x91\xaa"
              "disconnect" MAIN),
        BYTES("\x82" TYPE "\x03" MAIN),
        BYTES("\x84" TYPE "\x02" ID "\xff" DATA "\x91\xa1x" MAIN),
        BYTES("\x84" TYPE "\x02" ID "\xc0" DATA "\x91\xa1x" MAIN),
        BYTES("\x84" TYPE "\x02" ID "\xcf\xff\xff\xff\xff\xff\xff\xff\xff" DATA "\x91\xa1x" MAIN),
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct socketio_packet packet;
        const char *problem = NULL;
        if (unpack(rows[i], &packet, &problem))
            fail_msg("row %zu was accepted", i);
        assert_non_null(problem);
    }
}

static void expect_packed(const char *packet, struct slice packed)
{
    char *copy = exact_copy(slice_of(packet));
    struct buffer out = BUFFER_INIT;
    socketio_pack(copy, strlen(packet), &out);
    if (!slice_equal(buffer_slice(&out), packed))
        fail_msg("%s is packed otherwise", packet);
    buffer_free(&out);
    free(copy);
}

static void packets_that_we_send_are_packed(void **unused)
{
    (void)unused;
    expect_packed("40{\"sid\":\"s\"}", BYTES("\x83" TYPE "\x00" MAIN DATA "\x81\xa3sid\xa1s"));
    expect_packed("41", BYTES("\x82" TYPE "\x01" MAIN));
    expect_packed("42[\"e\",{\"a\":1},\"0\"]", BYTES("\x83" TYPE "\x02" MAIN DATA "\x93\xa1"
                                                     "e\x81\xa1"
                                                     "a\x01\xa1"
                                                     "0"));
    expect_packed("43300[{\"type\":\"ok\"}]",
                  BYTES("\x84" TYPE "\x03" MAIN ID "\xcd\x01\x2c" DATA "\x91\x81\xa4type\xa2ok"));
    expect_packed("44/admin,{\"message\":\"no\"}",
                  BYTES("\x83" TYPE "\x04" NSP "\xa6/admin" DATA "\x81\xa7message\xa2no"));
    expect_packed("", BYTES(""));
    expect_packed("4", BYTES(""));
    expect_packed("4x", BYTES(""));
    expect_packed("40{", BYTES("\x83" TYPE "\x00" MAIN DATA "\xc0"));
    expect_packed("42[1,}]", BYTES("\x83" TYPE "\x02" MAIN DATA "\x91\x01"));
}

/* An argument may be nested as deeply as JSON allows; the array around it is one level more. */
static void an_argument_of_the_greatest_depth_is_packed(void **unused)
{
    (void)unused;
    struct buffer packet = BUFFER_INIT, packed = BUFFER_INIT;
    buffer_append_text(&packet, "42[\"e\",");
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buffer_append_byte(&packet, '[');
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buffer_append_byte(&packet, ']');
    buffer_append_text(&packet, ",\"offset\"]");
    socketio_pack(packet.data, packet.len, &packed);
    assert_true(
        slice_equal(slice_after(buffer_slice(&packed), packed.len - 7), BYTES("\xa6offset")));
    buffer_free(&packet);
    buffer_free(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_of_every_type_are_read),
        cmocka_unit_test(keys_are_read_in_any_order_and_unknown_ones_skipped),
        cmocka_unit_test(an_event_with_a_value_that_json_lacks_is_unreadable),
        cmocka_unit_test(a_malformed_packet_is_refused),
        cmocka_unit_test(packets_that_we_send_are_packed),
        cmocka_unit_test(an_argument_of_the_greatest_depth_is_packed),
    };
    return cmocka_run_group_tests(tests, NULL, free_text);
}
