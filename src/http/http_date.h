/*
 * The time as HTTP writes it (RFC 9110, 5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT". The text is formatted at most once
 * a second. One thread.
 */
#ifndef ROLLCALL_HTTP_HTTP_DATE_H
#define ROLLCALL_HTTP_HTTP_DATE_H

#include <stdint.h>

enum { HTTP_DATE_LEN = 29 };

/* Starts zeroed. */
struct http_date {
    int64_t second; /* of `text` */
    char text[HTTP_DATE_LEN + 1];
};

/* The text, terminated; valid until the next http_date_text(). Years outside 0..9999 are clamped. */
const char *http_date_text(struct http_date *date, int64_t wall_ms);

#endif
