/* POSTs of an Engine.IO session that overlap with each other or with its end. */
#include "socketio/socketio_session.h"

#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct world world;
static struct client first, second, web;
static char sid[CLIENT_SID_MAX];

static unsigned send_request(struct client *client, const char *method, const char *body)
{
    client_dial_polling(client, &world, method, sid, strlen(body), body);
    unsigned status = client_response(client);
    client_hang_up(client);
    return status;
}

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_DEFAULTS);
    sid[0] = '\0';
    assert_int_equal(send_request(&first, "GET", ""), 200);
    assert_true(client_find_sid(&first, sid));
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    world_close(&world);
    return 0;
}

/* Sends one of three bytes of a POST. */
static void begin_post(void)
{
    client_dial_polling(&first, &world, "POST", sid, 3, "3");
    world_settle(&world);
}

static void expect_session_open(bool is_open)
{
    world_settle(&world);
    assert_int_equal(send_request(&second, "POST", "3"), is_open ? 200 : 400);
    if (!is_open)
        assert_non_null(strstr(second.text, "Session ID unknown"));
}

static void posts_one_after_the_other_are_accepted(void **unused)
{
    (void)unused;
    begin_post();
    client_print(&first, "\x1e"
                         "3");
    assert_int_equal(client_response(&first), 200);
    expect_session_open(true);
    expect_session_open(true);
}

static void second_post_at_a_time_is_refused_at_its_head_and_ends_the_session(void **unused)
{
    (void)unused;
    begin_post();
    client_dial_polling(&second, &world, "POST", sid, 3, "");
    assert_int_equal(client_response(&second), 400);
    assert_non_null(strstr(second.text, "Bad request"));
    client_expect_end(&second);
    client_print(&first, "\x1e"
                         "3");
    assert_int_equal(client_response(&first), 400);
    expect_session_open(false);
}

static void post_whose_connection_closes_ends_the_session(void **unused)
{
    (void)unused;
    begin_post();
    client_hang_up(&first);
    expect_session_open(false);
}

static void post_that_is_too_long_leaves_the_session_open(void **unused)
{
    (void)unused;
    client_dial_polling(&first, &world, "POST", sid, 100000000, "");
    assert_int_equal(client_response(&first), 413);
    expect_session_open(true);
}

/* A request that is refused does not count as the POST of the Engine.IO session. */
static void post_of_another_protocol_version_leaves_the_session_open(void **unused)
{
    (void)unused;
    begin_post();
    client_dial(&second, &world, 0);
    client_print(&second,
                 "POST /socket.io/?EIO=3&transport=polling&sid=%s HTTP/1.1\r\nHost: test\r\n"
                 "Content-Length: 1\r\n\r\n3",
                 sid);
    assert_int_equal(client_response(&second), 400);
    client_hang_up(&second);
    client_print(&first, "\x1e"
                         "3");
    assert_int_equal(client_response(&first), 200);
}

/* A WebSocket carries the packets by then. */
static void post_that_is_overtaken_by_an_upgrade_is_refused(void **unused)
{
    (void)unused;
    begin_post();
    char query[CLIENT_SID_MAX + 8];
    snprintf(query, sizeof(query), "&sid=%s", sid);
    assert_int_equal(client_dial_socketio(&web, &world, query, 0), 101);
    client_send(&web, "2probe");
    client_expect_text(&web, "3probe");
    client_send(&web, "5");
    world_settle(&world);
    client_print(&first, "\x1e"
                         "3");
    assert_int_equal(client_response(&first), 400);
    client_send(&web, "1");
    client_hang_up(&web);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(posts_one_after_the_other_are_accepted),
        TEST(second_post_at_a_time_is_refused_at_its_head_and_ends_the_session),
        TEST(post_whose_connection_closes_ends_the_session),
        TEST(post_that_is_too_long_leaves_the_session_open),
        TEST(post_of_another_protocol_version_leaves_the_session_open),
        TEST(post_that_is_overtaken_by_an_upgrade_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
