/* Messages that the client sends and receives, in virtual time. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* ---- the outbox ---- */

static void acknowledge(struct fixture *fixture, const char *id, int64_t sequence, bool duplicate)
{
    fixture_sendf(fixture,
                  "{\"type\":\"message_ack\",\"chat_id\":\"c\",\"client_message_id\":\"%s\","
                  "\"message_id\":\"01\",\"sequence\":%lld,\"duplicate\":%s}",
                  id, (long long)sequence, duplicate ? "true" : "false");
}

static void test_one_message_per_chat_is_pending_at_a_time(void **state)
{
    struct fixture *fixture = *state;
    assert_true(rollcall_send(fixture->client, "c", "1", "one"));
    assert_true(rollcall_send(fixture->client, "c", "2", "two"));
    assert_true(rollcall_send(fixture->client, "d", "3", "elsewhere"));
    fixture_connect(fixture);
    assert_non_null(strstr(fixture_expect(fixture, "send_message"), "\"body\":\"one\""));
    assert_non_null(strstr(fixture_expect(fixture, "send_message"), "\"body\":\"elsewhere\""));
    fixture_expect_nothing(fixture);
    acknowledge(fixture, "1", 1, false);
    assert_non_null(strstr(fixture_expect(fixture, "send_message"), "\"body\":\"two\""));
    assert_string_equal(fixture->log, "connecting syncing ready sent:1:1 ");
    acknowledge(fixture, "1", 1, false);
    assert_string_equal(fixture->log, "connecting syncing ready sent:1:1 ");
}

static void test_unacknowledged_messages_are_resent_in_order_with_their_ids(void **state)
{
    struct fixture *fixture = *state;
    rollcall_send(fixture->client, "c", "1", "one");
    rollcall_send(fixture->client, "c", NULL, "two");
    fixture_connect(fixture);
    fixture_expect(fixture, "send_message");
    fixture_hang_up(fixture);
    fixture_advance(fixture, fixture->wait_ms);
    fixture_connect(fixture);
    assert_non_null(strstr(fixture_expect(fixture, "send_message"), "\"client_message_id\":\"1\""));
    acknowledge(fixture, "1", 7, true);
    char first[256];
    char again[256];
    snprintf(first, sizeof(first), "%s", fixture_expect(fixture, "send_message"));
    fixture_hang_up(fixture);
    fixture_advance(fixture, fixture->wait_ms);
    fixture_connect(fixture);
    snprintf(again, sizeof(again), "%s", fixture_expect(fixture, "send_message"));
    assert_string_equal(first, again);
}

static void test_temporary_refusals_are_retried_after_the_given_time(void **state)
{
    struct fixture *fixture = *state;
    rollcall_send(fixture->client, "c", "1", "one");
    rollcall_send(fixture->client, "c", "2", "two");
    fixture_connect(fixture);
    fixture_expect(fixture, "send_message");
    fixture_send(fixture,
                 "{\"type\":\"error\",\"code\":\"RATE_LIMITED\",\"client_message_id\":\"1\","
                 "\"retry_after_seconds\":2.5}");
    fixture_advance(fixture, 2499);
    fixture_expect_nothing(fixture);
    fixture_advance(fixture, 1);
    assert_non_null(strstr(fixture_expect(fixture, "send_message"), "\"body\":\"one\""));
    for (int64_t base_ms = 2000; base_ms <= 4000; base_ms *= 2) { /* second and third refusal */
        fixture_send(fixture, "{\"type\":\"error\",\"code\":\"SERVER_BUSY\","
                              "\"client_message_id\":\"1\"}");
        fixture_advance(fixture, base_ms * 8 / 10 - 1);
        fixture_expect_no(fixture, "send_message");
        fixture_advance(fixture, base_ms * 4 / 10 + 1);
        assert_non_null(strstr(fixture_expect(fixture, "send_message"), "\"body\":\"one\""));
    }
    assert_null(strstr(fixture->log, "refused"));
}

