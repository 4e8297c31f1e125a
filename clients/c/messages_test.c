/* What the client sends and gives out, over whatever the server says, in virtual time. */
#include "fake_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* ---- the outbox ---- */

static void acknowledge(struct scene *scene, const char *id, int64_t sequence, bool duplicate)
{
    scene_sayf(scene,
               "{\"type\":\"message_ack\",\"chat_id\":\"c\",\"client_message_id\":\"%s\","
               "\"message_id\":\"01\",\"sequence\":%lld,\"duplicate\":%s}",
               id, (long long)sequence, duplicate ? "true" : "false");
}

static void test_one_message_at_a_time_per_chat(void **state)
{
    struct scene *scene = *state;
    assert_true(rollcall_send(scene->client, "c", "1", "one"));
    assert_true(rollcall_send(scene->client, "c", "2", "two"));
    assert_true(rollcall_send(scene->client, "d", "3", "elsewhere"));
    scene_connect(scene);
    assert_non_null(strstr(scene_expect(scene, "send_message"), "\"body\":\"one\""));
    assert_non_null(strstr(scene_expect(scene, "send_message"), "\"body\":\"elsewhere\""));
    scene_expect_nothing(scene);
    acknowledge(scene, "1", 1, false);
    assert_non_null(strstr(scene_expect(scene, "send_message"), "\"body\":\"two\""));
    assert_string_equal(scene->log, "connecting syncing ready sent:1:1 ");
    acknowledge(scene, "1", 1, false);
    assert_string_equal(scene->log, "connecting syncing ready sent:1:1 ");
}

static void test_unacknowledged_messages_go_again_in_order_under_their_ids(void **state)
{
    struct scene *scene = *state;
    rollcall_send(scene->client, "c", "1", "one");
    rollcall_send(scene->client, "c", NULL, "two");
    scene_connect(scene);
    scene_expect(scene, "send_message");
    scene_hang_up(scene);
    scene_pass(scene, scene->wait_ms);
    scene_connect(scene);
    assert_non_null(strstr(scene_expect(scene, "send_message"), "\"client_message_id\":\"1\""));
    acknowledge(scene, "1", 7, true);
    char first[256];
    char again[256];
    snprintf(first, sizeof(first), "%s", scene_expect(scene, "send_message"));
    scene_hang_up(scene);
    scene_pass(scene, scene->wait_ms);
    scene_connect(scene);
    snprintf(again, sizeof(again), "%s", scene_expect(scene, "send_message"));
    assert_string_equal(first, again);
}

static void test_passing_refusals_are_retried_when_the_server_says(void **state)
{
    struct scene *scene = *state;
    rollcall_send(scene->client, "c", "1", "one");
    rollcall_send(scene->client, "c", "2", "two");
    scene_connect(scene);
    scene_expect(scene, "send_message");
    scene_say(scene, "{\"type\":\"error\",\"code\":\"RATE_LIMITED\",\"client_message_id\":\"1\","
                     "\"retry_after_seconds\":2.5}");
    scene_pass(scene, 2499);
    scene_expect_nothing(scene);
    scene_pass(scene, 1);
    assert_non_null(strstr(scene_expect(scene, "send_message"), "\"body\":\"one\""));
    for (int64_t base_ms = 2000; base_ms <= 4000;
         base_ms *= 2) { /* the second refusal, the third */
        scene_say(scene, "{\"type\":\"error\",\"code\":\"SERVER_BUSY\","
                         "\"client_message_id\":\"1\"}");
        scene_pass(scene, base_ms * 8 / 10 - 1);
        scene_expect_no(scene, "send_message");
        scene_pass(scene, base_ms * 4 / 10 + 1);
        assert_non_null(strstr(scene_expect(scene, "send_message"), "\"body\":\"one\""));
    }
    assert_null(strstr(scene->log, "refused"));
}

static void test_final_refusal_makes_way_for_the_next(void **state)
{
    struct scene *scene = *state;
    rollcall_send(scene->client, "c", "1", "one");
    rollcall_send(scene->client, "c", "2", "two");
    scene_connect(scene);
    scene_expect(scene, "send_message");
    scene_say(scene, "{\"type\":\"error\",\"code\":\"FORBIDDEN\",\"client_message_id\":\"1\"}");
    assert_non_null(strstr(scene->log, "refused:1:FORBIDDEN "));
    assert_non_null(strstr(scene_expect(scene, "send_message"), "\"body\":\"two\""));
}

