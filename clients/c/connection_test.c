/* How the client connects, stays connected and reconnects, in virtual time. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

/* ---- states and back-off ---- */

static void test_client_reaches_ready_and_reports_each_state(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_DISCONNECTED);
    fixture_process(fixture);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_CONNECTING);
    fixture_accept(fixture);
    assert_non_null(strstr(fixture->request, "GET /v1/ws?device_id=a%20phone HTTP/1.1\r\n"));
    assert_non_null(strstr(fixture->request, "Authorization: Bearer first\r\n"));
    fixture_establish(fixture);
    fixture_expect(fixture, "heartbeat");
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_READY);
    assert_string_equal(fixture->log, "connecting syncing ready ");
}

/* The wait doubles with each failure up to 16 s, ± 20 %. */
static void test_back_off_doubles_to_sixteen_seconds(void **state)
{
    static const int64_t EXPECTED_MS[] = {1000, 2000, 4000, 8000, 16000, 16000, 16000};
    struct fixture *fixture = *state;
    bool varies = false;
    for (size_t i = 0; i < sizeof(EXPECTED_MS) / sizeof(EXPECTED_MS[0]); i++) {
        fixture_process(fixture);
        fixture_accept_tcp(fixture);
        fixture_hang_up(fixture);
        assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_BACKOFF);
        assert_in_range(fixture->wait_ms, EXPECTED_MS[i] * 8 / 10, EXPECTED_MS[i] * 12 / 10);
        varies |= fixture->wait_ms != EXPECTED_MS[i];
        assert_int_equal(rollcall_wait_ms(fixture->client), fixture->wait_ms);
        fixture_advance(fixture, fixture->wait_ms - 1);
        assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_BACKOFF);
        fixture_advance(fixture, 1);
        assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_CONNECTING);
    }
    assert_true(varies);
}

/* Clients must not reconnect every second to a server that accepts and closes at once. */
static void test_back_off_starts_over_only_after_ten_seconds(void **state)
{
    struct fixture *fixture = *state;
    for (int64_t base_ms = 1000; base_ms <= 4000; base_ms *= 2) {
        fixture_connect(fixture);
        fixture_hang_up(fixture);
        assert_in_range(fixture->wait_ms, base_ms * 8 / 10, base_ms * 12 / 10);
        fixture_advance(fixture, fixture->wait_ms);
    }
    fixture_connect(fixture);
    fixture_advance(fixture, 5000);
    fixture_send(fixture, "{\"type\":\"heartbeat_ack\"}");
    fixture_advance(fixture, 5000);
    fixture_hang_up(fixture);
    assert_in_range(fixture->wait_ms, 800, 1200);
}

static void test_handshake_without_answer_times_out(void **state)
{
    struct fixture *fixture = *state;
    fixture_process(fixture);
    fixture_accept_tcp(fixture);
    fixture_advance(fixture, CLIENT_HANDSHAKE_MS - 1);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_CONNECTING);
    fixture_advance(fixture, 1);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_BACKOFF);
}

static void test_wrong_accept_key_ends_the_connection(void **state)
{
    struct fixture *fixture = *state;
    fixture_process(fixture);
    fixture_accept_tcp(fixture);
    fixture_send_raw(fixture, "HTTP/1.1 101 X\r\nSec-WebSocket-Accept: nonsense\r\n\r\n");
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_BACKOFF);
}

static void test_retry_after_of_a_busy_server_is_obeyed(void **state)
{
    struct fixture *fixture = *state;
    fixture_process(fixture);
    fixture_accept_tcp(fixture);
    fixture_send_raw(fixture, "HTTP/1.1 503 Busy\r\nretry-after: 30\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(fixture->wait_ms, 30000);
}

/* ---- connection_closing ---- */

static void test_reconnect_after_ms_counts_from_connection_closing(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    fixture_send(fixture, "{\"type\":\"connection_closing\",\"reason\":\"draining\","
                          "\"reconnect_allowed\":true,\"reconnect_after_ms\":3480}");
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_READY);
    fixture_advance(fixture, 480);
    fixture_send_close(fixture, 1001);
    assert_int_equal(fixture->wait_ms, 3000);
}

static void test_wait_from_the_server_is_bounded(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    fixture_send(fixture,
                 "{\"type\":\"connection_closing\",\"reconnect_after_ms\":9223372036854775807}");
    fixture_send_close(fixture, 1001);
    assert_int_equal(fixture->wait_ms, CLIENT_WAIT_MAX_MS);
}

