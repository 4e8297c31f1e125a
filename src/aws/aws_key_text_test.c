/* The answers of STS and of metadata endpoints, good and bad. */
#include "aws/aws_key_set.h"
#include "aws/aws_key_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static bool read_json(const char *text, struct aws_key_text *out)
{
    static char copy[16 * 1024];
    snprintf(copy, sizeof(copy), "%s", text);
    return aws_key_text_read_json(copy, strlen(copy), out);
}

static void test_json_answer_is_read(void **state)
{
    struct aws_key_text text;
    (void)state;
    assert_true(read_json(
        "{\"Code\":\"Success\",\"LastUpdated\":\"2026-01-01T00:00:00Z\",\"Type\":\"AWS-HMAC\","
        "\"AccessKeyId\":\"ASIA1\",\"SecretAccessKey\":\"a\\/b\",\"Token\":\"t==\","
        "\"Expiration\":\"2026-01-01T06:00:00Z\",\"Nested\":{\"Token\":\"other\"}}",
        &text));
    assert_true(slice_is(text.access_key_id, "ASIA1"));
    assert_true(slice_is(text.secret_access_key, "a/b"));
    assert_true(slice_is(text.session_token, "t=="));
    assert_int_equal(text.ends_at_wall_ms, INT64_C(1767247200000));
    assert_true(
        read_json("{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"b\",\"Token\":null}", &text));
    assert_int_equal(text.session_token.len, 0);
    assert_int_equal(text.ends_at_wall_ms, 0);
}

static void test_malformed_json_answer_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"AccessKeyId\":\"A\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":7}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"b\"",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"b\"} more",
        "{\"AccessKeyId\":\"A\\r\\nX: y\",\"SecretAccessKey\":\"b\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"b\",\"Token\":\"t\\nX: y\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"b\",\"Expiration\":\"soon\"}",
        "{\"Code\":\"Failed\",\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"b\"}",
    };
    (void)state;
    struct aws_key_text text;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(read_json(bad[i], &text));
}

static void test_keys_longer_than_their_bound_are_refused(void **state)
{
    static char token[AWS_TOKEN_BYTES_MAX + 2];
    struct aws_key_text text = {.access_key_id = SLICE("A"), .secret_access_key = SLICE("b")};
    (void)state;
    memset(token, 'x', sizeof(token) - 1);
    text.session_token = (struct slice){token, AWS_TOKEN_BYTES_MAX};
    assert_true(aws_key_text_is_usable(&text));
    text.session_token.len++;
    assert_false(aws_key_text_is_usable(&text));
    text.session_token = SLICE_NONE;
    text.secret_access_key = (struct slice){token, AWS_KEY_BYTES_MAX + 1};
    assert_false(aws_key_text_is_usable(&text));
}

#define XML(id, secret, token, end)                                                                \
    "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"      \
    "<AssumeRoleWithWebIdentityResult><AssumedRoleUser><Arn>arn</Arn></AssumedRoleUser>"           \
    "<Credentials>\n  <SessionToken>" token "</SessionToken><SecretAccessKey>" secret              \
    "</SecretAccessKey><Expiration>" end "</Expiration><AccessKeyId>" id "</AccessKeyId>"          \
    "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"

static void test_xml_answer_is_read(void **state)
{
    struct aws_key_text text;
    (void)state;
    assert_true(
        aws_key_text_read_xml(SLICE(XML("ASIA1", "a/b", "t==", "2026-01-01T06:00:00Z")), &text));
    assert_true(slice_is(text.access_key_id, "ASIA1"));
    assert_true(slice_is(text.secret_access_key, "a/b"));
    assert_true(slice_is(text.session_token, "t=="));
    assert_int_equal(text.ends_at_wall_ms, INT64_C(1767247200000));
}

static void test_malformed_xml_answer_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "<Credentials>",
        "<Credentials></Credentials>",
        XML("", "b", "t", "2026-01-01T06:00:00Z"),
        XML("A", "", "t", "2026-01-01T06:00:00Z"),
        XML("A", "b&amp;c", "t", "2026-01-01T06:00:00Z"),
        XML("A", "b", "t\nu", "2026-01-01T06:00:00Z"),
        XML("A", "b", "t", "tomorrow"),
        XML("A", "b", "t", ""),
        "<AccessKeyId>A</AccessKeyId><SecretAccessKey>b</SecretAccessKey>",
    };
    (void)state;
    struct aws_key_text text;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(aws_key_text_read_xml(slice_of(bad[i]), &text));
    struct slice whole = SLICE(XML("A", "b", "t", "2026-01-01T06:00:00Z"));
    size_t credentials_end = (size_t)(strstr(whole.data, "</Credentials>") - whole.data);
    for (size_t len = 0; len < credentials_end + strlen("</Credentials>"); len++)
        assert_false(aws_key_text_read_xml(slice_first(whole, len), &text));
}

static void test_key_set_copies_terminated_texts(void **state)
{
    struct aws_key_text text = {.access_key_id = {"AKIDxxx", 4},
                                .secret_access_key = {"secretxxx", 6},
                                .ends_at_wall_ms = 5};
    (void)state;
    struct aws_key_set *set = aws_key_set_make(&text);
    assert_string_equal(set->keys.access_key_id, "AKID");
    assert_string_equal(set->keys.secret_access_key, "secret");
    assert_null(set->keys.session_token);
    assert_int_equal(set->ends_at_wall_ms, 5);
    aws_key_set_free(&set);
    assert_null(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_answer_is_read),
        cmocka_unit_test(test_malformed_json_answer_is_refused),
        cmocka_unit_test(test_keys_longer_than_their_bound_are_refused),
        cmocka_unit_test(test_xml_answer_is_read),
        cmocka_unit_test(test_malformed_xml_answer_is_refused),
        cmocka_unit_test(test_key_set_copies_terminated_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
