/* Commands as Socket.IO events, and messages as the events and acknowledgements that clients get. */
#include "protocol/encoder.h"
#include "socketio/codec/socketio_dialect.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct dialect *const dialect = &DIALECT_TABLE_SOCKETIO;
static struct fields_scratch scratch;
static char *text; /* of the last packet, which the message borrows from */

static bool decode(const char *packet, struct message *message, const char **problem)
{
    free(text);
    text = exact_copy(slice_of(packet));
    return dialect->decode(&scratch, text, strlen(packet), message, problem);
}

static int free_text(void **unused)
{
    (void)unused;
    free(text);
    return 0;
}

static struct message command(const char *packet)
{
    struct message message;
    const char *problem;
    if (!decode(packet, &message, &problem))
        fail_msg("%s: %s", packet, problem);
    return message;
}

static void refuse(const char *packet, const char *id)
{
    struct message message;
    const char *problem;
    if (decode(packet, &message, &problem))
        fail_msg("%s was accepted", packet);
    assert_true(id ? slice_is(message.id, id) : !message.id.data);
}

static void a_native_command_is_read_from_an_event(void **unused)
{
    (void)unused;
    struct message message = command("2[\"open_chat\",{\"chat_id\":\"c\"}]");
    assert_int_equal(message.type, MESSAGE_OPEN_CHAT);
    assert_true(slice_is(message.chat_id, "c"));
    message = command("25[\"subscribe_presence\",{\"user_ids\":[\"a\",\"b\"]}]");
    assert_int_equal(message.users.count, 2);
    assert_true(slice_is(message.id, "#5"));
    assert_int_equal(command("2[\"heartbeat\"]").type, MESSAGE_HEARTBEAT);
    assert_int_equal(command("2[\"heartbeat\",null]").type, MESSAGE_HEARTBEAT);
    refuse("2[\"open_chat\"]", NULL);
    refuse("29[\"open_chat\",\"c\"]", "#9");
    refuse("29[\"open_chat\",{\"chat_id\":7}]", "#9");
    refuse("51-8[\"heartbeat\",{\"_placeholder\":true,\"num\":0}]", "#8");
}

static void an_event_of_another_name_is_for_the_application_with_all_arguments(void **unused)
{
    (void)unused;
    struct message message = command("27[\"move\",{\"x\":\"\\u0031\"}, 2 ,null]");
    assert_int_equal(message.type, MESSAGE_EVENT);
    assert_true(slice_is(message.id, "#7"));
    assert_true(slice_is(message.event.name, "move"));
    assert_true(slice_is(message.event.data, "{\"x\":\"\\u0031\"}"));
    assert_true(slice_is(message.event.args, "{\"x\":\"\\u0031\"}, 2 ,null"));
    assert_string_equal(message.event.unknown_text, "unknown event");
    static const char *const names[] = {"nonsense", "message", "error", "event", ""};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char packet[64];
        snprintf(packet, sizeof(packet), "2[\"%s\"]", names[i]);
        message = command(packet);
        assert_int_equal(message.type, MESSAGE_EVENT);
        assert_true(slice_is(message.event.name, names[i]));
        assert_null(message.event.data.data);
        assert_null(message.event.args.data);
    }
    message = command("2[17,{}]");
    assert_int_equal(message.type, MESSAGE_EVENT);
    assert_null(message.event.name.data);
}

