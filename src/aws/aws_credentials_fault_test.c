/* Fetches keys while an allocation fails: they arrive at the first try or at a later one, and nothing leaks. */
#include "support/alloc_fault.h"
#include "support/aws_credentials_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HOUR_MS = 60 * 60 * 1000, TRIES_MAX = 4 };

typedef void (*kind_setup)(struct aws_credentials_fixture *fixture);

static void use_container(struct aws_credentials_fixture *fixture)
{
    char body[512];
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fixture->server.url, 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
           aws_credentials_fixture_file(fixture, "pod", "token"), 1);
    snprintf(
        body, sizeof(body),
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"b\",\"Token\":\"t\",\"Expiration\":\"%s\"}",
        aws_credentials_fixture_time(fixture, HOUR_MS));
    for (int i = 0; i < TRIES_MAX; i++)
        aws_credentials_fixture_answer(fixture, "200 OK", body);
}

static void use_web_identity(struct aws_credentials_fixture *fixture)
{
    char body[512];
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", aws_credentials_fixture_file(fixture, "token", "x"), 1);
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/chat", 1);
    setenv("AWS_ENDPOINT_URL_STS", fixture->server.url, 1);
    snprintf(body, sizeof(body),
             "<Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>b</SecretAccessKey>"
             "<SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials>",
             aws_credentials_fixture_time(fixture, HOUR_MS));
    for (int i = 0; i < TRIES_MAX; i++)
        aws_credentials_fixture_answer(fixture, "200 OK", body);
}

static void use_shared_files(struct aws_credentials_fixture *fixture)
{
    setenv("AWS_SHARED_CREDENTIALS_FILE",
           aws_credentials_fixture_file(
               fixture, "shared", "[default]\naws_access_key_id=A\naws_secret_access_key=b\n"),
           1);
}

static kind_setup setup_of_test;

static size_t fetch_once(alloc_fault_start fail_at, size_t n)
{
    void *state;
    aws_credentials_fixture_set_up(&state);
    struct aws_credentials_fixture *fixture = state;
    setup_of_test(fixture);
    fail_at(n);
    bool made = aws_credentials_fixture_make(fixture);
    if (made)
        aws_credentials_fixture_await(fixture, 1);
    size_t failed = alloc_fault_off();
    for (size_t i = 1; made && !aws_credentials_keys(fixture->credentials); i++) {
        assert_true(failed && i < TRIES_MAX);
        aws_credentials_fixture_await(fixture, i + 1);
    }
    aws_credentials_fixture_tear_down(&state);
    return failed;
}

static void sweep(kind_setup setup)
{
    setup_of_test = setup;
    assert_true(alloc_fault_sweep(alloc_fault_after, fetch_once) > 3);
    assert_true(alloc_fault_sweep(alloc_fault_from, fetch_once) > 3);
}

static void test_container_keys_arrive_after_memory_ran_out(void **state)
{
    (void)state;
    sweep(use_container);
}

static void test_web_identity_keys_arrive_after_memory_ran_out(void **state)
{
    (void)state;
    sweep(use_web_identity);
}

static void test_keys_of_files_arrive_after_memory_ran_out(void **state)
{
    (void)state;
    sweep(use_shared_files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_container_keys_arrive_after_memory_ran_out),
        cmocka_unit_test(test_web_identity_keys_arrive_after_memory_ran_out),
        cmocka_unit_test(test_keys_of_files_arrive_after_memory_ran_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
