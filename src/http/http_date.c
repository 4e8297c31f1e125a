#include "http/http_date.h"

#include <stdio.h>
#include <time.h>

enum { MS_PER_SECOND = 1000 };

/* The first and the last second of the years 0 to 9999. */
static const int64_t FIRST_SECOND = INT64_C(-62167219200);
static const int64_t LAST_SECOND = INT64_C(253402300799);

/* strftime() would follow the locale. */
static const char DAYS[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char MONTHS[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* Proves to the compiler that the number has two digits. */
static unsigned http_date_two_digits(int number)
{
    return (unsigned)number % 100;
}

const char *http_date_text(struct http_date *date, int64_t wall_ms)
{
    int64_t second = wall_ms / MS_PER_SECOND - (wall_ms % MS_PER_SECOND < 0);
    struct tm tm;
    if (second < FIRST_SECOND)
        second = FIRST_SECOND;
    else if (second > LAST_SECOND)
        second = LAST_SECOND;
    if (second == date->second && date->text[0])
        return date->text;
    date->second = second;
    gmtime_r(&(time_t){(time_t)second}, &tm);
    snprintf(date->text, sizeof(date->text), "%s, %02u %s %04u %02u:%02u:%02u GMT",
             DAYS[tm.tm_wday], http_date_two_digits(tm.tm_mday), MONTHS[tm.tm_mon],
             (unsigned)(tm.tm_year + 1900) % 10000, http_date_two_digits(tm.tm_hour),
             http_date_two_digits(tm.tm_min), http_date_two_digits(tm.tm_sec));
    return date->text;
}
