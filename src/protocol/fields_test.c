/* Decoding of clients' messages: every field, and every way in which one can be wrong. */
#include "protocol/fields.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A message in an allocation of its exact length, and its decoded form. */
struct decoded {
    char *text;
    struct message message;
    const char *problem; /* NULL: accepted */
};

static struct fields_scratch scratch;

static struct decoded decode(enum message_type type, const char *text)
{
    struct decoded decoded = {.text = exact_copy(slice_of(text)), .message = {.type = type}};
    struct json json;
    const char *problem;
    json_init(&json, decoded.text, strlen(text));
    if (!fields_scan(&scratch, &json, &problem) ||
        !fields_decode(&scratch, &decoded.message, &problem))
        decoded.problem = problem;
    return decoded;
}

static struct decoded expect_accepted(enum message_type type, const char *text)
{
    struct decoded decoded = decode(type, text);
    if (decoded.problem)
        fail_msg("%s: %s", text, decoded.problem);
    return decoded;
}

static void expect_refused(enum message_type type, const char *text, const char *problem)
{
    struct decoded decoded = decode(type, text);
    if (!decoded.problem)
        fail_msg("%s: accepted", text);
    assert_string_equal(decoded.problem, problem);
    free(decoded.text);
}

static void assert_text(struct slice slice, const char *expected)
{
    assert_non_null(slice.data);
    assert_int_equal(slice.len, strlen(expected));
    assert_memory_equal(slice.data, expected, slice.len);
}

/* Makes {"KEY":"xxx…"} with `count` x. */
static char *text_of_length(const char *key, size_t len)
{
    char *text = malloc(len + 128);
    int at = snprintf(text, 128, "{\"%s\":\"", key);
    memset(text + at, 'x', len);
    strcpy(text + at + len, "\"}");
    return text;
}

static void scan_accepts_one_object_with_few_json_members_only(void **state)
{
    (void)state;
    static const char *const not_objects[] = {
        "", "[]", "7", "{", "{\"a\":}", "{\"a\":1,}", "{\"a\" 1}", "{\"\\ud800\":1}"};
    for (size_t i = 0; i < sizeof(not_objects) / sizeof(not_objects[0]); i++)
        expect_refused(MESSAGE_HEARTBEAT, not_objects[i], "expected a JSON object");
    struct buffer text = BUFFER_INIT;
    json_write_object(&text);
    for (int i = 0; i < FIELDS_JSON_MEMBERS_MAX; i++)
        json_write_key_int(&text, SLICE("m"), i);
    buffer_append(&text, "}", 2);
    struct decoded decoded = expect_accepted(MESSAGE_HEARTBEAT, text.data);
    free(decoded.text);
    text.len -= 2;
    buffer_append(&text, ",\"m\":1}", 8);
    expect_refused(MESSAGE_HEARTBEAT, text.data, "too many JSON members");
    buffer_free(&text);
}

static void last_of_equal_json_members_counts(void **state)
{
    (void)state;
    struct decoded decoded =
        expect_accepted(MESSAGE_HEARTBEAT, "{\"active\":7,\"\\u0061ctive\":false}");
    assert_int_equal(decoded.message.heartbeat, ACTIVITY_IDLE);
    assert_text(fields_find(&scratch, "active"), "false");
    assert_null(fields_find(&scratch, "activ").data);
    free(decoded.text);
}

static void expect_activity(const char *text, enum activity activity)
{
    struct decoded decoded = expect_accepted(MESSAGE_HEARTBEAT, text);
    assert_int_equal(decoded.message.heartbeat, activity);
    free(decoded.text);
}

static void heartbeat_may_leave_activity_out(void **state)
{
    (void)state;
    expect_activity("{}", ACTIVITY_UNSPECIFIED);
    expect_activity("{\"active\":null}", ACTIVITY_UNSPECIFIED);
    expect_activity("{\"active\":true}", ACTIVITY_ACTIVE);
    expect_activity("{ \"active\" : false }", ACTIVITY_IDLE);
    expect_refused(MESSAGE_HEARTBEAT, "{\"active\":1}", "active must be true or false");
    expect_refused(MESSAGE_HEARTBEAT, "{\"active\":\"true\"}", "active must be true or false");
}

