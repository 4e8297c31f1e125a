#include "ledger/dynamodb/client/dynamodb_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_region_alone_names_the_rest(void **state)
{
    (void)state;
    struct dynamodb_url url;
    char error[DYNAMODB_URL_ERROR_MAX];
    assert_true(dynamodb_url_parse("dynamodb://eu-west-1", &url, error));
    assert_string_equal(url.region, "eu-west-1");
    assert_string_equal(url.endpoint, "https://dynamodb.eu-west-1.amazonaws.com/");
    assert_string_equal(url.prefix, DYNAMODB_PREFIX_DEFAULT);
    assert_string_equal(url.ca_file, "");
    assert_true(dynamodb_url_parse("dynamodb://cn-north-1", &url, error));
    assert_string_equal(url.endpoint, "https://dynamodb.cn-north-1.amazonaws.com.cn/");
}

static void test_parameters_are_read(void **state)
{
    (void)state;
    struct dynamodb_url url;
    char error[DYNAMODB_URL_ERROR_MAX];
    assert_true(dynamodb_url_parse(
        "dynamodb://local?endpoint=http://127.0.0.1:8000&prefix=chat_&ca=/etc/ca.pem", &url,
        error));
    assert_string_equal(url.endpoint, "http://127.0.0.1:8000");
    assert_string_equal(url.prefix, "chat_");
    assert_string_equal(url.ca_file, "/etc/ca.pem");
}

static void test_wrong_urls_are_explained(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"dynamo://eu-west-1", "no such scheme"},
        {"dynamodb://", "no region"},
        {"dynamodb://?prefix=a", "no region"},
        {"dynamodb://eu west", "no region"},
        {"dynamodb://eu?endpoint=127.0.0.1:8000", "the endpoint is no HTTP URL"},
        {"dynamodb://eu?endpoint=", "the endpoint is no HTTP URL"},
        {"dynamodb://eu?prefix=a/b", "a table cannot have this prefix"},
        {"dynamodb://eu?ca=", "no file of certificates"},
        {"dynamodb://eu?table=x", "unknown parameter: table"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct dynamodb_url url;
        char error[DYNAMODB_URL_ERROR_MAX] = "";
        assert_false(dynamodb_url_parse(wrong[i][0], &url, error));
        assert_non_null(strstr(error, wrong[i][1]));
        assert_non_null(strstr(error, "expected dynamodb://REGION"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_region_alone_names_the_rest),
        cmocka_unit_test(test_parameters_are_read),
        cmocka_unit_test(test_wrong_urls_are_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
