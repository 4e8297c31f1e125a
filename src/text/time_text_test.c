#include "text/time_text.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

static const int64_t first_ms = -62167219200000; /* 0000-01-01T00:00:00.000Z */
static const int64_t last_ms = 253402300799999;  /* 9999-12-31T23:59:59.999Z */

static void assert_text(int64_t wall_ms, const char *expected)
{
    char text[TIME_TEXT_LEN + 1] = {0};
    time_text_write(text, wall_ms);
    assert_string_equal(text, expected);
}

static void known_times_are_written(void **state)
{
    (void)state;
    assert_text(0, "1970-01-01T00:00:00.000Z");
    assert_text(-1, "1969-12-31T23:59:59.999Z");
    assert_text(951782400000, "2000-02-29T00:00:00.000Z");
    assert_text(1769853600123, "2026-01-31T10:00:00.123Z");
    assert_text(4107542400000, "2100-03-01T00:00:00.000Z");
    assert_text(first_ms, "0000-01-01T00:00:00.000Z");
    assert_text(last_ms, "9999-12-31T23:59:59.999Z");
}

static void years_without_four_digits_are_clamped(void **state)
{
    (void)state;
    assert_text(first_ms - 1, "0000-01-01T00:00:00.000Z");
    assert_text(INT64_MIN, "0000-01-01T00:00:00.000Z");
    assert_text(last_ms + 1, "9999-12-31T23:59:59.999Z");
    assert_text(INT64_MAX, "9999-12-31T23:59:59.999Z");
}

static void assert_as_gmtime(int64_t wall_ms)
{
    int64_t ms = (wall_ms % 1000 + 1000) % 1000;
    time_t seconds = (time_t)((wall_ms - ms) / 1000);
    struct tm tm;
    assert_non_null(gmtime_r(&seconds, &tm));
    char expected[80];
    snprintf(expected, sizeof(expected), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)ms);
    assert_text(wall_ms, expected);
    int64_t back_ms;
    assert_true(time_text_parse(slice_of(expected), &back_ms));
    assert_int_equal(back_ms, wall_ms);
}

/* Every day of one cycle of the calendar, and random times of the whole range. */
static void calendar_agrees_with_the_system(void **state)
{
    (void)state;
    const int64_t day_ms = 86400000;
    for (int64_t day = 0; day < 146097 + 366; day++)
        assert_as_gmtime((day - 36500) * day_ms + day * 591);
    struct random random;
    random_init_seeded(&random, 21);
    for (int i = 0; i < 50000; i++)
        assert_as_gmtime(first_ms + (int64_t)random_below(&random, (uint64_t)(last_ms - first_ms)));
}

static void assert_parsed(const char *text, int64_t expected_ms)
{
    int64_t wall_ms;
    if (!time_text_parse(slice_of(text), &wall_ms))
        fail_msg("refused \"%s\"", text);
    assert_int_equal(wall_ms, expected_ms);
}

static void offsets_and_fractions_are_read(void **state)
{
    (void)state;
    assert_parsed("1970-01-01T00:00:00Z", 0);
    assert_parsed("1970-01-01t00:00:00z", 0);
    assert_parsed("1970-01-01T01:00:00+01:00", 0);
    assert_parsed("1969-12-31T23:30:00-00:30", 0);
    assert_parsed("1970-01-01T00:00:00-00:00", 0);
    assert_parsed("1970-01-01T23:59:00+23:59", 0);
    assert_parsed("1970-01-01T00:00:00.5Z", 500);
    assert_parsed("1970-01-01T00:00:00.05+00:00", 50);
    assert_parsed("1970-01-01T00:00:00.0019Z", 1);
    assert_parsed("1970-01-01T00:00:00.999999999999999999999999Z", 999);
    assert_parsed("2016-12-31T23:59:60Z", 1483228800000);
    assert_parsed("2000-02-29T00:00:00Z", 951782400000);
    assert_parsed("0000-01-01T00:00:00+23:59", first_ms - (23 * 60 + 59) * 60000);
}

static void invalid_times_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "2026",
        "2026-01-31",
        "2026-01-31T10:00:00",
        "2026-01-31T10:00Z",
        "2026-01-31 10:00:00Z",
        "2026-01-31T10:00:00ZZ",
        "2026-01-31T10:00:00Z ",
        " 2026-01-31T10:00:00Z",
        "2026-1-31T10:00:00Z",
        "26-01-31T10:00:00Z",
        "+2026-01-31T10:00:00Z",
        "2026-00-31T10:00:00Z",
        "2026-13-31T10:00:00Z",
        "2026-01-00T10:00:00Z",
        "2026-01-32T10:00:00Z",
        "2026-04-31T10:00:00Z",
        "2026-02-29T10:00:00Z",
        "1900-02-29T10:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T10:60:00Z",
        "2026-01-31T10:00:61Z",
        "2026-01-31T10:00:00.Z",
        "2026-01-31T10:00:00,5Z",
        "2026-01-31T10:00:00.5",
        "2026-01-31T10:00:00+1:00",
        "2026-01-31T10:00:00+0100",
        "2026-01-31T10:00:00+01",
        "2026-01-31T10:00:00+24:00",
        "2026-01-31T10:00:00+01:60",
        "2026-01-31T10:00:00*01:00",
        "2026/01/31T10:00:00Z",
        "2026-01-31T10.00.00Z",
        "2026-01-3aT10:00:00Z",
    };
    int64_t wall_ms;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (time_text_parse(slice_of(texts[i]), &wall_ms))
            fail_msg("accepted \"%s\"", texts[i]);
    }
    assert_false(time_text_parse(SLICE_NONE, &wall_ms));
    assert_false(time_text_parse(SLICE("2026-01-31T10:00:00\0"), &wall_ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_times_are_written),
        cmocka_unit_test(years_without_four_digits_are_clamped),
        cmocka_unit_test(calendar_agrees_with_the_system),
        cmocka_unit_test(offsets_and_fractions_are_read),
        cmocka_unit_test(invalid_times_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