/* The server answers the message with this id, in the chat with the same id. */
static void answer_message(struct fixture *fixture, const char *answer, const char *id)
{
    char json[256];
    snprintf(json, sizeof(json), "{%s,\"chat_id\":\"%s\",\"client_message_id\":\"%s\"}", answer, id,
             id);
    fixture_send(fixture, json);
}

/* The server counts all chats together, so it would refuse most of them again. */
static void test_rate_limited_chats_take_turns(void **state)
{
    struct fixture *fixture = *state;
    static const char *const IDS[] = {"id-1", "id-2", "id-3"};
    for (size_t i = 0; i < 3; i++)
        rollcall_send(fixture->client, IDS[i], IDS[i], "hello");
    fixture_connect(fixture);
    for (size_t i = 0; i < 3; i++)
        fixture_expect(fixture, "send_message");
    for (size_t i = 0; i < 3; i++)
        answer_message(fixture,
                       "\"type\":\"error\",\"code\":\"RATE_LIMITED\",\"retry_after_seconds\":1",
                       IDS[i]);
    fixture_advance(fixture, 1000);
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(strstr(fixture_expect(fixture, "send_message"), IDS[i]));
        fixture_expect_no(fixture, "send_message");
        answer_message(fixture, "\"type\":\"message_ack\",\"message_id\":\"m\",\"sequence\":1",
                       IDS[i]);
    }
    rollcall_send(fixture->client, "id-1", "id-4", "later");
    rollcall_send(fixture->client, "id-2", "id-5", "later");
    fixture_advance(fixture, 0);
    fixture_expect(fixture, "send_message"); /* nothing is limited any more */
    fixture_expect(fixture, "send_message");
}

static void test_final_refusal_lets_the_next_message_go(void **state)
{
    struct fixture *fixture = *state;
    rollcall_send(fixture->client, "c", "1", "one");
    rollcall_send(fixture->client, "c", "2", "two");
    fixture_connect(fixture);
    fixture_expect(fixture, "send_message");
    fixture_send(fixture,
                 "{\"type\":\"error\",\"code\":\"FORBIDDEN\",\"client_message_id\":\"1\"}");
    assert_non_null(strstr(fixture->log, "refused:1:FORBIDDEN "));
    assert_non_null(strstr(fixture_expect(fixture, "send_message"), "\"body\":\"two\""));
}

static void test_message_without_answer_is_resent(void **state)
{
    struct fixture *fixture = *state;
    rollcall_send(fixture->client, "c", "1", "one");
    fixture_connect(fixture);
    fixture_expect(fixture, "send_message");
    for (int64_t passed_ms = 0; passed_ms < CLIENT_REPLY_MS; passed_ms += 5000) {
        fixture_expect_no(fixture, "send_message");
        fixture_advance(fixture, 5000);
        fixture_send(fixture, "{\"type\":\"heartbeat_ack\"}");
    }
    fixture_expect(fixture, "send_message");
}

static void test_outbox_is_bounded(void **state)
{
    struct fixture *fixture = *state;
    static char long_body[ROLLCALL_BODY_BYTES_MAX + 2];
    memset(long_body, 'x', ROLLCALL_BODY_BYTES_MAX + 1);
    assert_false(rollcall_send(fixture->client, "c", NULL, long_body));
    assert_true(rollcall_send(fixture->client, "c", "1", "one"));
    assert_false(rollcall_send(fixture->client, "c", "1", "one"));
    for (int i = 1; i < ROLLCALL_OUTBOX_MAX; i++)
        assert_true(rollcall_send(fixture->client, "c", NULL, "x"));
    assert_false(rollcall_send(fixture->client, "c", NULL, "x"));
    fixture_connect(fixture);
    acknowledge(fixture, "1", 1, false);
    assert_true(rollcall_send(fixture->client, "c", NULL, "x"));
}

/* The server's error for an empty body does not name the message, so its chat would be stuck. A body that is not
 * UTF-8 would reach others as a different text. */
