/* Each kind of credentials against a scripted server: what is asked, what is taken, what is refused. */
#include "support/aws_credentials_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define NOT_SENT "plain HTTP is for loopback addresses only"

enum { HOUR_MS = 60 * 60 * 1000 };

static void assert_keys(struct aws_credentials_fixture *fixture, const char *id, const char *secret,
                        const char *token)
{
    const struct aws_keys *keys = aws_credentials_keys(fixture->credentials);
    assert_non_null(keys);
    assert_string_equal(keys->access_key_id, id);
    assert_string_equal(keys->secret_access_key, secret);
    if (token)
        assert_string_equal(keys->session_token, token);
    else
        assert_null(keys->session_token);
}

static void assert_no_keys(struct aws_credentials_fixture *fixture)
{
    aws_credentials_fixture_await(fixture, 1);
    assert_null(aws_credentials_keys(fixture->credentials));
}

static void answer_with_json_keys(struct aws_credentials_fixture *fixture, const char *id)
{
    char body[512];
    snprintf(
        body, sizeof(body),
        "{\"Code\":\"Success\",\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"s/%s\",\"Token\":\"t-%s\","
        "\"Expiration\":\"%s\"}",
        id, id, id, aws_credentials_fixture_time(fixture, HOUR_MS));
    aws_credentials_fixture_answer(fixture, "200 OK", body);
}

static bool was_asked(struct aws_credentials_fixture *fixture, size_t at, const char *text)
{
    assert_true(at < fixture->server.request_count);
    return strstr(fixture->server.requests[at], text) != NULL;
}

/* ---- environment ---- */

static void test_keys_of_the_environment_come_first(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    setenv("AWS_ACCESS_KEY_ID", "AKIA1", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fixture->server.url, 1);
    assert_true(aws_credentials_fixture_make(fixture));
    assert_null(aws_credentials_keys(fixture->credentials));
    aws_credentials_fixture_await(fixture, 1);
    assert_keys(fixture, "AKIA1", "secret", NULL);
    assert_int_equal(fixture->server.request_count, 0);
}

static void test_session_token_of_the_environment_is_used(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    setenv("AWS_ACCESS_KEY_ID", "AKIA1", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    setenv("AWS_SESSION_TOKEN", "token", 1);
    assert_true(aws_credentials_fixture_make(fixture));
    aws_credentials_fixture_await(fixture, 1);
    assert_keys(fixture, "AKIA1", "secret", "token");
}

static void test_half_of_the_environments_keys_is_an_error_not_another_kind(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    setenv("AWS_ACCESS_KEY_ID", "AKIA1", 1);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fixture->server.url, 1);
    assert_true(aws_credentials_fixture_make(fixture));
    assert_no_keys(fixture);
    assert_int_equal(fixture->server.request_count, 0);
}

/* ---- web identity ---- */

static void use_web_identity(struct aws_credentials_fixture *fixture)
{
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE",
           aws_credentials_fixture_file(fixture, "token", "eyJ.a+b/c=\n"), 1);
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/chat", 1);
    setenv("AWS_ENDPOINT_URL_STS", fixture->server.url, 1);
}

static void answer_as_sts(struct aws_credentials_fixture *fixture, const char *id)
{
    char body[1024];
    snprintf(body, sizeof(body),
             "<R><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
             "<SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></R>",
             id, aws_credentials_fixture_time(fixture, HOUR_MS));
    aws_credentials_fixture_answer(fixture, "200 OK", body);
}

