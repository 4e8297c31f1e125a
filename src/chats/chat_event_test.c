/* Events on a chat's presence topic: written, read back, and invalid ones. */
#include "chats/chat_event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static bool parse(const char *text, struct chat_event *event)
{
    return chat_event_parse(slice_of(text), event);
}

static void a_written_removal_is_read_back(void **unused)
{
    (void)unused;
    struct buffer out = BUFFER_INIT;
    struct chat_event event;
    chat_event_write_removed(&out, SLICE("alice"));
    assert_true(chat_event_parse(buffer_slice(&out), &event));
    assert_int_equal(event.kind, CHAT_EVENT_REMOVED);
    assert_true(slice_is(event.change.presence.user_id, "alice"));
    chat_event_free(&event);
    buffer_free(&out);
}

static void presence_event_lists_excepted_users(void **unused)
{
    (void)unused;
    struct chat_event event;
    assert_true(parse("{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"away\","
                      "\"in_call\":true,\"last_seen\":null,\"version\":7,"
                      "\"timestamp\":\"2026-01-31T10:00:00.000Z\",\"except\":[\"b\",\"\\u0063\"]}",
                      &event));
    assert_int_equal(event.kind, CHAT_EVENT_PRESENCE);
    assert_int_equal(event.change.presence.status, PRESENCE_AWAY);
    assert_true(event.change.presence.in_call);
    assert_int_equal(event.change.presence.version, 7);
    assert_int_equal(event.except.count, 2);
    assert_true(slice_is(event.except.ids[0], "b"));
    assert_true(slice_is(event.except.ids[1], "c"));
    chat_event_free(&event);
}

static void presence_event_may_take_visibility_away(void **unused)
{
    (void)unused;
    struct chat_event event;
    assert_true(parse("{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"unknown\","
                      "\"reason\":\"privacy\",\"version\":0,\"except\":[]}",
                      &event));
    assert_int_equal(event.change.presence.status, PRESENCE_UNKNOWN);
    assert_int_equal(event.change.presence.reason, PRESENCE_REASON_PRIVACY);
    assert_int_equal(event.except.count, 0);
    chat_event_free(&event);
}

static void an_invalid_event_is_refused(void **unused)
{
    (void)unused;
    static const char *const TEXTS[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"type\":\"typing_changed\"}",
        "{\"type\":\"typing_changed\",\"user_id\":\"\",\"typing\":true}",
        "{\"type\":\"typing_changed\",\"user_id\":7,\"typing\":true}",
        "{\"type\":\"typing_changed\",\"user_id\":\"a\",\"typing\":1}",
        "{\"type\":\"typing_changed\",\"user_id\":\"a\",\"typing\":true} ,",
        "{\"type\":\"hello\",\"user_id\":\"a\"}",
        "{\"user_id\":\"a\"}",
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"here\"}",
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"away\",\"except\":[1]}",
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"away\",\"except\":{}}",
    };
    struct chat_event event;
    for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++)
        if (parse(TEXTS[i], &event))
            fail_msg("%s is accepted as an event", TEXTS[i]);
}

/* The sanitizer sees what a refused event leaves allocated. */
static void a_cut_event_is_refused(void **unused)
{
    (void)unused;
    static const char TEXT[] =
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"away\","
        "\"version\":7,\"except\":[\"b\",\"c\"]}";
    struct chat_event event;
    for (size_t len = 0; len < sizeof(TEXT) - 1; len++)
        assert_false(chat_event_parse((struct slice){TEXT, len}, &event));
    assert_true(parse(TEXT, &event));
    chat_event_free(&event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_removal_is_read_back),
        cmocka_unit_test(presence_event_lists_excepted_users),
        cmocka_unit_test(presence_event_may_take_visibility_away),
        cmocka_unit_test(an_invalid_event_is_refused),
        cmocka_unit_test(a_cut_event_is_refused),
    };
    return cmocka_run_group_tests_name("chat_event", tests, NULL, NULL);
}
