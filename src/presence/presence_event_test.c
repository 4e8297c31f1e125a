#include "presence/presence_event.h"

#include "routing/router.h"
#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Parses a copy, since parsing writes to the text; the copy is valid until the next parse. */
static bool parse(const char *text, struct presence_event *out)
{
    static char *copy;
    free(copy);
    copy = exact_copy(slice_of(text));
    return presence_event_parse(copy, strlen(text), out);
}

static void expect_round_trip(struct presence presence)
{
    struct presence_event event = {.kind = PRESENCE_EVENT_CHANGED,
                                   .change = {.presence = presence, .timestamp_ms = 1700000000123}};
    struct presence_event read;
    struct buffer text = BUFFER_BOUNDED(PRESENCE_EVENT_BYTES_MAX);
    presence_event_write(&text, &event);
    assert_false(text.failed);
    assert_true(presence_event_parse(text.data, text.len, &read));
    assert_int_equal(read.kind, PRESENCE_EVENT_CHANGED);
    assert_true(slice_equal(read.change.presence.user_id, presence.user_id));
    assert_int_equal(read.change.presence.status, presence.status);
    assert_int_equal(read.change.presence.in_call, presence.in_call);
    assert_int_equal(read.change.presence.last_seen_ms, presence.last_seen_ms);
    assert_int_equal(read.change.presence.version, presence.version);
    assert_int_equal(read.change.timestamp_ms, 1700000000123);
    buffer_free(&text);
}

static void a_written_change_is_read_back(void **state)
{
    (void)state;
    char longest[USER_ID_BYTES_MAX];
    memset(longest, '"', sizeof(longest)); /* each is escaped to two bytes */
    expect_round_trip((struct presence){.user_id = SLICE("alice"),
                                        .status = PRESENCE_ONLINE,
                                        .last_seen_ms = TIME_NONE,
                                        .version = 1});
    expect_round_trip((struct presence){.user_id = SLICE("ünï \"c\\ödé\" 🙂"),
                                        .status = PRESENCE_AWAY,
                                        .in_call = true,
                                        .last_seen_ms = TIME_NONE,
                                        .version = 1700000000999});
    expect_round_trip((struct presence){.user_id = {longest, sizeof(longest)},
                                        .status = PRESENCE_OFFLINE,
                                        .last_seen_ms = 1699999999999,
                                        .version = INT64_C(1) << 52});
}

static void a_privacy_event_names_its_user(void **state)
{
    (void)state;
    struct presence_event event = {.kind = PRESENCE_EVENT_PRIVACY,
                                   .change.presence.user_id = SLICE("alice")};
    struct buffer text = BUFFER_INIT;
    presence_event_write(&text, &event);
    assert_true(
        slice_is(buffer_slice(&text), "{\"type\":\"privacy_changed\",\"user_id\":\"alice\"}"));
    struct presence_event read;
    assert_true(presence_event_parse(text.data, text.len, &read));
    assert_int_equal(read.kind, PRESENCE_EVENT_PRIVACY);
    assert_true(slice_is(read.change.presence.user_id, "alice"));
    buffer_free(&text);
}

/* A newer gateway may send more fields. */
static void unknown_fields_are_skipped(void **state)
{
    (void)state;
    struct presence_event read;
    assert_true(parse("{\"new\":{\"a\":[1,{}]},\"user_id\":\"bob\",\"status\":\"away\","
                      "\"type\":\"presence_changed\",\"version\":7,\"x\":null}",
                      &read));
    assert_true(slice_is(read.change.presence.user_id, "bob"));
    assert_int_equal(read.change.presence.status, PRESENCE_AWAY);
    assert_int_equal(read.change.presence.version, 7);
    assert_int_equal(read.change.presence.last_seen_ms, TIME_NONE);
}