static void test_missing_answer_is_asked_for_again(void **state)
{
    struct scene *scene = *state;
    rollcall_send(scene->client, "c", "1", "one");
    scene_connect(scene);
    scene_expect(scene, "send_message");
    for (int64_t passed_ms = 0; passed_ms < CLIENT_REPLY_MS; passed_ms += 5000) {
        scene_expect_no(scene, "send_message");
        scene_pass(scene, 5000);
        scene_say(scene, "{\"type\":\"heartbeat_ack\"}");
    }
    scene_expect(scene, "send_message");
}

static void test_outbox_is_bounded(void **state)
{
    struct scene *scene = *state;
    static char long_body[ROLLCALL_BODY_BYTES_MAX + 2];
    memset(long_body, 'x', ROLLCALL_BODY_BYTES_MAX + 1);
    assert_false(rollcall_send(scene->client, "c", NULL, long_body));
    assert_true(rollcall_send(scene->client, "c", "1", "one"));
    assert_false(rollcall_send(scene->client, "c", "1", "one"));
    for (int i = 1; i < ROLLCALL_OUTBOX_MAX; i++)
        assert_true(rollcall_send(scene->client, "c", NULL, "x"));
    assert_false(rollcall_send(scene->client, "c", NULL, "x"));
    scene_connect(scene);
    acknowledge(scene, "1", 1, false);
    assert_true(rollcall_send(scene->client, "c", NULL, "x"));
}

/* The server refuses an empty one without naming it: it would wait for ever, and its chat's others with it. What
 * is no UTF-8 would be another text to everybody else. */
static void test_bodies_nobody_can_get_are_not_taken(void **state)
{
    struct scene *scene = *state;
    assert_false(rollcall_send(scene->client, "c", NULL, ""));
    assert_false(rollcall_send(scene->client, "c", NULL, "caf\xe9"));
    scene_connect(scene);
    scene_expect_nothing(scene);
}

/* ---- what an event has ---- */

static char last_json[256];

static void keep_json(void *arg, const struct rollcall_event *event)
{
    (void)arg;
    if (event->type == ROLLCALL_EVENT_MESSAGE || event->type == ROLLCALL_EVENT_PRESENCE)
        snprintf(last_json, sizeof(last_json), "%.*s", (int)event->json_len, event->json);
}

/* Fields this library does not know: when it was sent, since when somebody is away. */
static void test_items_of_pages_and_snapshots_come_with_their_json(void **state)
{
    struct scene *scene = *state;
    rollcall_follow(scene->client, "c", 0);
    scene->client->options.event = keep_json;
    scene_connect(scene);
    scene_say(scene,
              "{\"type\":\"sync_response\",\"chat_id\":\"c\",\"has_more\":false,\"messages\":[ "
              "{\"chat_id\":\"c\",\"sequence\":1,\"body\":\"\\n\",\"sent_at\":\"then\"}]}");
    assert_string_equal(last_json,
                        "{\"chat_id\":\"c\",\"sequence\":1,\"body\":\"\\n\",\"sent_at\":\"then\"}");
    scene_say(scene, "{\"type\":\"presence_snapshot\",\"presences\":[{\"user_id\":\"bob\","
                     "\"status\":\"away\",\"in_call\":true}]}");
    assert_string_equal(last_json, "{\"user_id\":\"bob\",\"status\":\"away\",\"in_call\":true}");
}

/* ---- following ---- */

static void push(struct scene *scene, int64_t sequence)
{
    scene_sayf(scene,
               "{\"type\":\"message\",\"chat_id\":\"c\",\"message_id\":\"m\",\"sequence\":%lld,"
               "\"sender_id\":\"bob\",\"body\":\"b%lld\"}",
               (long long)sequence, (long long)sequence);
}

static void page(struct scene *scene, int64_t first, int64_t last, bool has_more)
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
    scene_say(scene, text);
}

/* Connected and synced with nothing there yet; the log is empty. */
static void follow(struct scene *scene)
{
    assert_true(rollcall_follow(scene->client, "c", 0));
    scene_connect(scene);
    scene_expect(scene, "sync_request");
    page(scene, 1, 0, false);
    scene->log[0] = '\0';
}

static void test_ready_only_when_all_pages_are_in(void **state)
{
    struct scene *scene = *state;
    rollcall_follow(scene->client, "c", 3);
    scene_connect(scene);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_SYNCING);
    assert_non_null(strstr(scene_expect(scene, "sync_request"), "\"after_sequence\":3,"));
    page(scene, 4, 5, true);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_SYNCING);
    assert_non_null(strstr(scene_expect(scene, "sync_request"), "\"after_sequence\":5,"));
    page(scene, 6, 6, false);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_READY);
    assert_string_equal(scene->log, "connecting syncing b4 b5 b6 ready ");
}

