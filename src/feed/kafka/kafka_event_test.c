#include "feed/kafka/kafka_event.h"

#include "ledger/ledger_messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct feed_event full_event(void)
{
    struct feed_event event = {.chat = SLICE("chat \"1\""),
                               .message_id = SLICE("01HZZZZZZZZZZZZZZZZZZZZZZZ"),
                               .sender = SLICE("alice"),
                               .body = SLICE("h\u00e9llo\n\\ \"you\""),
                               .sequence = INT64_MAX,
                               .members_version = 3,
                               .sent_at_ms = 1800000000000,
                               .has_except = true};
    assert_true(ulid_parse(SLICE("01HZZZZZZZZZZZZZZZZZZZZZZY"), &event.except));
    return event;
}

/* Decodes a copy of exactly this size, so that a sanitizer sees a read beyond it. */
static const char *decode(struct slice text, struct feed_event *event, char **copy)
{
    *copy = malloc(text.len ? text.len : 1);
    assert_non_null(*copy);
    memcpy(*copy, text.data, text.len);
    return kafka_event_decode(*copy, text.len, event);
}

static void test_event_survives_encoding(void **state)
{
    (void)state;
    struct feed_event event = full_event(), read;
    struct buffer out = BUFFER_INIT;
    char *copy;
    kafka_event_encode(&out, &event);
    assert_false(out.failed);
    assert_null(decode(buffer_slice(&out), &read, &copy));
    assert_true(slice_equal(read.chat, event.chat) && slice_equal(read.body, event.body));
    assert_true(slice_equal(read.sender, event.sender) &&
                slice_equal(read.message_id, event.message_id));
    assert_true(read.sequence == event.sequence && read.members_version == 3);
    assert_true(read.sent_at_ms == event.sent_at_ms && read.has_except);
    assert_true(ulid_equal(&read.except, &event.except));
    free(copy);
    buffer_free(&out);
}

static void test_optional_members_may_be_missing_and_unknown_ones_are_ignored(void **state)
{
    (void)state;
    struct feed_event read;
    char *copy;
    assert_null(decode(
        SLICE("{\"later\":[{}],\"version\":1,\"type\":\"message_persisted\",\"chat_id\":\"c\","
              "\"message_id\":\"m\",\"sequence\":1,\"sender_id\":\"a\",\"body\":\"b\","
              "\"sent_at_ms\":5}"),
        &read, &copy));
    assert_true(read.members_version == 0 && !read.has_except && read.sequence == 1);
    free(copy);
}

#define EVENT(version, type, chat, sequence, body)                                                 \
    "{\"version\":" version ",\"type\":" type ",\"chat_id\":" chat                                 \
    ",\"message_id\":\"m\",\"sequence\":" sequence ",\"sender_id\":\"a\",\"body\":" body           \
    ",\"sent_at_ms\":5}"

static void test_poison_is_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *reason;
    } CASES[] = {
        {"", "not a JSON object"},
        {"garbage", "not a JSON object"},
        {"[1]", "not a JSON object"},
        {"{\"version\":\"1\"}", "not a JSON object"},
        {"{}", "version"},
        {EVENT("2", "\"message_persisted\"", "\"c\"", "1", "\"b\""), "version"},
        {EVENT("1", "\"message_deleted\"", "\"c\"", "1", "\"b\""), "message_persisted"},
        {EVENT("1", "\"message_persisted\"", "\"\"", "1", "\"b\""), "chat_id"},
        {EVENT("1", "\"message_persisted\"", "\"c\"", "0", "\"b\""), "number"},
        {EVENT("1", "\"message_persisted\"", "\"c\"", "-1", "\"b\""), "number"},
        {EVENT("1", "\"message_persisted\"", "\"c\"", "1", "\"\""), "body"},
        {EVENT("1", "\"message_persisted\"", "\"c\"", "1", "\"b\",\"except\":\"x\""), "connection"},
        {EVENT("1", "\"message_persisted\"", "\"c\"", "1", "\"b\",\"members_version\":-1"),
         "number"},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct feed_event read;
        char *copy;
        const char *reason = decode(slice_of(CASES[i].text), &read, &copy);
        assert_non_null(reason);
        assert_non_null(strstr(reason, CASES[i].reason));
        free(copy);
    }
}

/* Fan-out keeps the length of a chat's id in a byte. */
static void test_lengths_beyond_the_ledgers_bounds_are_poison(void **state)
{
    (void)state;
    char longer[LEDGER_BODY_BYTES_MAX + 1];
    memset(longer, 'x', sizeof(longer));
    for (int field = 0; field < 2; field++) {
        struct feed_event event = full_event(), read;
        struct buffer out = BUFFER_INIT;
        char *copy;
        if (field == 0)
            event.chat = (struct slice){longer, LEDGER_ID_BYTES_MAX + 1};
        else
            event.body = (struct slice){longer, LEDGER_BODY_BYTES_MAX + 1};
        kafka_event_encode(&out, &event);
        assert_non_null(decode(buffer_slice(&out), &read, &copy));
        free(copy);
        buffer_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_survives_encoding),
        cmocka_unit_test(test_optional_members_may_be_missing_and_unknown_ones_are_ignored),
        cmocka_unit_test(test_poison_is_refused_with_a_reason),
        cmocka_unit_test(test_lengths_beyond_the_ledgers_bounds_are_poison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
