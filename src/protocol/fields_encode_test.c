/* Every message to clients, byte for byte, because independent clients rely on these. */
#include "protocol/dialect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOON_MS INT64_C(1769860800000) /* 2026-01-31T12:00:00.000Z */
#define NOON "\"2026-01-31T12:00:00.000Z\""
#define LEFT_OUT -1

static void expect_encoded(const struct message *message, const char *expected)
{
    struct buffer out = BUFFER_INIT;
    DIALECT_TABLE_NATIVE.encode(message, &out);
    buffer_append(&out, "", 1);
    assert_false(out.failed);
    assert_string_equal(out.data, expected);
    buffer_free(&out);
}

static const struct presence BOB = {
    .user_id = {"bob", 3}, .status = PRESENCE_ONLINE, .last_seen_ms = TIME_NONE, .version = 12};
static const struct presence CAROL = {.user_id = {"c\"l", 3},
                                      .status = PRESENCE_OFFLINE,
                                      .in_call = true,
                                      .stale = true,
                                      .last_seen_ms = NOON_MS,
                                      .version = INT64_MAX};

#define BOB_FIELDS                                                                                 \
    "\"user_id\":\"bob\",\"status\":\"online\",\"in_call\":false,\"last_seen\":null,\"version\":12"
#define CAROL_FIELDS                                                                               \
    "\"user_id\":\"c\\\"l\",\"status\":\"offline\",\"in_call\":true,\"last_seen\":" NOON           \
    ",\"version\":9223372036854775807,\"stale\":true"

static void connection_established_has_all_fields(void **state)
{
    (void)state;
    struct message message = {.type = MESSAGE_CONNECTION_ESTABLISHED,
                              .established = {.conn_id = SLICE("C"),
                                              .server_id = SLICE("gw-1"),
                                              .user_id = SLICE("alice"),
                                              .heartbeat_interval_ms = 5000,
                                              .expiry_window_ms = 1250,
                                              .server_time_ms = NOON_MS}};
    expect_encoded(&message,
                   "{\"type\":\"connection_established\",\"conn_id\":\"C\",\"server_id\":\"gw-1\","
                   "\"user_id\":\"alice\",\"heartbeat_interval_seconds\":5,"
                   "\"expiry_window_seconds\":1.25,\"server_time\":" NOON "}");
}

static void expect_seconds(int64_t ms, const char *text)
{
    char expected[128];
    struct message message = {.type = MESSAGE_ERROR,
                              .error = {.code = ERROR_RATE_LIMITED,
                                        .text = "",
                                        .retry_after_ms = ms,
                                        .grace_period_ms = LEFT_OUT}};
    snprintf(expected, sizeof(expected),
             "{\"type\":\"error\",\"code\":\"RATE_LIMITED\",\"message\":\"\","
             "\"retry_after_seconds\":%s}",
             text);
    expect_encoded(&message, expected);
}

static void seconds_have_only_necessary_decimals(void **state)
{
    (void)state;
    expect_seconds(0, "0");
    expect_seconds(1, "0.001");
    expect_seconds(20, "0.02");
    expect_seconds(300, "0.3");
    expect_seconds(1000, "1");
    expect_seconds(12345, "12.345");
    expect_seconds(86400000, "86400");
}

static void short_replies_are_encoded(void **state)
{
    (void)state;
    struct message ack = {.type = MESSAGE_HEARTBEAT_ACK, .server_time_ms = NOON_MS};
    expect_encoded(&ack, "{\"type\":\"heartbeat_ack\",\"server_time\":" NOON "}");
    struct message ok = {.type = MESSAGE_OK, .id = SLICE("\"\\u0041\"")};
    expect_encoded(&ok, "{\"type\":\"ok\",\"id\":\"\\u0041\"}");
    ok.id = SLICE("-1.50e3");
    expect_encoded(&ok, "{\"type\":\"ok\",\"id\":-1.50e3}");
}

static void errors_are_encoded(void **state)
{
    (void)state;
    struct message error = {.type = MESSAGE_ERROR,
                            .id = SLICE("7"),
                            .error = {.code = ERROR_SLOW_CONSUMER,
                                      .text = "read \"faster\"",
                                      .client_message_id = SLICE("m-1"),
                                      .retry_after_ms = LEFT_OUT,
                                      .grace_period_ms = 5000}};
    expect_encoded(&error, "{\"type\":\"error\",\"id\":7,\"code\":\"SLOW_CONSUMER\",\"message\":"
                           "\"read \\\"faster\\\"\",\"client_message_id\":\"m-1\","
                           "\"grace_period_seconds\":5}");
    for (int code = 0; code < ERROR_CODE_COUNT; code++)
        assert_non_null(error_code_name((enum error_code)code));
}