static void test_gap_is_fetched_and_nothing_comes_twice(void **state)
{
    struct scene *scene = *state;
    follow(scene);
    push(scene, 1);
    push(scene, 1);
    push(scene, 4);
    push(scene, 3);
    assert_string_equal(scene->log, "b1 ");
    assert_non_null(strstr(scene_expect(scene, "sync_request"), "\"after_sequence\":1,"));
    scene_expect_nothing(scene);
    push(scene, 2);
    page(scene, 2, 4, false);
    push(scene, 4);
    push(scene, 5);
    assert_string_equal(scene->log, "b1 b2 b3 b4 b5 ");
    scene_expect_nothing(scene);
}

/* The page was read before the message that is beyond it was stored. */
static void test_gap_seen_while_syncing_is_fetched_after(void **state)
{
    struct scene *scene = *state;
    follow(scene);
    push(scene, 2);
    scene_expect(scene, "sync_request");
    push(scene, 4);
    page(scene, 1, 2, false);
    assert_non_null(strstr(scene_expect(scene, "sync_request"), "\"after_sequence\":2,"));
    page(scene, 3, 4, false);
    assert_string_equal(scene->log, "b1 b2 b3 b4 ");
    scene_expect_nothing(scene);
}

static void test_server_that_turns_in_a_circle_is_asked_with_back_off(void **state)
{
    struct scene *scene = *state;
    follow(scene);
    push(scene, 9);
    scene_expect(scene, "sync_request");
    page(scene, 1, 0, true);
    scene_expect_nothing(scene);
    scene_pass(scene, 1200);
    scene_expect(scene, "sync_request");
}

static void test_own_messages_take_their_place(void **state)
{
    struct scene *scene = *state;
    follow(scene);
    rollcall_send(scene->client, "c", "1", "mine");
    scene_expect(scene, "send_message");
    acknowledge(scene, "1", 1, false);
    push(scene, 2);
    assert_string_equal(scene->log, "sent:1:1 mine b2 ");
    rollcall_send(scene->client, "c", "2", "mine again");
    scene_expect(scene, "send_message");
    acknowledge(scene, "2", 4, false); /* 3 has not come yet */
    assert_non_null(strstr(scene_expect(scene, "sync_request"), "\"after_sequence\":2,"));
    page(scene, 3, 4, false);
    assert_string_equal(scene->log, "sent:1:1 mine b2 sent:2:4 b3 b4 ");
}

static void test_reconnect_syncs_from_where_it_was_and_restores_the_rest(void **state)
{
    struct scene *scene = *state;
    follow(scene);
    rollcall_open_chat(scene->client, "c");
    rollcall_subscribe(scene->client, "bob");
    push(scene, 1);
    scene_hang_up(scene);
    scene_pass(scene, scene->wait_ms);
    scene_connect(scene);
    assert_non_null(strstr(scene_expect(scene, "subscribe_presence"), "[\"bob\"]"));
    assert_non_null(strstr(scene_expect(scene, "open_chat"), "\"chat_id\":\"c\""));
    assert_non_null(strstr(scene_expect(scene, "sync_request"), "\"after_sequence\":1,"));
}

static void test_refused_syncs_are_retried_or_told(void **state)
{
    struct scene *scene = *state;
    rollcall_follow(scene->client, "c", 0);
    scene_connect(scene);
    scene_expect(scene, "sync_request");
    scene_say(scene, "{\"type\":\"error\",\"id\":\"sync c\",\"code\":\"SERVER_BUSY\","
                     "\"retry_after_seconds\":1}");
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_SYNCING);
    scene_pass(scene, 1000);
    scene_expect(scene, "sync_request");
    scene_say(scene, "{\"type\":\"error\",\"id\":\"sync c\",\"code\":\"FORBIDDEN\"}");
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_READY);
    assert_non_null(strstr(scene->log, "error:c:FORBIDDEN "));
}

/* The application may let go of the chat, and look at the event still. */
static void forget_chat(void *arg, const struct rollcall_event *event)
{
    struct scene *scene = arg;
    if (event->type != ROLLCALL_EVENT_ERROR)
        return;
    assert_true(rollcall_unfollow(scene->client, event->chat_id));
    assert_string_equal(event->chat_id, "c");
}

static void test_refused_chat_may_be_forgotten_by_the_callback(void **state)
{
    struct scene *scene = *state;
    rollcall_follow(scene->client, "c", 0);
    scene->client->options.event = forget_chat;
    scene_connect(scene);
    scene_expect(scene, "sync_request");
    scene_say(scene, "{\"type\":\"error\",\"id\":\"sync c\",\"code\":\"FORBIDDEN\"}");
    assert_int_equal(scene->client->chat_count, 0);
}