static void an_invalid_event_is_refused(void **state)
{
    (void)state;
    static const char *const WRONG[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"type\":\"presence_changed\"}",
        "{\"type\":\"presence_changed\",\"user_id\":\"a\"}",
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"unknown\"}",
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"asleep\"}",
        "{\"type\":\"presence_changed\",\"user_id\":\"\",\"status\":\"online\"}",
        "{\"type\":\"presence_changed\",\"user_id\":7,\"status\":\"online\"}",
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"online\",\"version\":\"1\"}",
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"online\",\"version\":1.5}",
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"online\",\"in_call\":1}",
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"online\",\"last_seen\":5}",
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"online\",\"last_seen\":\"x\"}",
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"online\"",
        "{\"type\":\"presence_changed\",\"user_id\":\"a\",\"status\":\"online\"}x",
        "{\"type\":\"other\",\"user_id\":\"a\",\"status\":\"online\"}",
        "{\"type\":\"other\",\"user_id\":\"a\"}",
        "{\"type\":7,\"user_id\":\"a\",\"status\":\"online\"}",
        "{\"user_id\":\"a\",\"status\":\"online\"}",
        "{\"type\":\"privacy_changed\"}",
    };
    struct presence_event read;
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(*WRONG); i++)
        if (parse(WRONG[i], &read))
            fail_msg("taken: %s", WRONG[i]);
}

static bool parse_of(int id_len)
{
    struct presence_event change, privacy;
    char id[USER_ID_BYTES_MAX + 1], text[PRESENCE_EVENT_BYTES_MAX];
    memset(id, 'a', sizeof(id));
    snprintf(text, sizeof(text),
             "{\"type\":\"presence_changed\",\"status\":\"online\",\"user_id\":\"%.*s\"}", id_len,
             id);
    bool taken = parse(text, &change);
    snprintf(text, sizeof(text), "{\"type\":\"privacy_changed\",\"user_id\":\"%.*s\"}", id_len, id);
    assert_int_equal(parse(text, &privacy), taken);
    return taken;
}

static void a_user_id_beyond_the_maximum_is_refused(void **state)
{
    (void)state;
    assert_true(parse_of(USER_ID_BYTES_MAX));
    assert_false(parse_of(USER_ID_BYTES_MAX + 1));
}

/* Every prefix of an event is refused, and nothing beyond its end is read. */
static void a_cut_event_is_refused(void **state)
{
    (void)state;
    const char *whole = "{\"type\":\"presence_changed\",\"user_id\":\"al\\u00efce\",\"status\":"
                        "\"offline\",\"in_call\":false,\"last_seen\":\"2023-11-14T22:13:20.000Z\","
                        "\"version\":12,\"timestamp\":\"2023-11-14T22:13:21.000Z\"}";
    struct presence_event read;
    assert_true(parse(whole, &read));
    assert_int_equal(read.change.presence.last_seen_ms, 1700000000000);
    for (size_t len = 0; len < strlen(whole); len++) {
        char *copy = exact_copy((struct slice){whole, len});
        assert_false(presence_event_parse(copy, len, &read));
        free(copy);
    }
}

static void a_topic_names_its_user(void **state)
{
    (void)state;
    char name[ROUTER_TOPIC_BYTES_MAX], longest[USER_ID_BYTES_MAX];
    memset(longest, ':', sizeof(longest));
    struct slice topic = presence_topic(name, SLICE("alice"));
    assert_true(slice_is(topic, "presence:alice"));
    assert_true(slice_is(presence_topic_user(topic), "alice"));
    topic = presence_topic(name, (struct slice){longest, sizeof(longest)});
    assert_true(slice_equal(presence_topic_user(topic), (struct slice){longest, sizeof(longest)}));
    assert_int_equal(presence_topic_user(SLICE("chat:1:typing")).len, 0);
    assert_int_equal(presence_topic_user(SLICE("presence")).len, 0);
    assert_null(presence_topic_user(SLICE_NONE).data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_change_is_read_back),
        cmocka_unit_test(a_privacy_event_names_its_user),
        cmocka_unit_test(unknown_fields_are_skipped),
        cmocka_unit_test(an_invalid_event_is_refused),
        cmocka_unit_test(a_user_id_beyond_the_maximum_is_refused),
        cmocka_unit_test(a_cut_event_is_refused),
        cmocka_unit_test(a_topic_names_its_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
