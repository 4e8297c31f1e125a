/*
 * Single UTF-8 characters in memory: measures and writes one. As strict as text/utf8.h, which
 * validates text that arrives in pieces.
 */
#ifndef ROLLCALL_TEXT_UTF8_CHARACTER_H
#define ROLLCALL_TEXT_UTF8_CHARACTER_H

#include <stddef.h>
#include <stdint.h>

/* U+FFFD: replaces each byte that is not UTF-8 in output. */
#define UTF8_CHARACTER_REPLACEMENT "\xef\xbf\xbd"

enum { UTF8_CHARACTER_MAX = 4 };

/* Returns the length of the well-formed character at the start of `len` bytes; 0 if there is
 * none. */
size_t utf8_character_len(const char *at, size_t len);

/* Writes a code point (at most 0x10ffff, no surrogate) as up to UTF8_CHARACTER_MAX bytes and
 * returns how many. */
size_t utf8_character_write(char *out, uint32_t code_point);

#endif
