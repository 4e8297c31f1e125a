/* Socket.IO packets are read as strictly as the reference server reads them. */
#include "socketio/codec/socketio.h"

#include "protocol/fields.h"
#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *text; /* of the last packet, which borrows from it */

static bool parse(const char *packet, struct socketio_packet *parsed, const char **problem)
{
    free(text);
    text = exact_copy(slice_of(packet));
    return socketio_parse(text, strlen(packet), parsed, problem);
}

static int free_text(void **unused)
{
    (void)unused;
    free(text);
    return 0;
}

static struct socketio_packet accept(const char *packet)
{
    struct socketio_packet parsed;
    const char *problem;
    if (!parse(packet, &parsed, &problem))
        fail_msg("%s: %s", packet, problem);
    return parsed;
}

static void refuse(const char *packet)
{
    struct socketio_packet parsed;
    const char *problem = NULL;
    if (parse(packet, &parsed, &problem))
        fail_msg("%s was accepted", packet);
    assert_non_null(problem);
}

static void a_packet_is_read_into_type_namespace_id_and_data(void **unused)
{
    (void)unused;
    struct socketio_packet packet = accept("0{\"token\":\"t\"}");
    assert_int_equal(packet.type, SOCKETIO_CONNECT);
    assert_true(socketio_is_main(&packet));
    assert_true(slice_is(packet.argument, "{\"token\":\"t\"}"));
    packet = accept("0");
    assert_null(packet.argument.data);
    packet = accept("0/admin,{\"a\":1}");
    assert_true(slice_is(packet.name_space, "/admin"));
    assert_false(socketio_is_main(&packet));
    packet = accept("0/admin");
    assert_true(slice_is(packet.name_space, "/admin"));
    packet = accept("1");
    assert_int_equal(packet.type, SOCKETIO_DISCONNECT);
    packet = accept("212[\"call:request\",{\"to\":\"bob\"}]");
    assert_true(slice_is(packet.ack_id, "12"));
    assert_true(slice_is(packet.event, "call:request"));
    assert_true(slice_is(packet.argument, "{\"to\":\"bob\"}"));
    packet = accept("2/,7[\"a\\u0062c\", [1,2] , \"further\"]");
    assert_true(slice_is(packet.ack_id, "7"));
    assert_true(slice_is(packet.event, "abc"));
    assert_true(slice_is(packet.argument, "[1,2]"));
    packet = accept("2[\"error\"]");
    assert_null(packet.argument.data);
    packet = accept("2[17,1]");
    assert_null(packet.event.data);
    packet = accept("31[]");
    assert_int_equal(packet.type, SOCKETIO_ACK);
    assert_false(packet.empty);
}

static void a_packet_without_data_is_accepted_as_empty(void **unused)
{
    (void)unused;
    struct socketio_packet packet = accept("2");
    assert_int_equal(packet.type, SOCKETIO_EVENT);
    assert_true(packet.empty);
    packet = accept("27");
    assert_true(packet.empty);
    assert_true(slice_is(packet.ack_id, "7"));
    packet = accept("3");
    assert_true(packet.empty);
    packet = accept("52-");
    assert_true(packet.empty);
    assert_int_equal(packet.attachments, 2);
    refuse("5");
    refuse("5-");
}

static void packets_that_the_reference_server_closes_for_are_refused(void **unused)
{
    (void)unused;
    refuse("");
    refuse("7");
    refuse("x");
    refuse("0[]");
    refuse("0\"text\"");
    refuse("1{}");
    refuse("2{}");
    refuse("2[]");
    refuse("2[{\"toString\":1}]");
    refuse("2[null]");
    refuse("2[[\"event\"]]");
    refuse("2[\"event\"");
    refuse("2[\"event\"]]");
    refuse("2abc[\"event\"]");
    refuse("3{}");
    refuse("2[\"connect\"]");
    refuse("2[\"connect_error\",{}]");
    refuse("2[\"disconnect\"]");
    refuse("2[\"disconnecting\"]");
    refuse("2[\"newListener\"]");
    refuse("2[\"removeListener\"]");
    refuse("2[\"dis\\u0063onnect\"]");
}

