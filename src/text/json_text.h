/*
 * The inside of JSON strings, for parser and writer alike (nobody else includes this).
 *
 * Most of a string is plain (printable ASCII but the quote and the backslash) and passes unchanged,
 * so both look for the end of that run first and treat what stopped it alone.
 */
#ifndef ROLLCALL_TEXT_JSON_TEXT_H
#define ROLLCALL_TEXT_JSON_TEXT_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * How many of the bytes from `at` are plain, up to `end`.
 *
 * Eight bytes are looked at in one step: a subtraction borrows into the top bit of each byte that
 * was smaller than what was taken away. A borrow may also mark the byte after one, but never the
 * first byte that is marked, which is the one that counts.
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

/* Steps over what ended a plain run within a string: an escape or a character beyond ASCII. Sets
 * *escaped for the former. When it is neither, returns NULL and sets *expected to what is amiss. */
const char *json_text_special(const char *at, const char *end, bool *escaped,
                              const char **expected);

/* Whether the escape at `at` is one half of a pair. */
bool json_text_is_surrogate(const char *at, const char *end);

/* Unescapes in place a string that has been stepped through, and returns its new end. */
char *json_text_unescape(char *start, const char *end);

#endif