/* The server would refuse them in words that name no chat, and READY would never come. */
static void test_ids_nobody_can_have_are_refused(void **state)
{
    struct scene *scene = *state;
    char long_id[ROLLCALL_ID_BYTES_MAX + 2];
    memset(long_id, 'x', sizeof(long_id) - 1);
    long_id[sizeof(long_id) - 1] = '\0';
    const char *const ids[] = {"", long_id,
                               "caf\xe9"}; /* the last is no UTF-8: its answer would name another */
    for (size_t i = 0; i < 3; i++) {
        assert_false(rollcall_follow(scene->client, ids[i], 0));
        assert_false(rollcall_open_chat(scene->client, ids[i]));
        assert_false(rollcall_subscribe(scene->client, ids[i]));
        assert_false(rollcall_send(scene->client, ids[i], NULL, "text"));
        assert_false(rollcall_send(scene->client, "c", ids[i], "text"));
    }
}

static void test_many_chats_are_asked_for_a_few_at_a_time(void **state)
{
    struct scene *scene = *state;
    char id[16];
    for (int i = 0; i < ROLLCALL_CHATS_MAX; i++) {
        snprintf(id, sizeof(id), "c%d", i);
        assert_true(rollcall_follow(scene->client, id, 0));
    }
    assert_false(rollcall_follow(scene->client, "one more", 0));
    scene_connect(scene);
    unsigned asked = 0;
    while (rollcall_get_state(scene->client) == ROLLCALL_SYNCING) {
        char chats[CLIENT_CHAT_COMMANDS_MAX][16];
        unsigned at_once = 0;
        const char *text;
        while ((text = scene_next(scene)) != NULL) {
            const char *chat = strstr(text, "\"chat_id\":\"");
            if (!chat)
                continue;
            assert_in_range(at_once, 0, CLIENT_CHAT_COMMANDS_MAX - 1);
            sscanf(chat, "\"chat_id\":\"%15[^\"]", chats[at_once++]);
        }
        assert_int_not_equal(at_once, 0);
        asked += at_once;
        for (unsigned i = 0; i < at_once; i++)
            scene_sayf(scene,
                       "{\"type\":\"sync_response\",\"chat_id\":\"%s\",\"messages\":[],"
                       "\"has_more\":false}",
                       chats[i]);
    }
    assert_int_equal(asked, ROLLCALL_CHATS_MAX);
    assert_true(rollcall_unfollow(scene->client, "c7"));
    assert_true(rollcall_follow(scene->client, "one more", 0));
}

/* ---- odd input ---- */

static void test_odd_messages_are_passed_over(void **state)
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
    struct scene *scene = *state;
    follow(scene);
    for (size_t i = 0; i < sizeof(ODD) / sizeof(ODD[0]); i++)
        scene_say(scene, ODD[i]);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_READY);
    scene->log[0] = '\0';
    push(scene, 1);
    assert_string_equal(scene->log, "b1 ");
}

static void test_escapes_and_zero_bytes_in_a_body(void **state)
{
    struct scene *scene = *state;
    follow(scene);
    scene_say(scene, "{\"type\":\"message\",\"chat_id\":\"c\",\"sequence\":1,"
                     "\"body\":\"\\u0061\\u0000\\ud83d\\ude00\"}");
    assert_int_equal(scene->body_len, 6);
    assert_string_equal(scene->log, "a ");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, scene_set_up, scene_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_message_at_a_time_per_chat),
        TEST(test_unacknowledged_messages_go_again_in_order_under_their_ids),
        TEST(test_passing_refusals_are_retried_when_the_server_says),
        TEST(test_final_refusal_makes_way_for_the_next),
        TEST(test_missing_answer_is_asked_for_again),
        TEST(test_outbox_is_bounded),
        TEST(test_bodies_nobody_can_get_are_not_taken),
        TEST(test_items_of_pages_and_snapshots_come_with_their_json),
        TEST(test_ready_only_when_all_pages_are_in),
        TEST(test_gap_is_fetched_and_nothing_comes_twice),
        TEST(test_gap_seen_while_syncing_is_fetched_after),
        TEST(test_server_that_turns_in_a_circle_is_asked_with_back_off),
        TEST(test_own_messages_take_their_place),
        TEST(test_reconnect_syncs_from_where_it_was_and_restores_the_rest),
        TEST(test_refused_syncs_are_retried_or_told),
        TEST(test_refused_chat_may_be_forgotten_by_the_callback),
        TEST(test_ids_nobody_can_have_are_refused),
        TEST(test_many_chats_are_asked_for_a_few_at_a_time),
        TEST(test_odd_messages_are_passed_over),
        TEST(test_escapes_and_zero_bytes_in_a_body),
    };
    return cmocka_run_group_tests_name("clients/c messages", tests, NULL, NULL);
}
