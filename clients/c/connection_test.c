/* How the client connects, keeps and loses its connection, in virtual time. */
#include "fake_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

/* ---- states and back-off ---- */

static void test_reaches_ready_and_says_so(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_DISCONNECTED);
    scene_turn(scene);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_CONNECTING);
    scene_accept(scene);
    assert_non_null(strstr(scene->request, "GET /v1/ws?device_id=a%20phone HTTP/1.1\r\n"));
    assert_non_null(strstr(scene->request, "Authorization: Bearer first\r\n"));
    scene_establish(scene);
    scene_expect(scene, "heartbeat");
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_READY);
    assert_string_equal(scene->log, "connecting syncing ready ");
}

/* Each failure waits twice as long, up to 16 s, a fifth more or less. */
static void test_back_off_doubles_to_sixteen_seconds(void **state)
{
    static const int64_t EXPECTED_MS[] = {1000, 2000, 4000, 8000, 16000, 16000, 16000};
    struct scene *scene = *state;
    bool varies = false;
    for (size_t i = 0; i < sizeof(EXPECTED_MS) / sizeof(EXPECTED_MS[0]); i++) {
        scene_turn(scene);
        scene_accept_raw(scene);
        scene_hang_up(scene);
        assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_BACKOFF);
        assert_in_range(scene->wait_ms, EXPECTED_MS[i] * 8 / 10, EXPECTED_MS[i] * 12 / 10);
        varies |= scene->wait_ms != EXPECTED_MS[i];
        assert_int_equal(rollcall_wait_ms(scene->client), scene->wait_ms);
        scene_pass(scene, scene->wait_ms - 1);
        assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_BACKOFF);
        scene_pass(scene, 1);
        assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_CONNECTING);
    }
    assert_true(varies);
}

/* A server that accepts and closes does not get a storm; one that held is a fresh start. */
static void test_back_off_starts_over_only_after_ten_seconds(void **state)
{
    struct scene *scene = *state;
    for (int64_t base_ms = 1000; base_ms <= 4000; base_ms *= 2) {
        scene_connect(scene);
        scene_hang_up(scene);
        assert_in_range(scene->wait_ms, base_ms * 8 / 10, base_ms * 12 / 10);
        scene_pass(scene, scene->wait_ms);
    }
    scene_connect(scene);
    scene_pass(scene, 5000);
    scene_say(scene, "{\"type\":\"heartbeat_ack\"}");
    scene_pass(scene, 5000);
    scene_hang_up(scene);
    assert_in_range(scene->wait_ms, 800, 1200);
}

static void test_handshake_without_an_answer_is_given_up(void **state)
{
    struct scene *scene = *state;
    scene_turn(scene);
    scene_accept_raw(scene);
    scene_pass(scene, CLIENT_HANDSHAKE_MS - 1);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_CONNECTING);
    scene_pass(scene, 1);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_BACKOFF);
}

static void test_wrong_accept_key_is_no_upgrade(void **state)
{
    struct scene *scene = *state;
    scene_turn(scene);
    scene_accept_raw(scene);
    scene_write(scene, "HTTP/1.1 101 X\r\nSec-WebSocket-Accept: nonsense\r\n\r\n");
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_BACKOFF);
}

static void test_busy_server_names_the_earliest_time(void **state)
{
    struct scene *scene = *state;
    scene_turn(scene);
    scene_accept_raw(scene);
    scene_write(scene, "HTTP/1.1 503 Busy\r\nretry-after: 30\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(scene->wait_ms, 30000);
}

/* ---- connection_closing ---- */

static void test_server_says_when_to_come_back_counted_from_its_message(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    scene_say(scene, "{\"type\":\"connection_closing\",\"reason\":\"draining\","
                     "\"reconnect_allowed\":true,\"reconnect_after_ms\":3480}");
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_READY);
    scene_pass(scene, 480);
    scene_close_frame(scene, 1001);
    assert_int_equal(scene->wait_ms, 3000);
}

static void test_absurd_waits_are_bounded(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    scene_say(scene,
              "{\"type\":\"connection_closing\",\"reconnect_after_ms\":9223372036854775807}");
    scene_close_frame(scene, 1001);
    assert_int_equal(scene->wait_ms, CLIENT_WAIT_MAX_MS);
}