static void test_web_identity_is_exchanged_at_sts(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    use_web_identity(fixture);
    setenv("AWS_ROLE_SESSION_NAME", "node-1", 1);
    answer_as_sts(fixture, "ASIA1");
    assert_true(aws_credentials_fixture_make(fixture));
    aws_credentials_fixture_await(fixture, 1);
    assert_keys(fixture, "ASIA1", "s", "t");
    assert_true(was_asked(fixture, 0, "POST / HTTP/1.1"));
    assert_true(was_asked(fixture, 0, "Content-Type: application/x-www-form-urlencoded\r\n"));
    assert_false(was_asked(fixture, 0, "Authorization"));
    assert_true(was_asked(fixture, 0,
                          "\r\n\r\nAction=AssumeRoleWithWebIdentity&Version=2011-06-15"
                          "&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fchat&RoleSessionName=node-1"
                          "&WebIdentityToken=eyJ.a%2Bb%2Fc%3D"));
}

static void test_web_identity_file_is_read_for_each_fetch(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    use_web_identity(fixture);
    answer_as_sts(fixture, "ASIA1");
    assert_true(aws_credentials_fixture_make(fixture));
    aws_credentials_fixture_await(fixture, 1);
    aws_credentials_fixture_file(fixture, "token", "renewed");
    aws_credentials_fixture_pass(fixture, HOUR_MS - AWS_CREDENTIALS_RENEW_MS);
    answer_as_sts(fixture, "ASIA2");
    aws_credentials_fixture_await(fixture, 2);
    assert_keys(fixture, "ASIA2", "s", "t");
    assert_true(was_asked(fixture, 1, "&WebIdentityToken=renewed"));
}

static void test_refusal_of_sts_gives_no_keys(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    use_web_identity(fixture);
    aws_credentials_fixture_answer(
        fixture, "400 Bad Request",
        "<ErrorResponse><Error><Code>ExpiredTokenException</Code></Error></ErrorResponse>");
    assert_true(aws_credentials_fixture_make(fixture));
    assert_no_keys(fixture);
}

static void test_malformed_answer_of_sts_gives_no_keys(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    use_web_identity(fixture);
    aws_credentials_fixture_answer(fixture, "200 OK", "<html>hello</html>");
    assert_true(aws_credentials_fixture_make(fixture));
    assert_no_keys(fixture);
}

static void test_missing_identity_file_is_an_error_not_another_kind(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    use_web_identity(fixture);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token", 1);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fixture->server.url, 1);
    assert_true(aws_credentials_fixture_make(fixture));
    assert_no_keys(fixture);
    assert_int_equal(fixture->server.request_count, 0);
}

static void test_identity_is_not_sent_over_plain_http_beyond_loopback(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    use_web_identity(fixture);
    setenv("AWS_ENDPOINT_URL_STS", "http://192.0.2.1:9/", 1);
    assert_true(aws_credentials_fixture_make(fixture));
    aws_credentials_fixture_capture_log(fixture);
    assert_no_keys(fixture);
    assert_non_null(strstr(aws_credentials_fixture_end_log(fixture), NOT_SENT));
}

/* ---- shared files ---- */

static void test_shared_files_are_used_and_read_again(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    setenv("AWS_SHARED_CREDENTIALS_FILE",
           aws_credentials_fixture_file(fixture, "shared",
                                        "[chat]\naws_access_key_id=F1\naws_secret_access_key=f\n"),
           1);
    setenv("AWS_PROFILE", "chat", 1);
    assert_true(aws_credentials_fixture_make(fixture));
    aws_credentials_fixture_await(fixture, 1);
    assert_keys(fixture, "F1", "f", NULL);
    aws_credentials_fixture_file(fixture, "shared",
                                 "[chat]\naws_access_key_id=F2\naws_secret_access_key=f\n");
    aws_credentials_fixture_pass(fixture, AWS_CREDENTIALS_REREAD_MS);
    aws_credentials_fixture_await(fixture, 2);
    assert_keys(fixture, "F2", "f", NULL);
}

/* ---- container ---- */