static void test_empty_and_invalid_bodies_are_rejected(void **state)
{
    struct fixture *fixture = *state;
    assert_false(rollcall_send(fixture->client, "c", NULL, ""));
    assert_false(rollcall_send(fixture->client, "c", NULL, "caf\xe9"));
    fixture_connect(fixture);
    fixture_expect_nothing(fixture);
}

/* ---- contents of events ---- */

static char last_json[256];

static void on_event_keep_json(void *arg, const struct rollcall_event *event)
{
    (void)arg;
    if (event->type == ROLLCALL_EVENT_MESSAGE || event->type == ROLLCALL_EVENT_PRESENCE)
        snprintf(last_json, sizeof(last_json), "%.*s", (int)event->json_len, event->json);
}

/* The application reads JSON members that this library does not parse, such as sent_at. */
static void test_items_of_pages_and_snapshots_carry_their_json(void **state)
{
    struct fixture *fixture = *state;
    rollcall_follow(fixture->client, "c", 0);
    fixture->client->options.event = on_event_keep_json;
    fixture_connect(fixture);
    fixture_send(fixture,
                 "{\"type\":\"sync_response\",\"chat_id\":\"c\",\"has_more\":false,\"messages\":[ "
                 "{\"chat_id\":\"c\",\"sequence\":1,\"body\":\"\\n\",\"sent_at\":\"then\"}]}");
    assert_string_equal(last_json,
                        "{\"chat_id\":\"c\",\"sequence\":1,\"body\":\"\\n\",\"sent_at\":\"then\"}");
    fixture_send(fixture, "{\"type\":\"presence_snapshot\",\"presences\":[{\"user_id\":\"bob\","
                          "\"status\":\"away\",\"in_call\":true}]}");
    assert_string_equal(last_json, "{\"user_id\":\"bob\",\"status\":\"away\",\"in_call\":true}");
}

/* ---- following ---- */

static void push(struct fixture *fixture, int64_t sequence)
{
    fixture_sendf(fixture,
                  "{\"type\":\"message\",\"chat_id\":\"c\",\"message_id\":\"m\",\"sequence\":%lld,"
                  "\"sender_id\":\"bob\",\"body\":\"b%lld\"}",
                  (long long)sequence, (long long)sequence);
}

static void page(struct fixture *fixture, int64_t first, int64_t last, bool has_more)
{
    char text[4096];
    size_t len = (size_t)snprintf(text, sizeof(text),
                                  "{\"type\":\"sync_response\",\"id\":\"sync c\",\"chat_id\":\"c\","
                                  "\"has_more\":%s,\"messages\":[",
                                  has_more ? "true" : "false");
    for (int64_t at = first; at <= last; at++)
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                "%s{\"chat_id\":\"c\",\"message_id\":\"m\",\"sequence\":%lld,"
                                "\"sender_id\":\"bob\",\"body\":\"b%lld\"}",
                                at > first ? "," : "", (long long)at, (long long)at);
    snprintf(text + len, sizeof(text) - len, "]}");
    fixture_send(fixture, text);
}

/* Connects and syncs an empty chat, then clears the log. */
static void follow(struct fixture *fixture)
{
    assert_true(rollcall_follow(fixture->client, "c", 0));
    fixture_connect(fixture);
    fixture_expect(fixture, "sync_request");
    page(fixture, 1, 0, false);
    fixture->log[0] = '\0';
}

static void test_client_is_ready_only_after_the_last_page(void **state)
{
    struct fixture *fixture = *state;
    rollcall_follow(fixture->client, "c", 3);
    fixture_connect(fixture);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_SYNCING);
    assert_non_null(strstr(fixture_expect(fixture, "sync_request"), "\"after_sequence\":3,"));
    page(fixture, 4, 5, true);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_SYNCING);
    assert_non_null(strstr(fixture_expect(fixture, "sync_request"), "\"after_sequence\":5,"));
    page(fixture, 6, 6, false);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_READY);
    assert_string_equal(fixture->log, "connecting syncing b4 b5 b6 ready ");
}

