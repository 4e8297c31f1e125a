/*
 * Single characters of UTF-8 in memory: how long one is, and how one is written. Strict as
 * text/utf8.h is, which validates text that arrives in pieces.
 */
#ifndef ROLLCALL_TEXT_UTF8_CHARACTER_H
#define ROLLCALL_TEXT_UTF8_CHARACTER_H

#include <stddef.h>
#include <stdint.h>

/* Stands in output for each byte that is no UTF-8: U+FFFD. */
#define UTF8_CHARACTER_REPLACEMENT "\xef\xbf\xbd"

enum { UTF8_CHARACTER_MAX = 4 };

/* The length of the well-formed character at the start of `len` bytes, 0 when there is none. */
size_t utf8_character_len(const char *at, size_t len);

/* Writes a code point (at most 0x10ffff, no surrogate) as up to UTF8_CHARACTER_MAX bytes and
 * returns how many. */
size_t utf8_character_write(char *out, uint32_t code_point);

#endif
