/* A WebSocket takes over an Engine.IO session from polling, on virtual time. */
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

static void send_request(const char *method, const char *body)
{
    client_dial_polling(&http, &world, method, sid, strlen(body), body);
    assert_int_equal(client_response(&http), 200);
    client_hang_up(&http);
}

static void open_session(void)
{
    send_request("GET", "");
    assert_true(client_find_sid(&http, sid));
}

static void connect_to_namespace(void)
{
    char token[WORLD_TOKEN_BYTES_MAX];
    char packet[WORLD_TOKEN_BYTES_MAX + 32];
    world_token(&world, "alice", "", 3600000, token);
    snprintf(packet, sizeof(packet), "40{\"token\":\"%s\"}", token);
    send_request("POST", packet);
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

/* Chooses the WebSocket and sends at once a packet that is too long for an unauthenticated client. */
static void choose_and_send_long_packet(void)
{
    static char packet[80 * 1024];
    size_t len = world.config.gateway.max_frame_bytes + 1000;
    memset(packet, ' ', len);
    memcpy(packet, "420[\"heartbeat\"", strlen("420[\"heartbeat\""));
    packet[len - 1] = ']';
    client_frame(&web, CLIENT_TEXT, "5", 1);
    client_frame(&web, CLIENT_TEXT, packet, len);
}

/* Skips events. */
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

static void connected_client_keeps_its_packet_limit_when_it_upgrades(void **unused)
{
    (void)unused;
    open_session();
    connect_to_namespace();
    probe();
    choose_and_send_long_packet();
    expect_answer("430[");
    client_hang_up(&web);
}

static void client_that_is_not_connected_keeps_the_lower_limit_when_it_upgrades(void **unused)
{
    (void)unused;
    open_session();
    probe();
    choose_and_send_long_packet();
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
        TEST(connected_client_keeps_its_packet_limit_when_it_upgrades),
        TEST(client_that_is_not_connected_keeps_the_lower_limit_when_it_upgrades),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
