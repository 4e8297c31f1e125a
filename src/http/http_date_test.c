#include "http/http_date.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    int64_t wall_ms;
    const char *text;
} DATES[] = {
    {784111777000, "Sun, 06 Nov 1994 08:49:37 GMT"},
    {784111777999, "Sun, 06 Nov 1994 08:49:37 GMT"},
    {784111778000, "Sun, 06 Nov 1994 08:49:38 GMT"},
    {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
    {-1, "Wed, 31 Dec 1969 23:59:59 GMT"},
    {1709164800000, "Thu, 29 Feb 2024 00:00:00 GMT"},
    {1735689599999, "Tue, 31 Dec 2024 23:59:59 GMT"},
    {4107542399000, "Sun, 28 Feb 2100 23:59:59 GMT"},
    {4107542400000, "Mon, 01 Mar 2100 00:00:00 GMT"},
    {INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"},
    {INT64_MIN, "Sat, 01 Jan 0000 00:00:00 GMT"},
};

static void dates_are_written_in_the_format_of_rfc_9110(void **unused)
{
    (void)unused;
    struct http_date date = {0};
    for (size_t i = 0; i < sizeof(DATES) / sizeof(DATES[0]); i++) {
        assert_string_equal(http_date_text(&date, DATES[i].wall_ms), DATES[i].text);
        assert_int_equal(strlen(date.text), HTTP_DATE_LEN);
    }
}

static void text_is_formatted_once_a_second(void **unused)
{
    (void)unused;
    struct http_date date = {0};
    http_date_text(&date, 784111777000);
    date.text[0] = '!';
    assert_int_equal(http_date_text(&date, 784111777500)[0], '!');
    assert_int_equal(http_date_text(&date, 784111778000)[0], 'S');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_written_in_the_format_of_rfc_9110),
        cmocka_unit_test(text_is_formatted_once_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