static void test_stops_when_reconnecting_is_not_allowed(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    scene_say(scene, "{\"type\":\"connection_closing\",\"reconnect_allowed\":false}");
    scene_close_frame(scene, 4005);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_STOPPED);
    assert_int_equal(rollcall_wait_ms(scene->client), -1);
    assert_int_equal(rollcall_fd(scene->client), -1);
}

static void test_close_without_a_word_is_no_permanent_failure(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    scene_close_frame(scene, 4005);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_BACKOFF);
}

/* ---- why ---- */

static void test_every_loss_says_why(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    scene_frame(scene, 0x8, "\x0f\xa4too full", 10);
    assert_string_equal(scene->why, "DISCONNECTED: closed by the server: 4004 too full");
    scene_pass(scene, scene->wait_ms);
    scene_accept_raw(scene);
    scene_write(scene, "HTTP/1.1 503 Busy\r\n\r\n");
    assert_string_equal(scene->why, "DISCONNECTED: the server answered the handshake with 503");
    scene_pass(scene, scene->wait_ms);
    scene_accept_raw(scene);
    scene_hang_up(scene);
    assert_string_equal(scene->why, "DISCONNECTED: the server hung up");
    scene_pass(scene, scene->wait_ms);
    scene_connect(scene);
    assert_string_equal(scene->why, ": ");
    scene_pass(scene, 15000);
    assert_string_equal(scene->why, "DISCONNECTED: the server is silent");
    close(scene->listener);
    scene->listener = -1;
    scene_pass(scene, scene->wait_ms);
    scene_turn(scene);
    assert_string_equal(scene->why, "DISCONNECTED: Connection refused");
    rollcall_close(scene->client);
    scene_turn(scene);
    assert_string_equal(scene->why, "CLOSED: closed by the application");
}

static void test_unwanted_client_is_told_so(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    scene_say(scene, "{\"type\":\"connection_closing\",\"reconnect_allowed\":false}");
    scene_close_frame(scene, 4005);
    assert_string_equal(scene->why, "CLOSED: closed by the server: 4005 ");
}

/* ---- tokens ---- */

static void refuse_token(struct scene *scene)
{
    scene_turn(scene);
    scene_accept_raw(scene);
    scene_write(scene, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
}

static void test_refused_token_is_replaced_once_at_once(void **state)
{
    struct scene *scene = *state;
    scene->fresh = "second";
    refuse_token(scene);
    assert_int_equal(scene->wait_ms, 0);
    refuse_token(scene);
    assert_non_null(strstr(scene->request, "Authorization: Bearer second\r\n"));
    assert_int_equal(scene->fresh_asked, 1);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_STOPPED);
}

static void test_refused_token_without_another_stops(void **state)
{
    struct scene *scene = *state;
    refuse_token(scene);
    assert_int_equal(scene->fresh_asked, 1);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_STOPPED);
    assert_string_equal(scene->why, "UNAUTHENTICATED: the server answered the handshake with 401");
}

static void test_expired_token_is_replaced_each_time(void **state)
{
    struct scene *scene = *state;
    scene->fresh = "next";
    for (int i = 1; i <= 3; i++) {
        scene_connect(scene);
        scene_say(scene, "{\"type\":\"connection_closing\",\"reason\":\"token_expired\","
                         "\"reconnect_after_ms\":0}");
        scene_close_frame(scene, 4001);
        assert_int_equal(scene->fresh_asked, i);
        assert_int_equal(scene->wait_ms, 0);
    }
}

static void test_refresh_reaches_the_server_and_the_next_connection(void **state)
{
    struct scene *scene = *state;
    assert_true(rollcall_refresh_token(scene->client, "renewed"));
    scene_connect(scene);
    assert_non_null(strstr(scene->request, "Bearer renewed\r\n"));
    assert_true(rollcall_refresh_token(scene->client, "again"));
    assert_non_null(strstr(scene_expect(scene, "refresh_token"), "\"token\":\"again\""));
}

/* ---- heartbeats ---- */

