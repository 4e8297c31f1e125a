/* The answer to what was asked before is not one to what is wanted now. In virtual time. */
#include "fake_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* The id in a command. */
static void read_id(const char *command, char id[32])
{
    const char *at = strstr(command, "\"id\":");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"id\":\"%31[^\"]", id), 1);
}

static void pass_long(struct scene *scene)
{
    for (int64_t passed_ms = 0; passed_ms < CLIENT_REPLY_MS; passed_ms += 5000) {
        scene_pass(scene, 5000);
        scene_say(scene, "{\"type\":\"heartbeat_ack\"}");
    }
}

/* The id of what was asked for before carol was wanted too. */
static void ask_for_bob_and_want_carol(struct scene *scene, char id[32])
{
    scene_connect(scene);
    rollcall_subscribe(scene->client, "bob");
    scene_turn(scene);
    read_id(scene_expect(scene, "subscribe_presence"), id);
    rollcall_subscribe(scene->client, "carol");
}

static void answer(struct scene *scene, const char *id)
{
    scene_sayf(scene, "{\"type\":\"presence_snapshot\",\"id\":\"%s\",\"presences\":[]}", id);
}

static void test_users_added_meanwhile_are_watched_too(void **state)
{
    struct scene *scene = *state;
    char first[32], second[32];
    ask_for_bob_and_want_carol(scene, first);
    answer(scene, first);
    const char *again = scene_expect(scene, "subscribe_presence");
    assert_non_null(strstr(again, "\"carol\""));
    read_id(again, second);
    assert_string_not_equal(first, second);
    answer(scene, second);
    pass_long(scene);
    scene_expect_no(scene, "subscribe_presence");
}

static void test_refusal_after_an_older_answer_is_heeded(void **state)
{
    struct scene *scene = *state;
    char first[32], second[32];
    ask_for_bob_and_want_carol(scene, first);
    scene_turn(scene);
    read_id(scene_expect(scene, "subscribe_presence"), second);
    answer(scene, first);
    scene_sayf(scene,
               "{\"type\":\"error\",\"id\":\"%s\",\"code\":\"RATE_LIMITED\","
               "\"retry_after_seconds\":1}",
               second);
    scene_pass(scene, 1000);
    assert_non_null(strstr(scene_expect(scene, "subscribe_presence"), "\"carol\""));
}

static void test_chat_opened_again_is_asked_for_again(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    rollcall_open_chat(scene->client, "c");
    scene_turn(scene);
    scene_expect(scene, "open_chat");
    rollcall_close_chat(scene->client, "c");
    rollcall_open_chat(scene->client, "c");
    scene_say(scene, "{\"type\":\"chat_snapshot\",\"chat_id\":\"c\"}");
    scene_expect(scene, "close_chat");
    scene_expect(scene, "open_chat");
    scene_say(scene, "{\"type\":\"chat_snapshot\",\"chat_id\":\"c\"}");
    pass_long(scene);
    scene_expect_no(scene, "open_chat");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, scene_set_up, scene_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_users_added_meanwhile_are_watched_too),
        TEST(test_refusal_after_an_older_answer_is_heeded),
        TEST(test_chat_opened_again_is_asked_for_again),
    };
    return cmocka_run_group_tests_name("clients/c late answers", tests, NULL, NULL);
}