static void presences_are_encoded(void **state)
{
    (void)state;
    struct presence all[] = {BOB, CAROL,
                             presence_hidden(SLICE("dave"), PRESENCE_REASON_NOT_CONTACTS)};
    struct message snapshot = {.type = MESSAGE_PRESENCE_SNAPSHOT, .snapshot = {all, 3}};
    expect_encoded(&snapshot, "{\"type\":\"presence_snapshot\",\"presences\":[{" BOB_FIELDS
                              "},{" CAROL_FIELDS "},{\"user_id\":\"dave\",\"status\":\"unknown\","
                              "\"in_call\":false,\"last_seen\":null,\"version\":0,"
                              "\"reason\":\"not_contacts\"}]}");
    snapshot.snapshot.count = 0;
    expect_encoded(&snapshot, "{\"type\":\"presence_snapshot\",\"presences\":[]}");
    struct message change = {.type = MESSAGE_PRESENCE_CHANGED,
                             .change = {.presence = BOB, .timestamp_ms = NOON_MS}};
    expect_encoded(&change,
                   "{\"type\":\"presence_changed\"," BOB_FIELDS ",\"timestamp\":" NOON "}");
}

static void chat_snapshots_and_typing_are_encoded(void **state)
{
    (void)state;
    struct slice typing[] = {SLICE("bob"), SLICE("carol")};
    struct message snapshot = {.type = MESSAGE_CHAT_SNAPSHOT,
                               .chat_snapshot = {.chat_id = SLICE("team"),
                                                 .presences = &BOB,
                                                 .presence_count = 1,
                                                 .typing = typing,
                                                 .typing_count = 2,
                                                 .latest_sequence = 17}};
    expect_encoded(&snapshot, "{\"type\":\"chat_snapshot\",\"chat_id\":\"team\",\"presences\":"
                              "[{" BOB_FIELDS "}],\"typing\":[\"bob\",\"carol\"],"
                              "\"latest_sequence\":17}");
    struct message changed = {.type = MESSAGE_TYPING_CHANGED,
                              .typing = {SLICE("team"), SLICE("bob"), false}};
    expect_encoded(&changed, "{\"type\":\"typing_changed\",\"chat_id\":\"team\","
                             "\"user_id\":\"bob\",\"typing\":false}");
}

#define HELLO_FIELDS                                                                               \
    "\"chat_id\":\"team\",\"message_id\":\"M\",\"sequence\":18,\"sender_id\":\"alice\","           \
    "\"body\":\"hello\\n\",\"sent_at\":" NOON

static void messages_and_syncs_are_encoded(void **state)
{
    (void)state;
    struct chat_message hello = {SLICE("team"),  SLICE("M"),       18,
                                 SLICE("alice"), SLICE("hello\n"), NOON_MS};
    struct message pushed = {.type = MESSAGE_MESSAGE, .chat_message = hello};
    expect_encoded(&pushed, "{\"type\":\"message\"," HELLO_FIELDS "}");
    struct message page = {.type = MESSAGE_SYNC_RESPONSE,
                           .id = SLICE("1"),
                           .sync_response = {SLICE("team"), &hello, 1, true, 40}};
    expect_encoded(&page, "{\"type\":\"sync_response\",\"id\":1,\"chat_id\":\"team\",\"messages\":"
                          "[{" HELLO_FIELDS "}],\"has_more\":true,\"latest_sequence\":40}");
    struct message ack = {
        .type = MESSAGE_MESSAGE_ACK,
        .message_ack = {SLICE("team"), SLICE("m-1"), SLICE("M"), 18, false, false}};
    expect_encoded(&ack, "{\"type\":\"message_ack\",\"chat_id\":\"team\",\"client_message_id\":"
                         "\"m-1\",\"message_id\":\"M\",\"sequence\":18,\"duplicate\":false}");
    ack.message_ack.duplicate = ack.message_ack.body_differs = true;
    expect_encoded(&ack, "{\"type\":\"message_ack\",\"chat_id\":\"team\",\"client_message_id\":"
                         "\"m-1\",\"message_id\":\"M\",\"sequence\":18,\"duplicate\":true,"
                         "\"body_differs\":true}");
}