static void test_missing_messages_are_fetched_without_duplicates(void **state)
{
    struct fixture *fixture = *state;
    follow(fixture);
    push(fixture, 1);
    push(fixture, 1);
    push(fixture, 4);
    push(fixture, 3);
    assert_string_equal(fixture->log, "b1 ");
    assert_non_null(strstr(fixture_expect(fixture, "sync_request"), "\"after_sequence\":1,"));
    fixture_expect_nothing(fixture);
    push(fixture, 2);
    page(fixture, 2, 4, false);
    push(fixture, 4);
    push(fixture, 5);
    assert_string_equal(fixture->log, "b1 b2 b3 b4 b5 ");
    fixture_expect_nothing(fixture);
}

static void test_sync_required_syncs_the_followed_chats(void **state)
{
    struct fixture *fixture = *state;
    follow(fixture);
    push(fixture, 1);
    fixture_expect_nothing(fixture);
    fixture_send(fixture, "{\"type\":\"sync_required\",\"reason\":\"test\"}");
    assert_non_null(strstr(fixture_expect(fixture, "sync_request"), "\"after_sequence\":1,"));
    page(fixture, 2, 3, false);
    assert_non_null(strstr(fixture->log, "b2 b3 "));
    fixture_expect_nothing(fixture);
}

/* The server read the page before it stored the last message. */
static void test_messages_missed_while_syncing_are_fetched_afterwards(void **state)
{
    struct fixture *fixture = *state;
    follow(fixture);
    push(fixture, 2);
    fixture_expect(fixture, "sync_request");
    push(fixture, 4);
    page(fixture, 1, 2, false);
    assert_non_null(strstr(fixture_expect(fixture, "sync_request"), "\"after_sequence\":2,"));
    page(fixture, 3, 4, false);
    assert_string_equal(fixture->log, "b1 b2 b3 b4 ");
    fixture_expect_nothing(fixture);
}

static void test_page_without_progress_is_retried_with_back_off(void **state)
{
    struct fixture *fixture = *state;
    follow(fixture);
    push(fixture, 9);
    fixture_expect(fixture, "sync_request");
    page(fixture, 1, 0, true);
    fixture_expect_nothing(fixture);
    fixture_advance(fixture, 1200);
    fixture_expect(fixture, "sync_request");
}

static void test_own_messages_appear_in_sequence(void **state)
{
    struct fixture *fixture = *state;
    follow(fixture);
    rollcall_send(fixture->client, "c", "1", "mine");
    fixture_expect(fixture, "send_message");
    acknowledge(fixture, "1", 1, false);
    push(fixture, 2);
    assert_string_equal(fixture->log, "sent:1:1 mine b2 ");
    rollcall_send(fixture->client, "c", "2", "mine again");
    fixture_expect(fixture, "send_message");
    acknowledge(fixture, "2", 4, false); /* 3 has not arrived yet */
    assert_non_null(strstr(fixture_expect(fixture, "sync_request"), "\"after_sequence\":2,"));
    page(fixture, 3, 4, false);
    assert_string_equal(fixture->log, "sent:1:1 mine b2 sent:2:4 b3 b4 ");
}

static void test_reconnect_resumes_sync_and_restores_subscriptions(void **state)
{
    struct fixture *fixture = *state;
    follow(fixture);
    rollcall_open_chat(fixture->client, "c");
    rollcall_subscribe(fixture->client, "bob");
    push(fixture, 1);
    fixture_hang_up(fixture);
    fixture_advance(fixture, fixture->wait_ms);
    fixture_connect(fixture);
    assert_non_null(strstr(fixture_expect(fixture, "subscribe_presence"), "[\"bob\"]"));
    assert_non_null(strstr(fixture_expect(fixture, "open_chat"), "\"chat_id\":\"c\""));
    assert_non_null(strstr(fixture_expect(fixture, "sync_request"), "\"after_sequence\":1,"));
}