static void user_lists_are_read_in_order(void **state)
{
    (void)state;
    static const enum message_type types[] = {MESSAGE_SUBSCRIBE_PRESENCE,
                                              MESSAGE_UNSUBSCRIBE_PRESENCE, MESSAGE_QUERY_PRESENCE};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct decoded decoded =
            expect_accepted(types[i], "{\"user_ids\":[\"bob\", \"\\u0063arol\",\"bob\"]}");
        assert_int_equal(decoded.message.users.count, 3);
        assert_text(decoded.message.users.ids[0], "bob");
        assert_text(decoded.message.users.ids[1], "carol");
        assert_text(decoded.message.users.ids[2], "bob");
        free(decoded.text);
    }
    struct decoded none = expect_accepted(MESSAGE_QUERY_PRESENCE, "{\"user_ids\":[]}");
    assert_int_equal(none.message.users.count, 0);
    free(none.text);
}

static void lists_of_other_values_are_refused(void **state)
{
    (void)state;
    const char *problem = "user_ids must be a list of user ids (strings of 1 to 128 bytes)";
    static const char *const wrong[] = {
        "{}",
        "{\"user_ids\":null}",
        "{\"user_ids\":\"bob\"}",
        "{\"user_ids\":{}}",
        "{\"user_ids\":[7]}",
        "{\"user_ids\":[\"\"]}",
        "{\"user_ids\":[\"bo\\u0000b\"]}",
        "{\"user_ids\":[\"bo\\nb\"]}",
        "{\"user_ids\":[\"bob\",null]}",
        "{\"user_ids\":[[\"bob\"]]}",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        expect_refused(MESSAGE_QUERY_PRESENCE, wrong[i], problem);
    struct buffer text = BUFFER_INIT;
    buffer_append_text(&text, "{\"user_ids\":[\"u\"");
    for (int i = 1; i < FIELDS_USERS_MAX; i++)
        buffer_append_text(&text, ",\"u\"");
    size_t full = text.len;
    buffer_append(&text, "]}", 3);
    struct decoded decoded = expect_accepted(MESSAGE_QUERY_PRESENCE, text.data);
    assert_int_equal(decoded.message.users.count, FIELDS_USERS_MAX);
    free(decoded.text);
    text.len = full;
    buffer_append(&text, ",\"u\"]}", 7);
    expect_refused(MESSAGE_QUERY_PRESENCE, text.data, problem);
    buffer_free(&text);
}

static void ids_have_1_to_128_bytes(void **state)
{
    (void)state;
    const char *problem = "chat_id must be a string of 1 to 128 bytes";
    char *longest = text_of_length("chat_id", 128);
    char *too_long = text_of_length("chat_id", 129);
    struct decoded decoded = expect_accepted(MESSAGE_OPEN_CHAT, longest);
    assert_int_equal(decoded.message.chat_id.len, 128);
    free(decoded.text);
    expect_refused(MESSAGE_OPEN_CHAT, too_long, problem);
    expect_refused(MESSAGE_CLOSE_CHAT, "{\"chat_id\":\"\"}", problem);
    expect_refused(MESSAGE_TYPING_START, "{}", problem);
    expect_refused(MESSAGE_TYPING_STOP, "{\"chat_id\":null}", problem);
    free(longest);
    free(too_long);
}

static void send_message_has_three_fields(void **state)
{
    (void)state;
    struct decoded decoded = expect_accepted(
        MESSAGE_SEND_MESSAGE,
        "{\"body\":\"h\\u00e9\\n\",\"chat_id\":\"c\",\"client_message_id\":\"m-1\"}");
    assert_text(decoded.message.send.chat_id, "c");
    assert_text(decoded.message.send.client_message_id, "m-1");
    assert_text(decoded.message.send.body, "h\xc3\xa9\n");
    free(decoded.text);
    expect_refused(MESSAGE_SEND_MESSAGE, "{\"chat_id\":\"c\",\"body\":\"b\"}",
                   "client_message_id must be a string of 1 to 128 bytes");
    expect_refused(MESSAGE_SEND_MESSAGE,
                   "{\"chat_id\":\"c\",\"client_message_id\":\"m\",\"body\":\"\"}",
                   "body must be a string of 1 to 4096 bytes");
}

/* The error can then name the message that the client waits for. */
static void refused_send_message_keeps_its_client_message_id(void **state)
{
    (void)state;
    struct decoded decoded = decode(MESSAGE_SEND_MESSAGE, "{\"client_message_id\":\"m-1\"}");
    assert_non_null(decoded.problem);
    assert_text(decoded.message.send.client_message_id, "m-1");
    free(decoded.text);
    decoded = decode(MESSAGE_SEND_MESSAGE, "{\"client_message_id\":7}");
    assert_non_null(decoded.problem);
    assert_null(decoded.message.send.client_message_id.data);
    free(decoded.text);
}

static void sequences_are_non_negative_integers(void **state)
{
    (void)state;
    struct decoded decoded =
        expect_accepted(MESSAGE_ACK, "{\"chat_id\":\"c\",\"sequence\":9223372036854775807}");
    assert_true(decoded.message.ack.sequence == INT64_MAX);
    assert_text(decoded.message.ack.chat_id, "c");
    free(decoded.text);
    const char *problem = "sequence must be a whole number, 0 or more";
    expect_refused(MESSAGE_ACK, "{\"chat_id\":\"c\",\"sequence\":-1}", problem);
    expect_refused(MESSAGE_ACK, "{\"chat_id\":\"c\",\"sequence\":1.5}", problem);
    expect_refused(MESSAGE_ACK, "{\"chat_id\":\"c\",\"sequence\":\"1\"}", problem);
    expect_refused(MESSAGE_ACK, "{\"chat_id\":\"c\",\"sequence\":9223372036854775808}", problem);
    expect_refused(MESSAGE_ACK, "{\"chat_id\":\"c\"}", problem);
}

static void sync_limit_may_be_left_out(void **state)
{
    (void)state;
    struct decoded decoded = expect_accepted(
        MESSAGE_SYNC_REQUEST, "{\"chat_id\":\"c\",\"after_sequence\":17,\"limit\":50}");
    assert_text(decoded.message.sync.chat_id, "c");
    assert_int_equal(decoded.message.sync.after_sequence, 17);
    assert_int_equal(decoded.message.sync.limit, 50);
    free(decoded.text);
    decoded = expect_accepted(MESSAGE_SYNC_REQUEST,
                              "{\"chat_id\":\"c\",\"after_sequence\":0,\"limit\":null}");
    assert_int_equal(decoded.message.sync.limit, 0);
    free(decoded.text);
    expect_refused(MESSAGE_SYNC_REQUEST, "{\"chat_id\":\"c\"}",
                   "after_sequence must be a whole number, 0 or more");
    expect_refused(MESSAGE_SYNC_REQUEST,
                   "{\"chat_id\":\"c\",\"after_sequence\":0,\"limit\":\"all\"}",
                   "limit must be a whole number, 0 or more");
}

static void call_commands_require_their_fields(void **state)
{
    (void)state;
    static const enum message_type types[] = {MESSAGE_CALL_ACCEPT, MESSAGE_CALL_REJECT,
                                              MESSAGE_CALL_END};
    struct decoded decoded = expect_accepted(MESSAGE_CALL_REQUEST, "{\"to\":\"bob\"}");
    assert_text(decoded.message.call.to, "bob");
    assert_null(decoded.message.call.call_id.data);
    free(decoded.text);
    expect_refused(MESSAGE_CALL_REQUEST, "{}", "to must be a user id");
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        decoded = expect_accepted(types[i], "{\"call_id\":\"k\"}");
        assert_text(decoded.message.call.call_id, "k");
        free(decoded.text);
        expect_refused(types[i], "{\"call_id\":null}",
                       "call_id must be a string of 1 to 128 bytes without control characters");
        expect_refused(types[i], "{\"call_id\":\"k\\n\"}",
                       "call_id must be a string of 1 to 128 bytes without control characters");
    }
    expect_refused(MESSAGE_CALL_REQUEST, "{\"to\":\"bob\",\"call_id\":\"\\u0085\"}",
                   "call_id must be a string of 1 to 128 bytes without control characters");
}

