#include "webhooks/webhook_endpoints.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static struct config config_with(const char *url, const char **items, size_t count)
{
    struct config config = {.webhooks = {.url = url,
                                         .endpoints = {.items = items, .count = count},
                                         .secret_file = "",
                                         .ca_file = "",
                                         .backlog_max = 1000}};
    return config;
}

static void without_a_url_there_is_neither_endpoint_nor_queue(void **state)
{
    (void)state;
    static struct webhook_endpoints endpoints;
    char error[WEBHOOK_ERROR_TEXT_MAX];
    struct config config = config_with("", NULL, 0);
    assert_true(webhook_endpoints_init(&endpoints, &config, error));
    assert_int_equal(endpoints.count, 0);
    assert_int_equal(endpoints.queue_count, 0);
    assert_int_equal(webhook_endpoints_types(&endpoints), 0);
}

static void queues_follow_from_urls_and_types(void **state)
{
    (void)state;
    static struct webhook_endpoints endpoints, reordered;
    char error[WEBHOOK_ERROR_TEXT_MAX];
    const char *items[] = {"http://a/ types=message.undelivered+call.missed",
                           "http://b/ types=presence.changed"};
    struct config config = config_with("http://c/", items, 2);
    assert_true(webhook_endpoints_init(&endpoints, &config, error));
    assert_int_equal(endpoints.count, 3);
    assert_string_equal(endpoints.items[1].url, "http://a/");
    assert_int_equal(endpoints.items[0].types, LEDGER_EVENT_TYPES_ALL);
    /* two of c, two of a, none of b, whose events are best effort */
    assert_int_equal(endpoints.queue_count, 4);
    assert_int_equal(endpoints.queues[2].types, 1 << LEDGER_EVENT_CALL_MISSED);
    assert_int_equal(endpoints.queues[3].types, 1 << LEDGER_EVENT_MESSAGE_UNDELIVERED);
    assert_int_equal(endpoints.queues[0].count_max, 1000);
    config = config_with("", items, 1);
    assert_true(webhook_endpoints_init(&reordered, &config, error));
    assert_string_equal(reordered.items[0].queue, endpoints.items[1].queue);
}

static void wrong_endpoints_are_refused_with_a_reason(void **state)
{
    (void)state;
    static struct webhook_endpoints endpoints;
    char error[WEBHOOK_ERROR_TEXT_MAX];
    const char *unknown[] = {"http://a/ types=message.made"};
    const char *twice[] = {"http://a/", "http://a/"};
    const char *secret[] = {"http://a/ secret_file=/nonexistent"};
    const char *many[] = {"http://1/", "http://2/", "http://3/", "http://4/", "http://5/",
                          "http://6/", "http://7/", "http://8/", "http://9/"};
    struct config config = config_with("", unknown, 1);
    assert_false(webhook_endpoints_init(&endpoints, &config, error));
    assert_non_null(strstr(error, "message.made"));
    config = config_with("", twice, 2);
    assert_false(webhook_endpoints_init(&endpoints, &config, error));
    assert_non_null(strstr(error, "already"));
    config = config_with("", secret, 1);
    assert_false(webhook_endpoints_init(&endpoints, &config, error));
    assert_non_null(strstr(error, "/nonexistent"));
    config = config_with("", many, 9);
    assert_false(webhook_endpoints_init(&endpoints, &config, error));
    assert_non_null(strstr(error, "at most 8"));
    config = config_with("http://a/", NULL, 0);
    config.webhooks.secret_file = "/nonexistent";
    assert_false(webhook_endpoints_init(&endpoints, &config, error));
    assert_non_null(strstr(error, "webhooks.secret_file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_url_there_is_neither_endpoint_nor_queue),
        cmocka_unit_test(queues_follow_from_urls_and_types),
        cmocka_unit_test(wrong_endpoints_are_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