static void test_refused_sync_is_retried_or_reported(void **state)
{
    struct fixture *fixture = *state;
    rollcall_follow(fixture->client, "c", 0);
    fixture_connect(fixture);
    fixture_expect(fixture, "sync_request");
    fixture_send(fixture, "{\"type\":\"error\",\"id\":\"sync c\",\"code\":\"SERVER_BUSY\","
                          "\"retry_after_seconds\":1}");
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_SYNCING);
    fixture_advance(fixture, 1000);
    fixture_expect(fixture, "sync_request");
    fixture_send(fixture, "{\"type\":\"error\",\"id\":\"sync c\",\"code\":\"FORBIDDEN\"}");
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_READY);
    assert_non_null(strstr(fixture->log, "error:c:FORBIDDEN "));
}

/* The event stays valid after the callback has dropped the chat. */
static void on_event_unfollow(void *arg, const struct rollcall_event *event)
{
    struct fixture *fixture = arg;
    if (event->type != ROLLCALL_EVENT_ERROR)
        return;
    assert_true(rollcall_unfollow(fixture->client, event->chat_id));
    assert_string_equal(event->chat_id, "c");
}

static void test_callback_may_unfollow_the_refused_chat(void **state)
{
    struct fixture *fixture = *state;
    rollcall_follow(fixture->client, "c", 0);
    fixture->client->options.event = on_event_unfollow;
    fixture_connect(fixture);
    fixture_expect(fixture, "sync_request");
    fixture_send(fixture, "{\"type\":\"error\",\"id\":\"sync c\",\"code\":\"FORBIDDEN\"}");
    assert_int_equal(fixture->client->chat_count, 0);
}

/* The server's error would not name the chat, so the client would never be READY. */
static void test_invalid_ids_are_rejected(void **state)
{
    struct fixture *fixture = *state;
    char long_id[ROLLCALL_ID_BYTES_MAX + 2];
    memset(long_id, 'x', sizeof(long_id) - 1);
    long_id[sizeof(long_id) - 1] = '\0';
    const char *const ids[] = {"", long_id, "caf\xe9"}; /* the last is not UTF-8 */
    for (size_t i = 0; i < 3; i++) {
        assert_false(rollcall_follow(fixture->client, ids[i], 0));
        assert_false(rollcall_open_chat(fixture->client, ids[i]));
        assert_false(rollcall_subscribe(fixture->client, ids[i]));
        assert_false(rollcall_send(fixture->client, ids[i], NULL, "text"));
        assert_false(rollcall_send(fixture->client, "c", ids[i], "text"));
    }
}

static void test_many_chats_sync_a_few_at_a_time(void **state)
{
    struct fixture *fixture = *state;
    char id[16];
    for (int i = 0; i < ROLLCALL_CHATS_MAX; i++) {
        snprintf(id, sizeof(id), "c%d", i);
        assert_true(rollcall_follow(fixture->client, id, 0));
    }
    assert_false(rollcall_follow(fixture->client, "one more", 0));
    fixture_connect(fixture);
    unsigned asked = 0;
    while (rollcall_get_state(fixture->client) == ROLLCALL_SYNCING) {
        char chats[CLIENT_CHAT_COMMANDS_MAX][16];
        unsigned at_once = 0;
        const char *text;
        while ((text = fixture_next(fixture)) != NULL) {
            const char *chat = strstr(text, "\"chat_id\":\"");
            if (!chat)
                continue;
            assert_in_range(at_once, 0, CLIENT_CHAT_COMMANDS_MAX - 1);
            sscanf(chat, "\"chat_id\":\"%15[^\"]", chats[at_once++]);
        }
        assert_int_not_equal(at_once, 0);
        asked += at_once;
        for (unsigned i = 0; i < at_once; i++)
            fixture_sendf(fixture,
                          "{\"type\":\"sync_response\",\"chat_id\":\"%s\",\"messages\":[],"
                          "\"has_more\":false}",
                          chats[i]);
    }
    assert_int_equal(asked, ROLLCALL_CHATS_MAX);
    assert_true(rollcall_unfollow(fixture->client, "c7"));
    assert_true(rollcall_follow(fixture->client, "one more", 0));
}

