#include "text/time_text.h"

enum { MS_PER_SECOND = 1000, MS_PER_MINUTE = 60000, MS_PER_HOUR = 3600000, MS_PER_DAY = 86400000 };

/* The calendar repeats every 400 years. Years that start on 1 March have the leap day last, so the
 * month of a day follows from its number by arithmetic alone. */
enum { DAYS_PER_ERA = 146097, YEARS_PER_ERA = 400, DAYS_FROM_ERA_TO_1970 = 719468 };

static const int64_t wall_ms_min = -62167219200000; /* 0000-01-01T00:00:00.000Z */
static const int64_t wall_ms_max = 253402300799999; /* 9999-12-31T23:59:59.999Z */

struct date {
    unsigned year;
    unsigned month; /* 1 to 12 */
    unsigned day;   /* 1 to 31 */
};

/* `day_number` counts from 1 March of the year -400, so the whole range is positive. */
static struct date time_date_from_days(unsigned day_number)
{
    unsigned era = day_number / DAYS_PER_ERA;
    unsigned day_of_era = day_number % DAYS_PER_ERA;
    unsigned year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned march_month = (5 * day_of_year + 2) / 153;
    struct date date = {
        .day = day_of_year - (153 * march_month + 2) / 5 + 1,
        .month = march_month < 10 ? march_month + 3 : march_month - 9,
    };
    date.year = era * YEARS_PER_ERA + year_of_era + (date.month <= 2) - YEARS_PER_ERA;
    return date;
}

/* Returns the days since 1970-01-01. */
static int64_t time_days_from_date(struct date date)
{
    unsigned year = date.year + YEARS_PER_ERA - (date.month <= 2);
    unsigned year_of_era = year % YEARS_PER_ERA;
    unsigned march_month = date.month > 2 ? date.month - 3 : date.month + 9;
    unsigned day_of_year = (153 * march_month + 2) / 5 + date.day - 1;
    unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    int64_t era = (int64_t)(year / YEARS_PER_ERA) - 1;
    return era * DAYS_PER_ERA + day_of_era - DAYS_FROM_ERA_TO_1970;
}

static void write_two_time_digits(char *out, unsigned value)
{
    out[0] = (char)('0' + value / 10);
    out[1] = (char)('0' + value % 10);
}

void time_text_write(char out[TIME_TEXT_LEN], int64_t wall_ms)
{
    if (wall_ms < wall_ms_min)
        wall_ms = wall_ms_min;
    if (wall_ms > wall_ms_max)
        wall_ms = wall_ms_max;
    const int64_t days_before_1970 = DAYS_FROM_ERA_TO_1970 + DAYS_PER_ERA;
    uint64_t ms = (uint64_t)(wall_ms + days_before_1970 * MS_PER_DAY);
    struct date date = time_date_from_days((unsigned)(ms / MS_PER_DAY));
    unsigned ms_of_day = (unsigned)(ms % MS_PER_DAY);

    memcpy(out, "0000-00-00T00:00:00.000Z", TIME_TEXT_LEN);
    write_two_time_digits(out, date.year / 100);
    write_two_time_digits(out + 2, date.year % 100);
    write_two_time_digits(out + 5, date.month);
    write_two_time_digits(out + 8, date.day);
    write_two_time_digits(out + 11, ms_of_day / MS_PER_HOUR);
    write_two_time_digits(out + 14, ms_of_day / MS_PER_MINUTE % 60);
    write_two_time_digits(out + 17, ms_of_day / MS_PER_SECOND % 60);
    out[20] = (char)('0' + ms_of_day / 100 % 10);
    write_two_time_digits(out + 21, ms_of_day % 100);
}

static bool is_time_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* Takes exactly `count` digits from the front of `text`. */
static bool take_time_digits(struct slice *text, size_t count, unsigned *value)
{
    if (text->len < count)
        return false;
    *value = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_time_digit(text->data[i]))
            return false;
        *value = *value * 10 + (unsigned)(text->data[i] - '0');
    }
    *text = slice_after(*text, count);
    return true;
}

static bool take_time_character(struct slice *text, const char *characters)
{
    if (text->len == 0 || text->data[0] == '\0' || !strchr(characters, text->data[0]))
        return false;
    *text = slice_after(*text, 1);
    return true;
}

static bool take_time_date(struct slice *text, struct date *date)
{
    static const uint8_t days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (!take_time_digits(text, 4, &date->year) || !take_time_character(text, "-") ||
        !take_time_digits(text, 2, &date->month) || !take_time_character(text, "-") ||
        !take_time_digits(text, 2, &date->day) || date->month < 1 || date->month > 12)
        return false;
    bool is_leap_year = date->year % 4 == 0 && (date->year % 100 != 0 || date->year % 400 == 0);
    unsigned day_max = days[date->month - 1] + (unsigned)(is_leap_year && date->month == 2);
    return date->day >= 1 && date->day <= day_max;
}

/* A leap second (":60") counts as the second after it, since Unix time cannot express it. */
static bool take_time_of_day(struct slice *text, int64_t *ms)
{
    unsigned hour, minute, second;
    if (!take_time_digits(text, 2, &hour) || !take_time_character(text, ":") ||
        !take_time_digits(text, 2, &minute) || !take_time_character(text, ":") ||
        !take_time_digits(text, 2, &second))
        return false;
    *ms = (int64_t)hour * MS_PER_HOUR + minute * MS_PER_MINUTE + second * MS_PER_SECOND;
    return hour <= 23 && minute <= 59 && second <= 60;
}

static bool take_time_fraction(struct slice *text, int64_t *ms)
{
    *ms = 0;
    if (!take_time_character(text, "."))
        return true;
    size_t count = 0;
    for (int64_t scale = 100; count < text->len && is_time_digit(text->data[count]); count++) {
        *ms += scale * (text->data[count] - '0');
        scale /= 10;
    }
    *text = slice_after(*text, count);
    return count > 0;
}

/* Takes "Z" or the offset of the local time from UTC. */
static bool take_time_offset(struct slice *text, int64_t *ms)
{
    *ms = 0;
    if (take_time_character(text, "Zz"))
        return true;
    bool behind = text->len > 0 && text->data[0] == '-';
    unsigned hours, minutes;
    if (!take_time_character(text, "+-") || !take_time_digits(text, 2, &hours) ||
        !take_time_character(text, ":") || !take_time_digits(text, 2, &minutes) || hours > 23 ||
        minutes > 59)
        return false;
    *ms = (int64_t)hours * MS_PER_HOUR + minutes * MS_PER_MINUTE;
    if (behind)
        *ms = -*ms;
    return true;
}

bool time_text_parse(struct slice text, int64_t *wall_ms)
{
    struct date date;
    int64_t time_ms, fraction_ms, offset_ms;
    if (!take_time_date(&text, &date) || !take_time_character(&text, "Tt") ||
        !take_time_of_day(&text, &time_ms) || !take_time_fraction(&text, &fraction_ms) ||
        !take_time_offset(&text, &offset_ms) || text.len != 0)
        return false;
    *wall_ms = time_days_from_date(date) * MS_PER_DAY + time_ms + fraction_ms - offset_ms;
    return true;
}
