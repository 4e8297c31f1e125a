/*
 * The time as HTTP writes it (RFC 9110, 5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT". It is written once a second, however
 * often it is asked for. One thread.
 */
#ifndef ROLLCALL_HTTP_HTTP_DATE_H
#define ROLLCALL_HTTP_HTTP_DATE_H

#include <stdint.h>

enum { HTTP_DATE_LEN = 29 };

/* Zeroed at first. */
struct http_date {
    int64_t second; /* that `text` stands for */
    char text[HTTP_DATE_LEN + 1];
};

/* Terminated; lasts until it is asked again. Years outside 0..9999 are clamped. */
const char *http_date_text(struct http_date *date, int64_t wall_ms);

#endif