static void test_heartbeats_in_the_cadence_the_server_names(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    for (int i = 0; i < 5; i++) {
        scene_pass(scene, 4999);
        scene_expect_nothing(scene);
        scene_pass(scene, 1);
        assert_string_equal(scene_expect(scene, "heartbeat"), "{\"type\":\"heartbeat\"}");
        scene_say(scene, "{\"type\":\"heartbeat_ack\"}");
    }
    rollcall_set_active(scene->client, true);
    assert_non_null(strstr(scene_expect(scene, "heartbeat"), "\"active\":true"));
    rollcall_set_active(scene->client, true);
    scene_expect_nothing(scene);
    rollcall_set_active(scene->client, false);
    assert_non_null(strstr(scene_expect(scene, "heartbeat"), "\"active\":false"));
}

static void test_silent_server_is_dead_after_the_window(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    scene_pass(scene, 14999);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_READY);
    scene_pass(scene, 1);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_BACKOFF);
}

/* ---- frames ---- */

static void test_broken_frames_end_the_connection(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    scene_write(scene, "\xff\xff\xff\xff\xff\xff");
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_BACKOFF);
}

static void test_pings_are_answered(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    scene_frame(scene, 0x9, "hello", 5);
    assert_int_equal(scene_next_opcode(scene), 0xa);
    assert_string_equal(scene->text, "hello");
}

/* ---- the end ---- */

static void test_goodbye_is_answered_or_not_waited_for(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    rollcall_close(scene->client);
    assert_false(rollcall_command(scene->client, "{\"type\":\"heartbeat\"}"));
    assert_int_equal(scene_next_opcode(scene), 0x8);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_READY);
    scene_pass(scene, CLIENT_CLOSE_MS - 1);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_READY);
    scene_pass(scene, 1);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_STOPPED);
    assert_false(rollcall_send(scene->client, "c", NULL, "late"));
}

/* The application need not have called rollcall_process() lately. */
static void test_goodbye_after_a_quiet_while_is_said(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    scene_let_pass(CLIENT_CLOSE_MS);
    rollcall_close(scene->client);
    assert_int_equal(scene_next_opcode(scene), 0x8);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_READY);
}

/* A server that is silent for longer than it promised is none to turn in circles for. */
static void test_goodbye_to_a_silent_server_waits(void **state)
{
    struct scene *scene = *state;
    scene_connect(scene);
    scene_pass(scene, 14500);
    rollcall_close(scene->client);
    scene_pass(scene, 1000);
    assert_int_equal(rollcall_wait_ms(scene->client), CLIENT_CLOSE_MS - 1000);
}

static void test_goodbye_before_a_connection_stops_at_once(void **state)
{
    struct scene *scene = *state;
    rollcall_close(scene->client);
    assert_int_equal(rollcall_wait_ms(scene->client), 0);
    scene_turn(scene);
    assert_int_equal(rollcall_get_state(scene->client), ROLLCALL_STOPPED);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, scene_set_up, scene_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reaches_ready_and_says_so),
        TEST(test_back_off_doubles_to_sixteen_seconds),
        TEST(test_back_off_starts_over_only_after_ten_seconds),
        TEST(test_handshake_without_an_answer_is_given_up),
        TEST(test_wrong_accept_key_is_no_upgrade),
        TEST(test_busy_server_names_the_earliest_time),
        TEST(test_server_says_when_to_come_back_counted_from_its_message),
        TEST(test_absurd_waits_are_bounded),
        TEST(test_stops_when_reconnecting_is_not_allowed),
        TEST(test_close_without_a_word_is_no_permanent_failure),
        TEST(test_every_loss_says_why),
        TEST(test_unwanted_client_is_told_so),
        TEST(test_refused_token_is_replaced_once_at_once),
        TEST(test_refused_token_without_another_stops),
        TEST(test_expired_token_is_replaced_each_time),
        TEST(test_refresh_reaches_the_server_and_the_next_connection),
        TEST(test_heartbeats_in_the_cadence_the_server_names),
        TEST(test_silent_server_is_dead_after_the_window),
        TEST(test_broken_frames_end_the_connection),
        TEST(test_pings_are_answered),
        TEST(test_goodbye_is_answered_or_not_waited_for),
        TEST(test_goodbye_after_a_quiet_while_is_said),
        TEST(test_goodbye_to_a_silent_server_waits),
        TEST(test_goodbye_before_a_connection_stops_at_once),
    };
    return cmocka_run_group_tests_name("clients/c connection", tests, NULL, NULL);
}