static void signal_data_is_passed_on_unchanged(void **state)
{
    (void)state;
    struct decoded decoded = expect_accepted(
        MESSAGE_CALL_SIGNAL, "{\"data\":{\"sdp\": \"v\\u003d0\"},\"call_id\":\"k\"}");
    assert_text(decoded.message.call.data, "{\"sdp\": \"v\\u003d0\"}");
    free(decoded.text);
    expect_refused(MESSAGE_CALL_SIGNAL, "{\"call_id\":\"k\"}",
                   "data is missing or nested too deep");
}

/* Makes a signal with nested data. */
static void nest(char *text, size_t levels)
{
    strcpy(text, "{\"call_id\":\"k\",\"data\":");
    char *at = text + strlen(text);
    memset(at, '[', levels);
    memset(at + levels, ']', levels);
    strcpy(at + 2 * levels, "}");
}

static void signal_data_leaves_nesting_levels_for_wrapping(void **state)
{
    (void)state;
    char text[4 * JSON_DEPTH_MAX];
    nest(text, JSON_DEPTH_MAX - JSON_WRAPPING_MAX);
    struct decoded decoded = expect_accepted(MESSAGE_CALL_SIGNAL, text);
    assert_int_equal(decoded.message.call.data.len, 2 * (JSON_DEPTH_MAX - JSON_WRAPPING_MAX));
    free(decoded.text);
    nest(text, JSON_DEPTH_MAX - JSON_WRAPPING_MAX + 1);
    expect_refused(MESSAGE_CALL_SIGNAL, text, "data is missing or nested too deep");
}

