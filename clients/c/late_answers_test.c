/* The client does not take the answer to an older command for the answer to the latest. In virtual time. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static void read_id(const char *command, char id[32])
{
    const char *at = strstr(command, "\"id\":");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"id\":\"%31[^\"]", id), 1);
}

static void wait_reply_timeout(struct fixture *fixture)
{
    for (int64_t passed_ms = 0; passed_ms < CLIENT_REPLY_MS; passed_ms += 5000) {
        fixture_advance(fixture, 5000);
        fixture_send(fixture, "{\"type\":\"heartbeat_ack\"}");
    }
}

/* Returns the id of the first command, which names only bob. */
static void subscribe_bob_then_carol(struct fixture *fixture, char id[32])
{
    fixture_connect(fixture);
    rollcall_subscribe(fixture->client, "bob");
    fixture_process(fixture);
    read_id(fixture_expect(fixture, "subscribe_presence"), id);
    rollcall_subscribe(fixture->client, "carol");
}

static void answer(struct fixture *fixture, const char *id)
{
    fixture_sendf(fixture, "{\"type\":\"presence_snapshot\",\"id\":\"%s\",\"presences\":[]}", id);
}

static void test_users_added_while_a_command_is_pending_are_subscribed(void **state)
{
    struct fixture *fixture = *state;
    char first[32], second[32];
    subscribe_bob_then_carol(fixture, first);
    answer(fixture, first);
    const char *again = fixture_expect(fixture, "subscribe_presence");
    assert_non_null(strstr(again, "\"carol\""));
    read_id(again, second);
    assert_string_not_equal(first, second);
    answer(fixture, second);
    wait_reply_timeout(fixture);
    fixture_expect_no(fixture, "subscribe_presence");
}

static void test_refusal_after_an_older_answer_is_retried(void **state)
{
    struct fixture *fixture = *state;
    char first[32], second[32];
    subscribe_bob_then_carol(fixture, first);
    fixture_process(fixture);
    read_id(fixture_expect(fixture, "subscribe_presence"), second);
    answer(fixture, first);
    fixture_sendf(fixture,
                  "{\"type\":\"error\",\"id\":\"%s\",\"code\":\"RATE_LIMITED\","
                  "\"retry_after_seconds\":1}",
                  second);
    fixture_advance(fixture, 1000);
    assert_non_null(strstr(fixture_expect(fixture, "subscribe_presence"), "\"carol\""));
}

static void test_chat_opened_again_sends_open_chat_again(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    rollcall_open_chat(fixture->client, "c");
    fixture_process(fixture);
    fixture_expect(fixture, "open_chat");
    rollcall_close_chat(fixture->client, "c");
    rollcall_open_chat(fixture->client, "c");
    fixture_send(fixture, "{\"type\":\"chat_snapshot\",\"chat_id\":\"c\"}");
    fixture_expect(fixture, "close_chat");
    fixture_expect(fixture, "open_chat");
    fixture_send(fixture, "{\"type\":\"chat_snapshot\",\"chat_id\":\"c\"}");
    wait_reply_timeout(fixture);
    fixture_expect_no(fixture, "open_chat");
}

/* An application with several calls must know which one an answer is about. */
static void test_answers_about_a_call_name_it(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    assert_false(rollcall_call_accept(fixture->client, ""));
    assert_true(rollcall_call_accept(fixture->client, "c1"));
    fixture_process(fixture);
    assert_non_null(strstr(fixture_expect(fixture, "call_accept"), "\"id\":\"call c1\""));
    fixture_send(fixture, "{\"type\":\"error\",\"id\":\"call c1\",\"code\":\"NOT_FOUND\"}");
    assert_string_equal(fixture->call_id, "c1");
    assert_non_null(strstr(fixture->log, "error::NOT_FOUND"));
    assert_true(rollcall_call_request(fixture->client, "bob", NULL));
    fixture_process(fixture);
    fixture_expect(fixture, "call_request");
    fixture_send(fixture, "{\"type\":\"call_ringing\",\"id\":\"call c2\",\"call_id\":\"c2\"}");
    assert_string_equal(fixture->call_id, "c2");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_users_added_while_a_command_is_pending_are_subscribed),
        TEST(test_refusal_after_an_older_answer_is_retried),
        TEST(test_chat_opened_again_sends_open_chat_again),
        TEST(test_answers_about_a_call_name_it),
    };
    return cmocka_run_group_tests_name("clients/c late answers", tests, NULL, NULL);
}