/* ---- unusual input ---- */

static void test_malformed_messages_are_ignored(void **state)
{
    static const char *const ODD[] = {
        "",
        "{}",
        "[]",
        "null",
        "7",
        "\"text\"",
        "{",
        "{\"type\":7}",
        "{\"type\":\"\"}",
        "{\"type\":\"message\",\"chat_id\":\"c\",\"sequence\":1.5}",
        "{\"type\":\"message\",\"chat_id\":\"c\",\"sequence\":-9223372036854775808}",
        "{\"type\":\"message\",\"chat_id\":\"c\",\"sequence\":\"1\"}",
        "{\"type\":\"message_ack\"}",
        "{\"type\":\"message_ack\",\"client_message_id\":\"who\",\"sequence\":1}",
        "{\"type\":\"sync_response\",\"chat_id\":\"c\",\"messages\":7}",
        "{\"type\":\"sync_response\",\"chat_id\":\"c\",\"messages\":[7]}",
        "{\"type\":\"sync_response\",\"chat_id\":\"elsewhere\"}",
        "{\"type\":\"connection_established\",\"user_id\":\"mallory\"}",
        "{\"type\":\"presence_snapshot\",\"presences\":{}}",
        ("{\"type\":\"error\",\"code\":\"RATE_LIMITED\",\"client_message_id\":\"\","
         "\"retry_after_seconds\":1e300}"),
        "{\"type\":\"error\",\"code\":\"SERVER_BUSY\",\"id\":\"sync \"}",
        "{\"type\":\"error\",\"code\":\"SERVER_BUSY\",\"id\":\"sync c\",\"retry_after_seconds\":-1}",
    };
    struct fixture *fixture = *state;
    follow(fixture);
    for (size_t i = 0; i < sizeof(ODD) / sizeof(ODD[0]); i++)
        fixture_send(fixture, ODD[i]);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_READY);
    fixture->log[0] = '\0';
    push(fixture, 1);
    assert_string_equal(fixture->log, "b1 ");
}

static void test_body_may_contain_escapes_and_zero_bytes(void **state)
{
    struct fixture *fixture = *state;
    follow(fixture);
    fixture_send(fixture, "{\"type\":\"message\",\"chat_id\":\"c\",\"sequence\":1,"
                          "\"body\":\"\\u0061\\u0000\\ud83d\\ude00\"}");
    assert_int_equal(fixture->body_len, 6);
    assert_string_equal(fixture->log, "a ");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_message_per_chat_is_pending_at_a_time),
        TEST(test_unacknowledged_messages_are_resent_in_order_with_their_ids),
        TEST(test_temporary_refusals_are_retried_after_the_given_time),
        TEST(test_rate_limited_chats_take_turns),
        TEST(test_final_refusal_lets_the_next_message_go),
        TEST(test_message_without_answer_is_resent),
        TEST(test_outbox_is_bounded),
        TEST(test_empty_and_invalid_bodies_are_rejected),
        TEST(test_items_of_pages_and_snapshots_carry_their_json),
        TEST(test_client_is_ready_only_after_the_last_page),
        TEST(test_missing_messages_are_fetched_without_duplicates),
        TEST(test_sync_required_syncs_the_followed_chats),
        TEST(test_messages_missed_while_syncing_are_fetched_afterwards),
        TEST(test_page_without_progress_is_retried_with_back_off),
        TEST(test_own_messages_appear_in_sequence),
        TEST(test_reconnect_resumes_sync_and_restores_subscriptions),
        TEST(test_refused_sync_is_retried_or_reported),
        TEST(test_callback_may_unfollow_the_refused_chat),
        TEST(test_invalid_ids_are_rejected),
        TEST(test_many_chats_sync_a_few_at_a_time),
        TEST(test_malformed_messages_are_ignored),
        TEST(test_body_may_contain_escapes_and_zero_bytes),
    };
    return cmocka_run_group_tests_name("clients/c messages", tests, NULL, NULL);
}
