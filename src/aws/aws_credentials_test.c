/* When keys are renewed, what happens when that fails, and what stands in the log. */
#include "support/aws_credentials_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MINUTE_MS = 60 * 1000, HOUR_MS = 60 * MINUTE_MS };

static void answer_with_keys(struct aws_credentials_fixture *fixture, const char *id,
                             int64_t lasting_ms)
{
    char body[512];
    snprintf(body, sizeof(body),
             "{\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"very-secret\",\"Token\":\"very-token\","
             "\"Expiration\":\"%s\"}",
             id, aws_credentials_fixture_time(fixture, lasting_ms));
    aws_credentials_fixture_answer(fixture, "200 OK", body);
}

static void fail_next_fetch(struct aws_credentials_fixture *fixture)
{
    aws_credentials_fixture_answer(fixture, "503 Busy", "very-secret");
}

static void begin_with_keys(struct aws_credentials_fixture *fixture, int64_t lasting_ms)
{
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fixture->server.url, 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "very-authorized", 1);
    answer_with_keys(fixture, "FIRST", lasting_ms);
    assert_true(aws_credentials_fixture_make(fixture));
    aws_credentials_fixture_await(fixture, 1);
}

static const char *key_id(struct aws_credentials_fixture *fixture)
{
    const struct aws_keys *keys = aws_credentials_keys(fixture->credentials);
    return keys ? keys->access_key_id : "none";
}

/* ---- renewal ---- */

static void test_keys_are_renewed_fifteen_minutes_before_their_end(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    begin_with_keys(fixture, HOUR_MS);
    aws_credentials_fixture_pass(fixture, HOUR_MS - 16 * MINUTE_MS);
    aws_credentials_fixture_idle(fixture);
    assert_int_equal(fixture->server.request_count, 1);
    answer_with_keys(fixture, "SECOND", HOUR_MS);
    aws_credentials_fixture_pass(fixture, MINUTE_MS);
    aws_credentials_fixture_await(fixture, 2);
    assert_string_equal(key_id(fixture), "SECOND");
}

static void test_keys_of_this_turn_stay_valid_when_new_ones_arrive(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    begin_with_keys(fixture, HOUR_MS);
    const struct aws_keys *first = aws_credentials_keys(fixture->credentials);
    answer_with_keys(fixture, "SECOND", HOUR_MS);
    aws_credentials_fixture_pass(fixture, HOUR_MS - 15 * MINUTE_MS);
    aws_credentials_fixture_await(fixture, 2);
    assert_string_equal(first->access_key_id, "FIRST");
}

static void test_failed_renewal_keeps_the_keys_and_is_tried_again(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    begin_with_keys(fixture, HOUR_MS);
    fail_next_fetch(fixture);
    aws_credentials_fixture_pass(fixture, HOUR_MS - 15 * MINUTE_MS);
    aws_credentials_fixture_await(fixture, 2);
    assert_string_equal(key_id(fixture), "FIRST");
    answer_with_keys(fixture, "SECOND", HOUR_MS);
    aws_credentials_fixture_await(fixture, 3);
    assert_string_equal(key_id(fixture), "SECOND");
}

static void test_ended_keys_are_not_returned(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    begin_with_keys(fixture, HOUR_MS);
    aws_credentials_fixture_pass(fixture, HOUR_MS - 5000);
    fail_next_fetch(fixture);
    aws_credentials_fixture_await(fixture, 2);
    assert_string_equal(key_id(fixture), "FIRST");
    aws_credentials_fixture_pass(fixture, 5001);
    fail_next_fetch(fixture);
    aws_credentials_fixture_await(fixture, 3);
    assert_string_equal(key_id(fixture), "none");
    answer_with_keys(fixture, "SECOND", HOUR_MS);
    aws_credentials_fixture_await(fixture, 4);
    assert_string_equal(key_id(fixture), "SECOND");
}

static void test_keys_that_arrive_ended_are_refused(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    begin_with_keys(fixture, -1000);
    assert_string_equal(key_id(fixture), "none");
}

static void test_keys_that_last_shortly_are_renewed_at_half_time(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    begin_with_keys(fixture, 10 * MINUTE_MS);
    aws_credentials_fixture_pass(fixture, 4 * MINUTE_MS);
    aws_credentials_fixture_idle(fixture);
    assert_int_equal(fixture->server.request_count, 1);
    answer_with_keys(fixture, "SECOND", HOUR_MS);
    aws_credentials_fixture_pass(fixture, MINUTE_MS);
    aws_credentials_fixture_await(fixture, 2);
    assert_string_equal(key_id(fixture), "SECOND");
}

/* Passes time in small steps until the next fetch has failed. Returns how long that took. */
static int64_t pass_until_failure(struct aws_credentials_fixture *fixture)
{
    int64_t step_ms = 100;
    int64_t waited_ms = 0;
    size_t changes = fixture->changes;
    script_server_restart_script(&fixture->server);
    fail_next_fetch(fixture);
    while (!fixture->server.request_count) {
        aws_credentials_fixture_pass(fixture, step_ms);
        waited_ms += step_ms;
        loop_turn(&fixture->loop, 0);
        loop_turn(&fixture->loop, 0);
        script_server_serve(&fixture->server);
        assert_true(waited_ms <= 2 * AWS_CREDENTIALS_RETRY_MAX_MS);
    }
    aws_credentials_fixture_await(fixture, changes + 1);
    return waited_ms;
}

