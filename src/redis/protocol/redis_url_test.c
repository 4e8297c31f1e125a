#include "redis/protocol/redis_url.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static bool parse(const char *text, struct redis_url *url, char error[REDIS_URL_ERROR_MAX])
{
    struct slice slice = slice_of(text);
    char *copy = exact_copy(slice);
    bool accepted = redis_url_parse((struct slice){copy, slice.len}, url, error);
    free(copy);
    return accepted;
}

static struct redis_url parsed(const char *text)
{
    struct redis_url url;
    char error[REDIS_URL_ERROR_MAX] = "";
    assert_true(parse(text, &url, error));
    assert_string_equal(error, "");
    return url;
}

static void expect_refused(const char *text)
{
    struct redis_url url;
    char error[REDIS_URL_ERROR_MAX] = "";
    assert_false(parse(text, &url, error));
    assert_true(strlen(error) > 10);
    assert_null(strstr(error, "s3cret"));
}

static void single_server_url_is_parsed(void **state)
{
    (void)state;
    struct redis_url url = parsed("redis://127.0.0.1:6379/3");
    assert_false(url.tls || url.cluster);
    assert_string_equal(url.seeds[0].host, "127.0.0.1");
    assert_int_equal(url.seeds[0].port, 6379);
    assert_int_equal(url.database, 3);
    assert_string_equal(url.user, "");
    assert_string_equal(url.password, "");
    url = parsed("rediss://redis.internal:6380");
    assert_true(url.tls);
    assert_int_equal(url.database, 0);
    assert_string_equal(parsed("redis://[::1]:1/").seeds[0].host, "::1");
}

static void sentinel_url_is_parsed(void **state)
{
    (void)state;
    struct redis_url url = parsed("redis-sentinel://:pw@10.0.0.1:26379,[::1]:26380/my-master.1/4");
    assert_true(url.sentinel && !url.cluster && !url.tls);
    assert_int_equal(url.seed_count, 2);
    assert_string_equal(url.seeds[1].host, "::1");
    assert_int_equal(url.seeds[1].port, 26380);
    assert_string_equal(url.master, "my-master.1");
    assert_int_equal(url.database, 4);
    assert_string_equal(url.password, "pw");
    url = parsed("rediss-sentinel://h:1/m");
    assert_true(url.tls && url.sentinel);
    assert_int_equal(url.database, 0);
    assert_string_equal(parsed("redis://h:1/2").master, "");
}

static void wrong_sentinel_url_is_refused(void **state)
{
    (void)state;
    expect_refused("redis-sentinel://h:1");
    expect_refused("redis-sentinel://h:1/");
    expect_refused("redis-sentinel://h:1//2");
    expect_refused("redis-sentinel://h:1/m/x");
    expect_refused("redis-sentinel://h:1/m/1/2");
    expect_refused("redis-sentinel://h:1/my master");
    expect_refused("redis-sentinel://h:1/m*");
    expect_refused("redis-sentinel:///m");
    expect_refused("redis-sentinel://h/m");
    expect_refused("redis-sentinel://:s3cret@h/m");
    expect_refused("redis-sentinel://h:1/"
                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
}

static void login_is_decoded(void **state)
{
    (void)state;
    struct redis_url url = parsed("redis://app:p%40ss%3a%2F@h:1");
    assert_string_equal(url.user, "app");
    assert_string_equal(url.password, "p@ss:/");
    url = parsed("redis://:a@b:c@h:1");
    assert_string_equal(url.user, "");
    assert_string_equal(url.password, "a@b:c");
    assert_string_equal(url.seeds[0].host, "h");
    assert_string_equal(parsed("redis://u:%41%7e@h:1").password, "A~");
}

static void cluster_url_is_parsed(void **state)
{
    (void)state;
    struct redis_url url = parsed("redis-cluster://u:p@a:1,b:2,[::1]:3");
    assert_true(url.cluster);
    assert_false(url.tls);
    assert_int_equal(url.seed_count, 3);
    assert_string_equal(url.seeds[1].host, "b");
    assert_int_equal(url.seeds[2].port, 3);
    assert_true(parsed("rediss-cluster://a:1").tls);
}

static void malformed_url_is_refused_without_repeating_the_login(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "redis",
        "http://a:1",
        "redis://",
        "redis://a",
        "redis://a:0",
        "redis://a:70000",
        "redis://a:1,b:2",
        "redis://a:1/x",
        "redis://a:1/99999999",
        "redis-cluster://",
        "redis-cluster://a:1,",
        "redis-cluster://a:1/2",
        "redis://s3cret@a:1",
        "redis://u:s3cret%@a:1",
        "redis://u:s3cret%4@a:1",
        "redis://u:s3cret%zz@a:1",
        "redis://u:s3cret%00@a:1",
        "redis-cluster://a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        expect_refused(wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_server_url_is_parsed),
        cmocka_unit_test(sentinel_url_is_parsed),
        cmocka_unit_test(wrong_sentinel_url_is_refused),
        cmocka_unit_test(login_is_decoded),
        cmocka_unit_test(cluster_url_is_parsed),
        cmocka_unit_test(malformed_url_is_refused_without_repeating_the_login),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