static void test_container_is_asked_with_its_token(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    char url[128];
    snprintf(url, sizeof(url), "%s/v2/keys?id=1", fixture->server.url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic abc", 1);
    answer_with_json_keys(fixture, "C1");
    assert_true(aws_credentials_fixture_make(fixture));
    aws_credentials_fixture_await(fixture, 1);
    assert_keys(fixture, "C1", "s/C1", "t-C1");
    assert_true(was_asked(fixture, 0, "GET /v2/keys?id=1 HTTP/1.1"));
    assert_true(was_asked(fixture, 0, "Authorization: Basic abc\r\n"));
}

static void test_container_token_file_wins_and_is_read_for_each_fetch(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fixture->server.url, 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "other", 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
           aws_credentials_fixture_file(fixture, "pod", "first\n"), 1);
    answer_with_json_keys(fixture, "C1");
    assert_true(aws_credentials_fixture_make(fixture));
    aws_credentials_fixture_await(fixture, 1);
    assert_true(was_asked(fixture, 0, "Authorization: first\r\n"));
    aws_credentials_fixture_file(fixture, "pod", "second\n");
    aws_credentials_fixture_pass(fixture, HOUR_MS - AWS_CREDENTIALS_RENEW_MS);
    answer_with_json_keys(fixture, "C2");
    aws_credentials_fixture_await(fixture, 2);
    assert_true(was_asked(fixture, 1, "Authorization: second\r\n"));
}

static void test_container_token_cannot_add_a_header(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fixture->server.url, 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a\r\nX-Other: b", 1);
    assert_true(aws_credentials_fixture_make(fixture));
    assert_no_keys(fixture);
    assert_int_equal(fixture->server.request_count, 0);
}

static void test_container_elsewhere_is_not_asked_over_plain_http(void **state)
{
    static const char *const urls[] = {
        "http://192.0.2.1/",
        "http://169.254.170.2:80@192.0.2.1/",
        "http://169.254.170.2@192.0.2.1:80/",
        "http://169.254.170.22/",
    };
    struct aws_credentials_fixture *fixture = *state;
    for (size_t i = 0; i < sizeof(urls) / sizeof(*urls); i++) {
        setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", urls[i], 1);
        assert_true(aws_credentials_fixture_make(fixture));
        aws_credentials_fixture_capture_log(fixture);
        aws_credentials_fixture_await(fixture, i + 1);
        assert_non_null(strstr(aws_credentials_fixture_end_log(fixture), NOT_SENT));
        assert_null(aws_credentials_keys(fixture->credentials));
        aws_credentials_free(&fixture->credentials);
    }
}

static void test_failing_container_is_not_replaced_by_another_kind(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fixture->server.url, 1);
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", fixture->server.url, 1);
    aws_credentials_fixture_answer(fixture, "500 Oops", "{}");
    assert_true(aws_credentials_fixture_make(fixture));
    assert_no_keys(fixture);
    assert_int_equal(fixture->server.request_count, 1);
}

/* ---- instance ---- */

static void use_instance(struct aws_credentials_fixture *fixture)
{
    char url[128];
    snprintf(url, sizeof(url), "%s/", fixture->server.url);
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url, 1);
}

static void test_instance_is_asked_for_token_role_and_keys(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    use_instance(fixture);
    aws_credentials_fixture_answer(fixture, "200 OK", "metadata-token==");
    aws_credentials_fixture_answer(fixture, "200 OK", "chat-role\n");
    answer_with_json_keys(fixture, "I1");
    assert_true(aws_credentials_fixture_make(fixture));
    aws_credentials_fixture_await(fixture, 1);
    assert_keys(fixture, "I1", "s/I1", "t-I1");
    assert_true(was_asked(fixture, 0, "PUT /latest/api/token HTTP/1.1"));
    assert_true(was_asked(fixture, 0, "X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n"));
    assert_true(was_asked(fixture, 1, "GET /latest/meta-data/iam/security-credentials/ HTTP/1.1"));
    assert_true(was_asked(fixture, 1, "X-aws-ec2-metadata-token: metadata-token==\r\n"));
    assert_true(
        was_asked(fixture, 2, "GET /latest/meta-data/iam/security-credentials/chat-role HTTP/1.1"));
    assert_true(was_asked(fixture, 2, "X-aws-ec2-metadata-token: metadata-token==\r\n"));
    assert_int_equal(fixture->server.connection_count, 1);
}