static void test_wait_between_tries_grows_and_is_bounded(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    begin_with_keys(fixture, 24 * HOUR_MS);
    fail_next_fetch(fixture);
    aws_credentials_fixture_pass(fixture, 24 * HOUR_MS - 15 * MINUTE_MS);
    aws_credentials_fixture_await(fixture, 2);
    int64_t first_ms = pass_until_failure(fixture);
    int64_t last_ms = 0;
    for (int i = 0; i < 7; i++)
        last_ms = pass_until_failure(fixture);
    assert_true(first_ms <= 2 * AWS_CREDENTIALS_RETRY_MIN_MS + 500);
    assert_true(last_ms >= AWS_CREDENTIALS_RETRY_MAX_MS / 2);
    assert_true(last_ms <= AWS_CREDENTIALS_RETRY_MAX_MS + 2000);
    assert_string_equal(key_id(fixture), "FIRST");
}

static void test_wait_is_shorter_when_keys_end_within_ten_minutes(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    begin_with_keys(fixture, HOUR_MS);
    fail_next_fetch(fixture);
    aws_credentials_fixture_pass(fixture, HOUR_MS - 9 * MINUTE_MS);
    aws_credentials_fixture_await(fixture, 2);
    int64_t last_ms = 0;
    for (int i = 0; i < 6; i++)
        last_ms = pass_until_failure(fixture);
    assert_true(last_ms >= AWS_CREDENTIALS_URGENT_RETRY_MAX_MS / 2);
    assert_true(last_ms <= AWS_CREDENTIALS_URGENT_RETRY_MAX_MS + 1000);
}

/* ---- ends ---- */

static void test_credentials_may_be_freed_while_a_fetch_is_in_flight(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", fixture->server.url, 1);
    aws_credentials_fixture_answer(fixture, "200 OK", "token");
    assert_true(aws_credentials_fixture_make(fixture));
    while (!fixture->server.request_count) {
        loop_turn(&fixture->loop, 1);
        script_server_serve(&fixture->server);
    }
    aws_credentials_free(&fixture->credentials);
    aws_credentials_fixture_idle(fixture);
    assert_int_equal(fixture->server.request_count, 1);
    assert_int_equal(fixture->changes, 0);
}

static void test_client_may_be_freed_before_the_credentials(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fixture->server.url, 1);
    assert_true(aws_credentials_fixture_make(fixture));
    aws_credentials_fixture_idle(fixture);
    http_client_free(&fixture->http);
    assert_int_equal(fixture->changes, 1);
    assert_null(aws_credentials_keys(fixture->credentials));
}

/* ---- the log ---- */

static size_t count_lines_with(const char *log, const char *text)
{
    size_t count = 0;
    for (const char *at = log; (at = strstr(at, text)); at++)
        count++;
    return count;
}

static void test_log_tells_each_step_once_and_no_secret(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    aws_credentials_fixture_capture_log(fixture);
    begin_with_keys(fixture, HOUR_MS);
    aws_credentials_fixture_pass(fixture, HOUR_MS - 15 * MINUTE_MS);
    for (int i = 0; i < 3; i++)
        pass_until_failure(fixture);
    aws_credentials_fixture_pass(fixture, 6 * MINUTE_MS);
    for (int i = 0; i < 3; i++)
        pass_until_failure(fixture);
    aws_credentials_fixture_pass(fixture, 10 * MINUTE_MS);
    for (int i = 0; i < 3; i++)
        pass_until_failure(fixture);
    answer_with_keys(fixture, "SECOND", HOUR_MS);
    aws_credentials_fixture_await(fixture, fixture->changes + 1);
    const char *log = aws_credentials_fixture_end_log(fixture);
    assert_int_equal(count_lines_with(log, "aws_credentials_renewed source=container"), 2);
    assert_int_equal(count_lines_with(log, "aws_credentials_not_renewed source=container"), 1);
    assert_int_equal(count_lines_with(log, "aws_credentials_ending source=container"), 1);
    assert_int_equal(count_lines_with(log, "aws_credentials_missing source=container"), 1);
    assert_int_equal(count_lines_with(log, "status 503, expected 200"), 3);
    assert_int_equal(count_lines_with(log, "very-"), 0);
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, aws_credentials_fixture_set_up,                          \
                                    aws_credentials_fixture_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_keys_are_renewed_fifteen_minutes_before_their_end),
        TEST(test_keys_of_this_turn_stay_valid_when_new_ones_arrive),
        TEST(test_failed_renewal_keeps_the_keys_and_is_tried_again),
        TEST(test_ended_keys_are_not_returned),
        TEST(test_keys_that_arrive_ended_are_refused),
        TEST(test_keys_that_last_shortly_are_renewed_at_half_time),
        TEST(test_wait_between_tries_grows_and_is_bounded),
        TEST(test_wait_is_shorter_when_keys_end_within_ten_minutes),
        TEST(test_credentials_may_be_freed_while_a_fetch_is_in_flight),
        TEST(test_client_may_be_freed_before_the_credentials),
        TEST(test_log_tells_each_step_once_and_no_secret),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