static void test_client_stops_when_reconnecting_is_not_allowed(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    fixture_send(fixture, "{\"type\":\"connection_closing\",\"reconnect_allowed\":false}");
    fixture_send_close(fixture, 4005);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_STOPPED);
    assert_int_equal(rollcall_wait_ms(fixture->client), -1);
    assert_int_equal(rollcall_fd(fixture->client), -1);
}

static void test_close_without_connection_closing_leads_to_a_retry(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    fixture_send_close(fixture, 4005);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_BACKOFF);
}

/* ---- reasons ---- */

static void test_lost_connection_reports_its_reason(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    fixture_send_frame(fixture, 0x8, "\x0f\xa4too full", 10);
    assert_string_equal(fixture->why, "DISCONNECTED: closed by the server: 4004 too full");
    fixture_advance(fixture, fixture->wait_ms);
    fixture_accept_tcp(fixture);
    fixture_send_raw(fixture, "HTTP/1.1 503 Busy\r\n\r\n");
    assert_string_equal(fixture->why, "DISCONNECTED: the server answered the handshake with 503");
    fixture_advance(fixture, fixture->wait_ms);
    fixture_accept_tcp(fixture);
    fixture_hang_up(fixture);
    assert_string_equal(fixture->why, "DISCONNECTED: the server hung up");
    fixture_advance(fixture, fixture->wait_ms);
    fixture_connect(fixture);
    assert_string_equal(fixture->why, ": ");
    fixture_advance(fixture, 15000);
    assert_string_equal(fixture->why, "DISCONNECTED: the server is silent");
    close(fixture->listener);
    fixture->listener = -1;
    fixture_advance(fixture, fixture->wait_ms);
    fixture_process(fixture);
    assert_string_equal(fixture->why, "DISCONNECTED: Connection refused");
    rollcall_close(fixture->client);
    fixture_process(fixture);
    assert_string_equal(fixture->why, "CLOSED: closed by the application");
}

static void test_stopped_client_reports_the_close_code(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    fixture_send(fixture, "{\"type\":\"connection_closing\",\"reconnect_allowed\":false}");
    fixture_send_close(fixture, 4005);
    assert_string_equal(fixture->why, "CLOSED: closed by the server: 4005 ");
}

/* ---- tokens ---- */

static void refuse_token(struct fixture *fixture)
{
    fixture_process(fixture);
    fixture_accept_tcp(fixture);
    fixture_send_raw(fixture, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
}

static void test_refused_token_is_replaced_at_once_and_only_once(void **state)
{
    struct fixture *fixture = *state;
    fixture->fresh = "second";
    refuse_token(fixture);
    assert_int_equal(fixture->wait_ms, 0);
    refuse_token(fixture);
    assert_non_null(strstr(fixture->request, "Authorization: Bearer second\r\n"));
    assert_int_equal(fixture->fresh_token_count, 1);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_STOPPED);
}

static void test_refused_token_without_a_fresh_one_stops_the_client(void **state)
{
    struct fixture *fixture = *state;
    refuse_token(fixture);
    assert_int_equal(fixture->fresh_token_count, 1);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_STOPPED);
    assert_string_equal(fixture->why,
                        "UNAUTHENTICATED: the server answered the handshake with 401");
}

static void test_expired_token_is_replaced_each_time(void **state)
{
    struct fixture *fixture = *state;
    fixture->fresh = "next";
    for (int i = 1; i <= 3; i++) {
        fixture_connect(fixture);
        fixture_send(fixture, "{\"type\":\"connection_closing\",\"reason\":\"token_expired\","
                              "\"reconnect_after_ms\":0}");
        fixture_send_close(fixture, 4001);
        assert_int_equal(fixture->fresh_token_count, i);
        assert_int_equal(fixture->wait_ms, 0);
    }
}

static void test_refreshed_token_is_sent_now_and_on_the_next_connection(void **state)
{
    struct fixture *fixture = *state;
    assert_true(rollcall_refresh_token(fixture->client, "renewed"));
    fixture_connect(fixture);
    assert_non_null(strstr(fixture->request, "Bearer renewed\r\n"));
    assert_true(rollcall_refresh_token(fixture->client, "again"));
    assert_non_null(strstr(fixture_expect(fixture, "refresh_token"), "\"token\":\"again\""));
}

