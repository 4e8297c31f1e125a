/*
 * Classes of bytes in an HTTP/1 head (RFC 9110, 5.5 and 5.6; RFC 3986).
 *
 * One table, one bit per class. Private to the http1 files.
 */
#ifndef ROLLCALL_PROTOCOL_HTTP1_HTTP1_CHAR_H
#define ROLLCALL_PROTOCOL_HTTP1_HTTP1_CHAR_H

#include "base/slice.h"

#include <stdint.h>

#define HTTP1_CHAR_TOKEN 0x01 /* of a method, a field name, a coding */
#define HTTP1_CHAR_TARGET                                                                          \
    0x02 /* of a request target; includes what browsers leave unescaped: \ ^ ` { | } */
#define HTTP1_CHAR_HOST 0x04  /* of host:port, without the userinfo that '@' would end */
#define HTTP1_CHAR_VALUE 0x08 /* of a field value: visible, space, tab, and 0x80 up */

extern const uint8_t http1_char_class[256];

static inline bool http1_char_is(char c, uint8_t class)
{
    return http1_char_class[(unsigned char)c] & class;
}

/* Whether every byte of `text` is of the class; true for an empty text. */
bool http1_char_all(struct slice text, uint8_t class);

/* Whether two texts of the same length differ only in the case of ASCII letters. */
bool http1_char_same_letters(const char *a, const char *b, size_t len);

/* Whether two names are equal, ignoring the case of ASCII letters. */
static inline bool http1_char_same_name(struct slice a, struct slice b)
{
    return a.len == b.len && http1_char_same_letters(a.data, b.data, a.len);
}

/* Removes spaces and tabs at both ends. */
struct slice http1_char_trim(struct slice text);

/* The value of a hexadecimal digit, 0 to 15, or -1. */
int http1_char_hex(char c);

#endif