static void call_events_are_encoded(void **state)
{
    (void)state;
    struct message message = {.type = MESSAGE_CALL_RINGING, .call = {.call_id = SLICE("k")}};
    expect_encoded(&message, "{\"type\":\"call_ringing\",\"call_id\":\"k\"}");
    message.type = MESSAGE_CALL_INCOMING;
    message.call.from = SLICE("alice");
    expect_encoded(&message, "{\"type\":\"call_incoming\",\"call_id\":\"k\",\"from\":\"alice\"}");
    message.type = MESSAGE_CALL_SIGNAL;
    message.call.data = SLICE("{\"sdp\":null}");
    expect_encoded(&message, "{\"type\":\"call_signal\",\"call_id\":\"k\",\"from\":\"alice\","
                             "\"data\":{\"sdp\":null}}");
    struct message ended = {.type = MESSAGE_CALL_ENDED,
                            .call = {.call_id = SLICE("k"), .reason = "hangup"}};
    expect_encoded(&ended, "{\"type\":\"call_ended\",\"call_id\":\"k\",\"reason\":\"hangup\"}");
}

static void contact_events_are_encoded(void **state)
{
    (void)state;
    struct message message = {.type = MESSAGE_CONTACT_REQUEST,
                              .contact = {SLICE("r"), SLICE("bob")}};
    expect_encoded(&message,
                   "{\"type\":\"contact_request\",\"request_id\":\"r\",\"from\":\"bob\"}");
    message.type = MESSAGE_CONTACT_ACCEPTED;
    expect_encoded(&message, "{\"type\":\"contact_accepted\",\"user_id\":\"bob\"}");
    message.type = MESSAGE_CONTACT_REMOVED;
    expect_encoded(&message, "{\"type\":\"contact_removed\",\"user_id\":\"bob\"}");
}

static void deliveries_and_relays_are_encoded(void **state)
{
    (void)state;
    struct message delivery = {.type = MESSAGE_DELIVERY, .data = SLICE(" [1, {}] ")};
    expect_encoded(&delivery, "{\"type\":\"delivery\",\"data\": [1, {}] }");
    struct message relay = {.type = MESSAGE_RELAY,
                            .relay = {.name = SLICE("call_incoming"),
                                      .fields = SLICE("{\"call_id\":\"k\",\"from\":\"bob\"}")}};
    expect_encoded(&relay, "{\"type\":\"call_incoming\",\"call_id\":\"k\",\"from\":\"bob\"}");
    relay.relay.fields = SLICE("{}");
    expect_encoded(&relay, "{\"type\":\"call_incoming\"}");
}

static void connection_closing_is_encoded(void **state)
{
    (void)state;
    struct sync_point from[] = {{SLICE("team"), 17}, {SLICE("x"), 0}};
    struct message closing = {.type = MESSAGE_CONNECTION_CLOSING,
                              .closing = {.reason = CLOSING_DRAINING,
                                          .reconnect_allowed = true,
                                          .reconnect_after_ms = 3480}};
    expect_encoded(&closing, "{\"type\":\"connection_closing\",\"reason\":\"draining\","
                             "\"reconnect_allowed\":true,\"reconnect_after_ms\":3480}");
    closing.closing = (struct connection_closing){.reason = CLOSING_SLOW_CONSUMER,
                                                  .reconnect_after_ms = LEFT_OUT,
                                                  .sync_from = from,
                                                  .sync_from_count = 2};
    expect_encoded(&closing, "{\"type\":\"connection_closing\",\"reason\":\"slow_consumer\","
                             "\"reconnect_allowed\":false,\"sync_from_sequence\":"
                             "{\"team\":17,\"x\":0}}");
    for (int reason = 0; reason < CLOSING_REASON_COUNT; reason++)
        assert_non_null(closing_reason_name((enum closing_reason)reason));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connection_established_has_all_fields),
        cmocka_unit_test(seconds_have_only_necessary_decimals),
        cmocka_unit_test(short_replies_are_encoded),
        cmocka_unit_test(errors_are_encoded),
        cmocka_unit_test(presences_are_encoded),
        cmocka_unit_test(chat_snapshots_and_typing_are_encoded),
        cmocka_unit_test(messages_and_syncs_are_encoded),
        cmocka_unit_test(call_events_are_encoded),
        cmocka_unit_test(contact_events_are_encoded),
        cmocka_unit_test(deliveries_and_relays_are_encoded),
        cmocka_unit_test(connection_closing_is_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