static void test_refused_refresh_of_the_application_is_reported(void **state)
{
    struct fixture *fixture = *state;
    fixture->client->options.fresh_token = NULL;
    fixture_connect(fixture);
    rollcall_refresh_token(fixture->client, "bad");
    fixture_process(fixture);
    fixture_expect(fixture, "refresh_token");
    fixture_send(fixture, "{\"type\":\"error\",\"id\":\"token\",\"code\":\"UNAUTHENTICATED\"}");
    assert_non_null(strstr(fixture->log, "error::UNAUTHENTICATED"));
    for (int i = 0; i < 20; i++) {
        fixture_advance(fixture, 5000);
        fixture_send(fixture, "{\"type\":\"heartbeat_ack\"}");
    }
    fixture_expect_no(fixture, "refresh_token");
}

/* A token whose claims are {"exp":…}; the fixture's clock starts at 1770000000 s. */
#define TOKEN_OF_100_S "x.eyJleHAiOjE3NzAwMDAxMDB9.y"
#define TOKEN_OF_40_S "x.eyJleHAiOjE3NzAwMDAwNDB9.y"
#define TOKEN_OF_2000_S "x.eyJleHAiOjE3NzAwMDIwMDB9.y"

static void advance_with_answers(struct fixture *fixture, int64_t ms)
{
    for (; ms > 0; ms -= 5000) {
        fixture_advance(fixture, ms < 5000 ? ms : 5000);
        fixture_send(fixture, "{\"type\":\"heartbeat_ack\"}");
    }
}

/* A minute before it expires, or in the middle of a short life. */
static void test_token_is_replaced_before_it_expires(void **state)
{
    struct fixture *fixture = *state;
    assert_true(rollcall_refresh_token(fixture->client, TOKEN_OF_100_S));
    fixture->fresh = TOKEN_OF_2000_S;
    fixture_connect(fixture);
    advance_with_answers(fixture, 49999);
    assert_int_equal(fixture->fresh_token_count, 0);
    fixture_advance(fixture, 1);
    assert_non_null(strstr(fixture_expect(fixture, "refresh_token"), TOKEN_OF_2000_S));
    fixture_send(fixture, "{\"type\":\"ok\",\"id\":\"token\"}");
    advance_with_answers(fixture, 1000000);
    assert_int_equal(fixture->fresh_token_count, 1);
}

static void test_refused_fresh_token_is_tried_again(void **state)
{
    struct fixture *fixture = *state;
    rollcall_refresh_token(fixture->client, TOKEN_OF_40_S);
    fixture->fresh = TOKEN_OF_2000_S;
    fixture_connect(fixture);
    advance_with_answers(fixture, 20000);
    fixture_expect(fixture, "refresh_token");
    fixture_send(fixture, "{\"type\":\"error\",\"id\":\"token\",\"code\":\"SERVER_BUSY\","
                          "\"retry_after_seconds\":3}");
    fixture_advance(fixture, 2999);
    fixture_expect_no(fixture, "refresh_token");
    fixture_advance(fixture, 1);
    fixture_expect(fixture, "refresh_token");
    assert_int_equal(fixture->fresh_token_count, 2);
    assert_null(strstr(fixture->log, "error"));
}

static void test_expired_token_is_not_used_for_a_handshake(void **state)
{
    struct fixture *fixture = *state;
    rollcall_refresh_token(fixture->client, TOKEN_OF_40_S);
    fixture->fresh = TOKEN_OF_2000_S;
    fixture_advance_clock(39000);
    fixture_connect(fixture);
    assert_non_null(strstr(fixture->request, "Bearer " TOKEN_OF_2000_S "\r\n"));
}

/* ---- heartbeats ---- */

static void test_heartbeats_follow_the_interval_of_the_server(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    for (int i = 0; i < 5; i++) {
        fixture_advance(fixture, 4999);
        fixture_expect_nothing(fixture);
        fixture_advance(fixture, 1);
        assert_string_equal(fixture_expect(fixture, "heartbeat"), "{\"type\":\"heartbeat\"}");
        fixture_send(fixture, "{\"type\":\"heartbeat_ack\"}");
    }
    rollcall_set_active(fixture->client, true);
    assert_non_null(strstr(fixture_expect(fixture, "heartbeat"), "\"active\":true"));
    rollcall_set_active(fixture->client, true);
    fixture_expect_nothing(fixture);
    rollcall_set_active(fixture->client, false);
    assert_non_null(strstr(fixture_expect(fixture, "heartbeat"), "\"active\":false"));
}

