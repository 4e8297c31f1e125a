#include "http/http_date.h"

#include <stdio.h>
#include <time.h>

enum { MS_PER_SECOND = 1000 };

/* The first and the last second of the years that have four digits. */
static const int64_t FIRST_SECOND = INT64_C(-62167219200);
static const int64_t LAST_SECOND = INT64_C(253402300799);

/* Not strftime()'s, which follow the locale. */
static const char DAYS[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char MONTHS[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

static int64_t second_of(int64_t wall_ms)
{
    int64_t second = wall_ms / MS_PER_SECOND - (wall_ms % MS_PER_SECOND < 0);
    if (second < FIRST_SECOND)
        return FIRST_SECOND;
    return second > LAST_SECOND ? LAST_SECOND : second;
}

/* Two digits, whatever the compiler believes the number to be. */
static unsigned two_digits(int number)
{
    return (unsigned)number % 100;
}

static void write_text(struct http_date *date)
{
    struct tm tm;
    time_t second = (time_t)date->second;
    gmtime_r(&second, &tm);
    snprintf(date->text, sizeof(date->text), "%s, %02u %s %04u %02u:%02u:%02u GMT",
             DAYS[tm.tm_wday], two_digits(tm.tm_mday), MONTHS[tm.tm_mon],
             (unsigned)(tm.tm_year + 1900) % 10000, two_digits(tm.tm_hour), two_digits(tm.tm_min),
             two_digits(tm.tm_sec));
}

const char *http_date_text(struct http_date *date, int64_t wall_ms)
{
    int64_t second = second_of(wall_ms);
    if (second != date->second || !date->text[0]) {
        date->second = second;
        write_text(date);
    }
    return date->text;
}