static void a_customary_event_is_read_as_its_command(void **unused)
{
    (void)unused;
    struct message message = command("2[\"HEARTBEAT\",{\"active\":true}]");
    assert_int_equal(message.type, MESSAGE_HEARTBEAT);
    assert_int_equal(message.heartbeat, ACTIVITY_ACTIVE);
    message = command("2[\"typing:start\",{\"roomId\":\"r\"}]");
    assert_int_equal(message.type, MESSAGE_TYPING_START);
    assert_true(slice_is(message.chat_id, "r"));
    assert_int_equal(command("2[\"typing:stop\",{\"roomId\":\"r\"}]").type, MESSAGE_TYPING_STOP);
    refuse("2[\"typing:start\",{}]", NULL);
    message = command("21[\"call:request\",{\"to\":\"bob\",\"callId\":\"x\"}]");
    assert_int_equal(message.type, MESSAGE_CALL_REQUEST);
    assert_true(slice_is(message.call.to, "bob"));
    assert_true(slice_is(message.call.call_id, "x"));
    message = command("2[\"call:accept\",{\"from\":\"bob\"}]");
    assert_int_equal(message.type, MESSAGE_CALL_ACCEPT);
    assert_true(slice_is(message.call.from, "bob"));
    assert_null(message.call.call_id.data);
    assert_int_equal(command("2[\"call:accepted\"]").type, MESSAGE_CALL_ACCEPT);
    message = command("2[\"call:rejected\",{\"callId\":\"x\"}]");
    assert_int_equal(message.type, MESSAGE_CALL_REJECT);
    assert_true(slice_is(message.call.call_id, "x"));
    assert_int_equal(command("2[\"call:reject\",{}]").type, MESSAGE_CALL_REJECT);
    refuse("2[\"call:accept\",{\"from\":7}]", NULL);
    refuse("2[\"call:accept\",{\"callId\":7}]", NULL);
    assert_int_equal(command("2[\"call:start\",\"whoever\"]").type, MESSAGE_CALL_DECLARE_START);
    assert_int_equal(command("2[\"call:end\"]").type, MESSAGE_CALL_DECLARE_END);
    assert_int_equal(command("2[\"user:connect\",7]").type, MESSAGE_USER_CONNECT);
    assert_int_equal(command("2[\"user:disconnect\"]").type, MESSAGE_USER_DISCONNECT);
}

static void expect_encoded(const struct message *message, const char *expected)
{
    struct buffer out = BUFFER_INIT;
    dialect->encode(message, &out);
    buffer_append_byte(&out, '\0');
    assert_string_equal(out.data, expected);
    buffer_free(&out);
}

static void an_answer_is_an_acknowledgement_if_asked_for_else_an_event(void **unused)
{
    (void)unused;
    struct message ok = {.type = MESSAGE_OK, .id = SLICE("#12")};
    expect_encoded(&ok, "4312[{\"type\":\"ok\"}]");
    ok.id = SLICE_NONE;
    expect_encoded(&ok, "42[\"ok\",{}]");
    struct message error = {
        .type = MESSAGE_ERROR,
        .id = SLICE("#0"),
        .error = {
            .code = ERROR_NOT_FOUND, .text = "no", .retry_after_ms = -1, .grace_period_ms = -1}};
    expect_encoded(&error, "430[{\"type\":\"error\",\"code\":\"NOT_FOUND\",\"message\":\"no\"}]");
}

static void a_message_with_a_customary_event_is_followed_by_it(void **unused)
{
    (void)unused;
    struct message typing = {.type = MESSAGE_TYPING_CHANGED,
                             .typing = {SLICE("r"), SLICE("bob"), true}};
    expect_encoded(
        &typing,
        "42[\"typing_changed\",{\"chat_id\":\"r\",\"user_id\":\"bob\",\"typing\":true}]\x1e"
        "42[\"typing\",{\"roomId\":\"r\",\"userId\":\"bob\",\"typing\":true}]");
    char fields[] = "{\"call_id\":\"x\",\"from\":\"a\\nb\",\"reason\":\"hangup\"}";
    struct message call = {.type = MESSAGE_RELAY,
                           .relay = {.name = SLICE("call_ended"), .fields = slice_of(fields)}};
    expect_encoded(&call, "42[\"call_ended\",{\"call_id\":\"x\",\"from\":\"a\\nb\","
                          "\"reason\":\"hangup\"}]\x1e"
                          "42[\"call:ended\",{\"callId\":\"x\",\"from\":\"a\\nb\","
                          "\"reason\":\"hangup\"}]");
    call.relay.name = SLICE("call_signal");
    expect_encoded(&call, "42[\"call_signal\",{\"call_id\":\"x\",\"from\":\"a\\nb\","
                          "\"reason\":\"hangup\"}]");
}