static void token_must_be_a_string(void **state)
{
    (void)state;
    struct decoded decoded = expect_accepted(MESSAGE_REFRESH_TOKEN, "{\"token\":\"a.b.c\"}");
    assert_text(decoded.message.token, "a.b.c");
    free(decoded.text);
    expect_refused(MESSAGE_REFRESH_TOKEN, "{\"token\":\"\"}", "token must be a string");
    expect_refused(MESSAGE_REFRESH_TOKEN, "{\"token\":null}", "token must be a string");
    expect_refused(MESSAGE_REFRESH_TOKEN, "{}", "token must be a string");
}

static void server_messages_from_clients_are_an_unknown_type(void **state)
{
    (void)state;
    expect_refused(MESSAGE_INVALID, "{}", "unknown type");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scan_accepts_one_object_with_few_json_members_only),
        cmocka_unit_test(last_of_equal_json_members_counts),
        cmocka_unit_test(heartbeat_may_leave_activity_out),
        cmocka_unit_test(user_lists_are_read_in_order),
        cmocka_unit_test(lists_of_other_values_are_refused),
        cmocka_unit_test(ids_have_1_to_128_bytes),
        cmocka_unit_test(send_message_has_three_fields),
        cmocka_unit_test(refused_send_message_keeps_its_client_message_id),
        cmocka_unit_test(sequences_are_non_negative_integers),
        cmocka_unit_test(sync_limit_may_be_left_out),
        cmocka_unit_test(call_commands_require_their_fields),
        cmocka_unit_test(signal_data_is_passed_on_unchanged),
        cmocka_unit_test(signal_data_leaves_nesting_levels_for_wrapping),
        cmocka_unit_test(token_must_be_a_string),
        cmocka_unit_test(server_messages_from_clients_are_an_unknown_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
