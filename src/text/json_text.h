/*
 * Scans and unescapes the contents of JSON strings, for the parser and the writer only.
 *
 * Most of a string is plain (printable ASCII except quote and backslash) and is copied unchanged,
 * so both look for the end of the plain run first and handle the byte that ended it separately.
 */
#ifndef ROLLCALL_TEXT_JSON_TEXT_H
#define ROLLCALL_TEXT_JSON_TEXT_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Returns how many bytes from `at` up to `end` are plain.
 *
 * It checks eight bytes in one step: a subtraction borrows into the top bit of each byte that is
 * smaller than the subtrahend. A borrow may also mark the byte after such a byte, but the first
 * marked byte is always right, and only that one counts.
 */
static inline size_t json_text_plain_run(const char *at, const char *end)
{
    const uint64_t ones = 0x0101010101010101;
    const char *from = at;
    while (end - at >= (ptrdiff_t)sizeof(uint64_t)) {
        uint64_t eight;
        memcpy(&eight, at, sizeof(eight));
        eight = le64toh(eight);
        uint64_t control = eight - ones * ' ';
        uint64_t quote = (eight ^ ones * '"') - ones;
        uint64_t backslash = (eight ^ ones * '\\') - ones;
        uint64_t stops = (eight | control | quote | backslash) & ones * 0x80;
        if (stops)
            return (size_t)(at - from) + (size_t)__builtin_ctzll(stops) / 8;
        at += sizeof(eight);
    }
    while (at < end && (unsigned char)(*at - ' ') < 0x80 - ' ' && *at != '"' && *at != '\\')
        at++;
    return (size_t)(at - from);
}

/* Returns the end of the escape or non-ASCII character that ended a plain run within a string, and
 * sets *escaped for an escape. If it is neither, returns NULL and sets *expected to what was
 * expected. */
const char *json_text_special(const char *at, const char *end, bool *escaped,
                              const char **expected);

/* Returns whether the escape at `at` is one half of a surrogate pair. */
bool json_text_is_surrogate(const char *at, const char *end);

/* Unescapes a validated string in place and returns its new end. */
char *json_text_unescape(char *start, const char *end);

#endif