static void test_silent_server_is_left_after_the_expiry_window(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    fixture_advance(fixture, 14999);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_READY);
    fixture_advance(fixture, 1);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_BACKOFF);
}

/* ---- frames ---- */

static void test_broken_frames_end_the_connection(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    fixture_send_raw(fixture, "\xff\xff\xff\xff\xff\xff");
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_BACKOFF);
}

static void test_pings_are_answered(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    fixture_send_frame(fixture, 0x9, "hello", 5);
    assert_int_equal(fixture_next_opcode(fixture), 0xa);
    assert_string_equal(fixture->text, "hello");
}

/* ---- closing ---- */

static void test_close_stops_after_two_seconds_without_an_answer(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    rollcall_close(fixture->client);
    assert_false(rollcall_command(fixture->client, "{\"type\":\"heartbeat\"}"));
    assert_int_equal(fixture_next_opcode(fixture), 0x8);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_READY);
    fixture_advance(fixture, CLIENT_CLOSE_MS - 1);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_READY);
    fixture_advance(fixture, 1);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_STOPPED);
    assert_false(rollcall_send(fixture->client, "c", NULL, "late"));
}

/* The client's clock is old if the application has not called rollcall_process() for a while. */
static void test_close_after_a_pause_still_sends_a_close_frame(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    fixture_advance_clock(CLIENT_CLOSE_MS);
    rollcall_close(fixture->client);
    assert_int_equal(fixture_next_opcode(fixture), 0x8);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_READY);
}

/* While closing, the expiry of the silent server must not make rollcall_wait_ms() return 0. */
static void test_close_of_a_silent_server_does_not_spin(void **state)
{
    struct fixture *fixture = *state;
    fixture_connect(fixture);
    fixture_advance(fixture, 14500);
    rollcall_close(fixture->client);
    fixture_advance(fixture, 1000);
    assert_int_equal(rollcall_wait_ms(fixture->client), CLIENT_CLOSE_MS - 1000);
}

static void test_close_before_a_connection_stops_at_once(void **state)
{
    struct fixture *fixture = *state;
    rollcall_close(fixture->client);
    assert_int_equal(rollcall_wait_ms(fixture->client), 0);
    fixture_process(fixture);
    assert_int_equal(rollcall_get_state(fixture->client), ROLLCALL_STOPPED);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_client_reaches_ready_and_reports_each_state),
        TEST(test_back_off_doubles_to_sixteen_seconds),
        TEST(test_back_off_starts_over_only_after_ten_seconds),
        TEST(test_handshake_without_answer_times_out),
        TEST(test_wrong_accept_key_ends_the_connection),
        TEST(test_retry_after_of_a_busy_server_is_obeyed),
        TEST(test_reconnect_after_ms_counts_from_connection_closing),
        TEST(test_wait_from_the_server_is_bounded),
        TEST(test_client_stops_when_reconnecting_is_not_allowed),
        TEST(test_close_without_connection_closing_leads_to_a_retry),
        TEST(test_lost_connection_reports_its_reason),
        TEST(test_stopped_client_reports_the_close_code),
        TEST(test_refused_token_is_replaced_at_once_and_only_once),
        TEST(test_refused_token_without_a_fresh_one_stops_the_client),
        TEST(test_expired_token_is_replaced_each_time),
        TEST(test_refreshed_token_is_sent_now_and_on_the_next_connection),
        TEST(test_refused_refresh_of_the_application_is_reported),
        TEST(test_token_is_replaced_before_it_expires),
        TEST(test_refused_fresh_token_is_tried_again),
        TEST(test_expired_token_is_not_used_for_a_handshake),
        TEST(test_heartbeats_follow_the_interval_of_the_server),
        TEST(test_silent_server_is_left_after_the_expiry_window),
        TEST(test_broken_frames_end_the_connection),
        TEST(test_pings_are_answered),
        TEST(test_close_stops_after_two_seconds_without_an_answer),
        TEST(test_close_after_a_pause_still_sends_a_close_frame),
        TEST(test_close_of_a_silent_server_does_not_spin),
        TEST(test_close_before_a_connection_stops_at_once),
    };
    return cmocka_run_group_tests_name("clients/c connection", tests, NULL, NULL);
}