static void a_delivery_with_a_name_is_the_event_of_that_name(void **unused)
{
    (void)unused;
    char named[] = "{\"event\":\"a\\nb\",\"data\":[1,{\"a\":2}]}";
    struct message delivery = {.type = MESSAGE_RELAY,
                               .relay = {.name = SLICE("delivery"), .fields = slice_of(named)}};
    expect_encoded(&delivery, "42[\"a\\nb\",[1,{\"a\":2}]]");
    char unnamed[] = "{\"data\":{\"event\":1}}";
    delivery.relay.fields = slice_of(unnamed);
    expect_encoded(&delivery, "42[\"delivery\",{\"data\":{\"event\":1}}]");
}

static void presence_announcements_are_named_by_their_change_source(void **unused)
{
    (void)unused;
    static const char *const CONTACT[] = {"", "friend_online", "friend_offline", "friend_in_call",
                                          "friend_out_of_call"};
    static const char *const ROOM[] = {"", "USER_ONLINE", "USER_OFFLINE"};
    char expected[64];
    struct message announced = {.type = MESSAGE_CONTACT_PRESENCE,
                                .change = {.presence = {.user_id = SLICE("bob")}}};
    for (int i = PRESENCE_ANNOUNCE_ONLINE; i < PRESENCE_ANNOUNCEMENTS; i++) {
        announced.change.announcement = (enum presence_announcement)i;
        snprintf(expected, sizeof(expected), "42[\"%s\",{\"userId\":\"bob\"}]", CONTACT[i]);
        expect_encoded(&announced, expected);
    }
    announced.change.presence.in_call = true;
    announced.change.announcement = PRESENCE_ANNOUNCE_ONLINE;
    expect_encoded(&announced, "42[\"friend_online\",{\"userId\":\"bob\"}]\x1e"
                               "42[\"friend_in_call\",{\"userId\":\"bob\"}]");
    announced.change.announcement = PRESENCE_ANNOUNCE_IN_CALL;
    expect_encoded(&announced, "42[\"friend_in_call\",{\"userId\":\"bob\"}]");
    announced.type = MESSAGE_CHAT_PRESENCE;
    for (int i = PRESENCE_ANNOUNCE_ONLINE; i <= PRESENCE_ANNOUNCE_OFFLINE; i++) {
        announced.change.announcement = (enum presence_announcement)i;
        snprintf(expected, sizeof(expected), "42[\"%s\",{\"userId\":\"bob\"}]", ROOM[i]);
        expect_encoded(&announced, expected);
    }
}

static void a_message_of_two_events_is_two_frames_in_one_blob(void **unused)
{
    (void)unused;
    struct encoder encoder;
    struct message typing = {.type = MESSAGE_TYPING_CHANGED,
                             .typing = {SLICE("r"), SLICE("bob"), false}};
    encoder_init(&encoder);
    struct blob *blob = encoder_encode(&encoder, dialect, &typing);
    assert_non_null(blob);
    size_t first = 2 + (size_t)blob->bytes[1];
    assert_int_equal((unsigned char)blob->bytes[0], 0x81);
    assert_memory_equal(blob->bytes + 2, "42[\"typing_changed\",", 20);
    assert_int_equal((unsigned char)blob->bytes[first], 0x81);
    assert_memory_equal(blob->bytes + first + 2, "42[\"typing\",", 12);
    assert_int_equal(blob->len, first + 2 + (size_t)blob->bytes[first + 1]);
    blob_drop(&blob);
    encoder_free(&encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_native_command_is_read_from_an_event),
        cmocka_unit_test(an_event_of_another_name_is_for_the_application_with_all_arguments),
        cmocka_unit_test(a_customary_event_is_read_as_its_command),
        cmocka_unit_test(an_answer_is_an_acknowledgement_if_asked_for_else_an_event),
        cmocka_unit_test(a_message_with_a_customary_event_is_followed_by_it),
        cmocka_unit_test(a_delivery_with_a_name_is_the_event_of_that_name),
        cmocka_unit_test(presence_announcements_are_named_by_their_change_source),
        cmocka_unit_test(a_message_of_two_events_is_two_frames_in_one_blob),
    };
    return cmocka_run_group_tests(tests, NULL, free_text);
}
