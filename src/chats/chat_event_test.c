/* What gateways tell each other about a chat: names of topics, events both ways, and anything else. */
#include "chats/chat_event.h"

#include "routing/router.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void names_of_topics_come_back(void **unused)
{
    (void)unused;
    static const char *const CHATS[] = {"a", "a:b", ":typing", ":presence", "chat:", "x:typing:y"};
    for (size_t i = 0; i < sizeof(CHATS) / sizeof(CHATS[0]); i++)
        for (int topic = CHAT_TOPIC_PRESENCE; topic <= CHAT_TOPIC_TYPING; topic++) {
            char name[ROUTER_TOPIC_BYTES_MAX];
            struct slice chat_id;
            struct slice made = chat_topic_name(name, slice_of(CHATS[i]), (enum chat_topic)topic);
            assert_int_equal(chat_topic_parse(made, &chat_id), topic);
            assert_true(slice_is(chat_id, CHATS[i]));
        }
}

static void the_longest_name_fits(void **unused)
{
    (void)unused;
    char name[ROUTER_TOPIC_BYTES_MAX], chat[CHAT_ID_BYTES_MAX];
    memset(chat, 'x', sizeof(chat));
    struct slice made =
        chat_topic_name(name, (struct slice){chat, sizeof(chat)}, CHAT_TOPIC_PRESENCE);
    assert_true(made.len <= sizeof(name));
}

static void other_topics_are_none(void **unused)
{
    (void)unused;
    static const char *const NAMES[] = {
        "",        "chat:",      "chat::typing",     "chat:a",
        "chat:a:", "presence:a", "server:a:deliver", "a:typing",
    };
    struct slice chat_id;
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
        assert_int_equal(chat_topic_parse(slice_of(NAMES[i]), &chat_id), CHAT_TOPIC_NONE);
}

/* A peer may send any name; those who get a chat's id have room for one that a chat can have. */
static void a_chat_with_an_impossible_id_is_none(void **unused)
{
    (void)unused;
    char name[ROUTER_TOPIC_BYTES_MAX], chat[CHAT_ID_BYTES_MAX + 1];
    struct slice chat_id;
    memset(chat, 'x', sizeof(chat));
    struct slice longest = {chat, CHAT_ID_BYTES_MAX}, too_long = {chat, sizeof(chat)};
    assert_int_equal(chat_topic_parse(chat_topic_name(name, longest, CHAT_TOPIC_TYPING), &chat_id),
                     CHAT_TOPIC_TYPING);
    assert_int_equal(chat_topic_parse(chat_topic_name(name, too_long, CHAT_TOPIC_TYPING), &chat_id),
                     CHAT_TOPIC_NONE);
}

static bool parse(const char *text, struct chat_event *event)
{
    return chat_event_parse(slice_of(text), event);
}

static void typing_comes_back(void **unused)
{
    (void)unused;
    struct buffer out = BUFFER_INIT;
    struct chat_event event;
    chat_event_write_typing(&out, SLICE("a\"b"), SLICE("al\nice"), true, 1700000000123);
    assert_true(chat_event_parse(buffer_slice(&out), &event));
    assert_int_equal(event.kind, CHAT_EVENT_TYPING);
    assert_true(slice_is(event.change.presence.user_id, "al\nice"));
    assert_true(event.typing);
    assert_int_equal(event.change.timestamp_ms, 1700000000123);
    chat_event_free(&event);
    buffer_free(&out);
}

static void removal_comes_back(void **unused)
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

static void presence_has_its_exceptions(void **unused)
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
    assert_int_equal(event.except_count, 2);
    assert_true(slice_is(event.except[0], "b"));
    assert_true(slice_is(event.except[1], "c"));
    chat_event_free(&event);
}

static void visibility_may_be_taken(void **unused)
{
    (void)unused;
    struct chat_event event;
    assert_true(parse("{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"unknown\","
                      "\"reason\":\"privacy\",\"version\":0,\"except\":[]}",
                      &event));
    assert_int_equal(event.change.presence.status, PRESENCE_UNKNOWN);
    assert_int_equal(event.change.presence.reason, PRESENCE_REASON_PRIVACY);
    assert_int_equal(event.except_count, 0);
    chat_event_free(&event);
}

static void anything_else_is_none(void **unused)
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
            fail_msg("%s is no event", TEXTS[i]);
}

/* No part of an event is an event; reading one leaves nothing behind. */
static void cut_events_are_none(void **unused)
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
        cmocka_unit_test(names_of_topics_come_back),
        cmocka_unit_test(the_longest_name_fits),
        cmocka_unit_test(other_topics_are_none),
        cmocka_unit_test(a_chat_with_an_impossible_id_is_none),
        cmocka_unit_test(typing_comes_back),
        cmocka_unit_test(removal_comes_back),
        cmocka_unit_test(presence_has_its_exceptions),
        cmocka_unit_test(visibility_may_be_taken),
        cmocka_unit_test(anything_else_is_none),
        cmocka_unit_test(cut_events_are_none),
    };
    return cmocka_run_group_tests_name("chat_event", tests, NULL, NULL);
}
