/* A WebSocket that takes a polling session over, on virtual time. */
#include "socketio/socketio_session.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct world world;
static struct client http, web;
static char sid[CLIENT_SID_MAX];

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    sid[0] = '\0';
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    world_close(&world);
    return 0;
}

static void request(const char *method, const char *body)
{
    client_dial_polling(&http, &world, method, sid, strlen(body), body);
    assert_int_equal(client_response(&http), 200);
    client_hang_up(&http);
}

static void open_session(void)
{
    request("GET", "");
    assert_true(client_find_sid(&http, sid));
}

static void join(void)
{
    char token[WORLD_TOKEN_BYTES_MAX];
    char packet[WORLD_TOKEN_BYTES_MAX + 32];
    world_token(&world, "alice", "", 3600000, token);
    snprintf(packet, sizeof(packet), "40{\"token\":\"%s\"}", token);
    request("POST", packet);
    assert_non_null(world_session(&world, "alice"));
}

static void probe(void)
{
    char query[CLIENT_SID_MAX + 8];
    snprintf(query, sizeof(query), "&sid=%s", sid);
    assert_int_equal(client_dial_socketio(&web, &world, query, 0), 101);
    client_send(&web, "2probe");
    client_expect_text(&web, "3probe");
}

/* Chooses the WebSocket and says in the same breath more than a stranger may. */
static void choose_and_say_much(void)
{
    static char packet[80 * 1024];
    size_t len = world.config.gateway.max_frame_bytes + 1000;
    memset(packet, ' ', len);
    memcpy(packet, "420[\"heartbeat\"", strlen("420[\"heartbeat\""));
    packet[len - 1] = ']';
    client_frame(&web, CLIENT_TEXT, "5", 1);
    client_frame(&web, CLIENT_TEXT, packet, len);
}

/* The next text but what is pushed. */
static void expect_answer(const char *beginning)
{
    enum client_event event;
    do
        event = client_next(&web);
    while (event == CLIENT_TEXT && strncmp(web.text, "4", 1) == 0 &&
           strncmp(web.text, "43", 2) != 0);
    if (event != CLIENT_TEXT || strncmp(web.text, beginning, strlen(beginning)) != 0)
        fail_msg("expected %s, got event %d: %s", beginning, (int)event, web.text);
}

static void who_has_joined_may_say_as_much_as_ever_when_it_changes_over(void **unused)
{
    (void)unused;
    open_session();
    join();
    probe();
    choose_and_say_much();
    expect_answer("430[");
    client_hang_up(&web);
}

static void who_has_not_joined_is_a_stranger_there_too(void **unused)
{
    (void)unused;
    open_session();
    probe();
    choose_and_say_much();
    enum client_event event;
    while ((event = client_next(&web)) == CLIENT_TEXT)
        ;
    assert_int_equal(event, CLIENT_CLOSE);
    assert_int_equal(web.close_code, 1009);
    client_hang_up(&web);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_has_joined_may_say_as_much_as_ever_when_it_changes_over),
        TEST(who_has_not_joined_is_a_stranger_there_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