static void attachments_are_counted_and_limited(void **unused)
{
    (void)unused;
    struct socketio_packet packet = accept(
        "52-7[\"file\",{\"_placeholder\":true,\"num\":1},[{\"_placeholder\":true,\"num\":0}]]");
    assert_int_equal(packet.attachments, 2);
    assert_true(slice_is(packet.ack_id, "7"));
    assert_null(packet.argument.data);
    assert_int_equal(accept("510-[\"file\"]").attachments, SOCKETIO_ATTACHMENTS_MAX);
    assert_int_equal(accept("61-[{\"_placeholder\":true,\"num\":0}]").attachments, 1);
    accept("51-[\"file\",{\"_placeholder\":\"true\",\"num\":9}]");
    refuse("5[\"file\"]");
    refuse("50-[\"file\"]");
    refuse("511-[\"file\"]");
    refuse("599999999999999999999-[\"file\"]");
    refuse("5-1-[\"file\"]");
    refuse("51-[\"file\",{\"_placeholder\":true,\"num\":1}]");
    refuse("51-[\"file\",{\"_placeholder\":true,\"num\":-1}]");
    refuse("51-[\"file\",{\"_placeholder\":true,\"num\":0.5}]");
    refuse("51-[\"file\",{\"a\":[{\"_placeholder\":true}]}]");
    refuse("61-[{\"_placeholder\":true,\"num\":\"0\"}]");
    refuse("51-[{\"_placeholder\":true,\"num\":0}]");
}

static void an_id_or_namespace_that_is_too_long_is_refused(void **unused)
{
    (void)unused;
    char packet[2 * SOCKETIO_NAMESPACE_BYTES_MAX];
    assert_true(slice_is(accept("2999999999999999[\"e\"]").ack_id, "999999999999999"));
    refuse("21234567890123456[\"e\"]");
    memset(packet, 'n', sizeof(packet));
    memcpy(packet, "0/", 2);
    packet[1 + SOCKETIO_NAMESPACE_BYTES_MAX] = '\0';
    accept(packet);
    packet[1 + SOCKETIO_NAMESPACE_BYTES_MAX] = 'n';
    packet[2 + SOCKETIO_NAMESPACE_BYTES_MAX] = '\0';
    refuse(packet);
}

/* The reference server reads it, so it is an event to refuse and not a broken packet. */
static void an_event_with_json_beyond_our_limits_is_unreadable(void **unused)
{
    (void)unused;
    struct fields_scratch scratch;
    struct message message;
    const char *problem;
    char deep[128] = "27[\"e\",";
    for (int i = 0; i < 40; i++)
        strcat(deep, "[");
    struct socketio_packet packet = accept(deep);
    assert_true(packet.unreadable);
    packet = accept("27[\"heartbeat\",{\"text\":\"\\ud83d\"}]");
    assert_true(packet.unreadable);
    assert_false(socketio_decode(&scratch, &packet, &message, &problem));
    assert_true(slice_is(message.id, "#7"));
    assert_false(accept("27[\"heartbeat\",{}]").unreadable);
    refuse("0{\"token\":\"\\ud83d\"}");
    refuse("51-[\"e\",\"\\ud83d\"]");
}

static void expect_written(struct buffer *out, const char *expected)
{
    buffer_append_byte(out, '\0');
    assert_string_equal(out->data, expected);
    buffer_free(out);
}

static void answers_to_connect_are_written_as_packets(void **unused)
{
    (void)unused;
    struct buffer out = BUFFER_INIT;
    socketio_write_connected(&out, SLICE("id"), SLICE_NONE);
    expect_written(&out, "40{\"sid\":\"id\"}");
    socketio_write_connected(&out, SLICE("id"), SLICE("p"));
    expect_written(&out, "40{\"sid\":\"id\",\"pid\":\"p\"}");
    socketio_write_refused(&out, SLICE("/"), "no", SLICE_NONE);
    expect_written(&out, "44{\"message\":\"no\"}");
    socketio_write_refused(&out, SLICE("/admin"), "no", SLICE("{\"a\":1}"));
    expect_written(&out, "44/admin,{\"message\":\"no\",\"data\":{\"a\":1}}");
    socketio_write_disconnect(&out);
    expect_written(&out, "41");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_is_read_into_type_namespace_id_and_data),
        cmocka_unit_test(a_packet_without_data_is_accepted_as_empty),
        cmocka_unit_test(packets_that_the_reference_server_closes_for_are_refused),
        cmocka_unit_test(attachments_are_counted_and_limited),
        cmocka_unit_test(an_id_or_namespace_that_is_too_long_is_refused),
        cmocka_unit_test(an_event_with_json_beyond_our_limits_is_unreadable),
        cmocka_unit_test(answers_to_connect_are_written_as_packets),
    };
    return cmocka_run_group_tests(tests, NULL, free_text);
}
