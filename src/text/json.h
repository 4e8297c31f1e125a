/*
 * JSON (RFC 8259), strict: a pull parser over bytes in memory and an append-only writer.
 *
 * The parser neither allocates nor copies. It works on writable memory of the caller: strings are
 * unescaped in place, so a returned slice points into the input and is valid as long as the input.
 * Invalid UTF-8, lone surrogates, control characters in strings, leading zeros, trailing commas,
 * NaN and bytes after the end are errors. Nesting is bounded by JSON_DEPTH_MAX. Lone surrogates and
 * deep nesting conform to the grammar, so other parsers accept them; `beyond` is set for these two
 * errors.
 *
 * Errors are sticky: after the first one every read returns false, and `error` says what was
 * expected at `error_at`. An object is read like this:
 *
 *     struct json json;
 *     json_init(&json, data, len);
 *     struct slice key;
 *     json_object(&json);
 *     while (json_member(&json, &key)) {
 *         if (slice_is(key, "type"))
 *             json_string(&json, &type);
 *         else
 *             json_skip(&json);
 *     }
 *     if (!json_done(&json)) ... bad input
 *
 * Each value must be read or skipped exactly once before the next json_member(); anything else is
 * an error, like an error in the input. Reading a value of another type is an error as well; use
 * json_peek() to choose. A duplicate key is reported each time.
 *
 * Unescaping changes the input: bytes of keys or strings that were read cannot be parsed again.
 * json_skip() and json_raw() change nothing. A struct json belongs to one thread; it holds no
 * memory and needs no clean-up.
 */
#ifndef ROLLCALL_TEXT_JSON_H
#define ROLLCALL_TEXT_JSON_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* json_double() refuses numbers with more characters than JSON_DOUBLE_TEXT_MAX. */
enum { JSON_DEPTH_MAX = 32, JSON_WRAPPING_MAX = 2, JSON_DOUBLE_TEXT_MAX = 128 };

enum json_type {
    JSON_INVALID,
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
};

/* What the input must hold next; the parser tracks this so that each item is read exactly once. */
enum json_next {
    JSON_NEXT_VALUE, /* a value: at the start, after a key, or after json_element() */
    JSON_NEXT_FIRST, /* the first item or the end of the container just entered */
    JSON_NEXT_MORE,  /* a comma or the end of the container; at depth 0, the end of the input */
};

struct json {
    char *at;
    char *end;
    char *start;
    const char *error; /* NULL if there is none; else what was expected, static text */
    size_t error_at;   /* offset of the first error */
    bool beyond;       /* the error is a bound of this parser; others may accept the input */
    uint32_t arrays;   /* one bit per open level: set if that container is an array */
    uint8_t depth;
    uint8_t next; /* enum json_next */
};

void json_init(struct json *json, char *data, size_t len);

/* Returns the type of the next value by its first byte, without reading it; JSON_INVALID if no
 * value comes next, which is not an error yet. */
enum json_type json_peek(struct json *json);

/* Enters an object or an array. */
bool json_object(struct json *json);
bool json_array(struct json *json);

/* Advances to the next JSON member (and reads its key) or array element. Returns false on an error, or at the
 * end of the container, which it then leaves. */
bool json_member(struct json *json, struct slice *key);
bool json_element(struct json *json);

/* Read one value. If they return false, *out is undefined. */
bool json_string(struct json *json, struct slice *out);
bool json_int(struct json *json, int64_t *out);   /* exact; 1.0 and 1e3 are errors */
bool json_double(struct json *json, double *out); /* the nearest double; too large is an error */
bool json_bool(struct json *json, bool *out);
bool json_null(struct json *json);

/* Validates the next value, whatever its type, and advances past it. */
bool json_skip(struct json *json);

/* Returns the bytes of the next value, validated but not unescaped. */
bool json_raw(struct json *json, struct slice *out);

/* Returns whether this valid value may be embedded in other JSON: it leaves JSON_WRAPPING_MAX of
 * the JSON_DEPTH_MAX levels to the messages that carry it. */
bool json_can_be_wrapped(struct slice value);

/* Returns true if one whole value was read without an error and only white space is left. */
bool json_done(struct json *json);

/*
 * The writer appends to a buffer. It decides by the last byte of the buffer whether a comma is
 * needed, so it has no state; check buffer->failed once at the end. If the buffer already holds a
 * prefix that is not JSON, append the first bracket with buffer_append_byte(), or a comma comes in
 * between.
 */
void json_write_object(struct buffer *out);
void json_write_object_end(struct buffer *out);
void json_write_array(struct buffer *out);
void json_write_array_end(struct buffer *out);
void json_write_key(struct buffer *out, struct slice key);
void json_write_string(struct buffer *out, struct slice value); /* invalid UTF-8 becomes U+FFFD */
void json_write_int(struct buffer *out, int64_t value);
void json_write_bool(struct buffer *out, bool value);
void json_write_null(struct buffer *out);
void json_write_raw(struct buffer *out, struct slice json); /* must be a valid value */

static inline void json_write_key_string(struct buffer *out, struct slice key, struct slice value)
{
    json_write_key(out, key);
    json_write_string(out, value);
}

static inline void json_write_key_int(struct buffer *out, struct slice key, int64_t value)
{
    json_write_key(out, key);
    json_write_int(out, value);
}

static inline void json_write_key_bool(struct buffer *out, struct slice key, bool value)
{
    json_write_key(out, key);
    json_write_bool(out, value);
}

#endif