static void test_instance_that_refuses_a_step_gives_no_keys(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    use_instance(fixture);
    for (size_t refused = 0; refused < 3; refused++) {
        script_server_restart_script(&fixture->server);
        for (size_t step = 0; step < refused; step++)
            aws_credentials_fixture_answer(fixture, "200 OK", step ? "role" : "token");
        aws_credentials_fixture_answer(fixture, "404 Not Found", "");
        assert_true(aws_credentials_fixture_make(fixture));
        aws_credentials_fixture_await(fixture, refused + 1);
        assert_null(aws_credentials_keys(fixture->credentials));
        assert_int_equal(fixture->server.request_count, refused + 1);
        aws_credentials_free(&fixture->credentials);
    }
}

static void test_malformed_token_and_role_of_an_instance_are_refused(void **state)
{
    static const char *const bad[][2] = {{"", NULL},    {"a b", NULL},     {"a\r\nX: y", NULL},
                                         {"token", ""}, {"token", "../x"}, {"token", "a b"}};
    struct aws_credentials_fixture *fixture = *state;
    use_instance(fixture);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        script_server_restart_script(&fixture->server);
        aws_credentials_fixture_answer(fixture, "200 OK", bad[i][0]);
        if (bad[i][1])
            aws_credentials_fixture_answer(fixture, "200 OK", bad[i][1]);
        assert_true(aws_credentials_fixture_make(fixture));
        aws_credentials_fixture_await(fixture, i + 1);
        assert_null(aws_credentials_keys(fixture->credentials));
        aws_credentials_free(&fixture->credentials);
    }
}

static void test_silent_instance_is_given_up(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    use_instance(fixture);
    assert_true(aws_credentials_fixture_make(fixture));
    int64_t started_us = clock_microseconds();
    assert_no_keys(fixture);
    assert_true(clock_microseconds() - started_us >= 900000);
}

static void test_nothing_configured_is_an_error(void **state)
{
    struct aws_credentials_fixture *fixture = *state;
    assert_true(aws_credentials_fixture_make(fixture));
    assert_no_keys(fixture);
    assert_int_equal(fixture->server.request_count, 0);
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, aws_credentials_fixture_set_up,                          \
                                    aws_credentials_fixture_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_keys_of_the_environment_come_first),
        TEST(test_session_token_of_the_environment_is_used),
        TEST(test_half_of_the_environments_keys_is_an_error_not_another_kind),
        TEST(test_web_identity_is_exchanged_at_sts),
        TEST(test_web_identity_file_is_read_for_each_fetch),
        TEST(test_refusal_of_sts_gives_no_keys),
        TEST(test_malformed_answer_of_sts_gives_no_keys),
        TEST(test_missing_identity_file_is_an_error_not_another_kind),
        TEST(test_identity_is_not_sent_over_plain_http_beyond_loopback),
        TEST(test_shared_files_are_used_and_read_again),
        TEST(test_container_is_asked_with_its_token),
        TEST(test_container_token_file_wins_and_is_read_for_each_fetch),
        TEST(test_container_token_cannot_add_a_header),
        TEST(test_container_elsewhere_is_not_asked_over_plain_http),
        TEST(test_failing_container_is_not_replaced_by_another_kind),
        TEST(test_instance_is_asked_for_token_role_and_keys),
        TEST(test_instance_that_refuses_a_step_gives_no_keys),
        TEST(test_malformed_token_and_role_of_an_instance_are_refused),
        TEST(test_silent_instance_is_given_up),
        TEST(test_nothing_configured_is_an_error),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
