/*
 * JSON (RFC 8259), strict: a pull parser over bytes in memory and an append-only writer.
 *
 * The parser neither allocates nor copies. It works on memory the caller may write to: strings are
 * unescaped in place, so that a slice it returns points into the input and stays valid as long as
 * that does. Invalid UTF-8, lone surrogates, control characters in strings, leading zeros, trailing
 * commas, NaN and bytes after the end are errors. Nesting is bounded by JSON_DEPTH_MAX. Of these, lone
 * surrogates and nesting are within the grammar, and others read them: `beyond` is set then.
 *
 * Errors are sticky: after the first one every read returns false and `error` says what was
 * expected at `error_at`. Reading an object looks like this:
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
 * A member's value must be read or skipped before the next json_member() call; a value passed over
 * or read twice is an error like one in the input. So is a read that meets a value of another type
 * (use json_peek() to choose). A key that stands twice is reported twice.
 *
 * Unescaping spends the input: bytes that keys or strings were read from cannot be parsed again.
 * json_skip() and json_raw() change nothing. One struct json belongs to one thread; it holds no
 * memory and needs no end.
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

/* What the input must hold next; kept so that no item is passed over unread and none read twice. */
enum json_next {
    JSON_NEXT_VALUE, /* a value: at the start, after a key, or after json_element() */
    JSON_NEXT_FIRST, /* a first item or the end of the container just entered */
    JSON_NEXT_MORE,  /* a comma or the container's end; outside of all, the end of the input */
};

struct json {
    char *at;
    char *end;
    char *start;
    const char *error; /* NULL while all is well; else what was expected, static text */
    size_t error_at;   /* offset of the first error */
    bool beyond;       /* the error is a bound of ours: what came may be JSON to others */
    uint32_t arrays;   /* bit per open level: set where that container is an array */
    uint8_t depth;
    uint8_t next; /* enum json_next */
};

void json_init(struct json *json, char *data, size_t len);

/* The type of the value that comes next, judged by its first byte and not read; JSON_INVALID when
 * none is due there, which is no error yet. */
enum json_type json_peek(struct json *json);

/* Enters an object or an array. */
bool json_object(struct json *json);
bool json_array(struct json *json);

/* Steps to the next member (and reads its key) or element; false at the end of the container, which
 * is then left, or on an error. */
bool json_member(struct json *json, struct slice *key);
bool json_element(struct json *json);

/* Read one value. On false *out has no meaning. */
bool json_string(struct json *json, struct slice *out);
bool json_int(struct json *json, int64_t *out);   /* exact; 1.0 and 1e3 are errors */
bool json_double(struct json *json, double *out); /* the nearest; too large is an error */
bool json_bool(struct json *json, bool *out);
bool json_null(struct json *json);

/* Checks the next value, whatever it is, and steps over it. */
bool json_skip(struct json *json);

/* The next value's bytes as they stand, checked but not unescaped. */
bool json_raw(struct json *json, struct slice *out);

/* Whether this valid value may be handed on inside of something else: of JSON_DEPTH_MAX it leaves
 * JSON_WRAPPING_MAX levels to what is put around it on its way. */
bool json_can_be_wrapped(struct slice value);

/* True when one whole value was read without an error and nothing but white space is left. */
bool json_done(struct json *json);

/*
 * The writer appends to a buffer and puts commas where they belong by looking at the last byte
 * written, so it has no state of its own; check buffer->failed once at the end. When the buffer
 * already holds something that is not JSON (as a prefix of the protocol), the first bracket must be
 * put there with buffer_append_byte(), or a comma would come between.
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
void json_write_raw(struct buffer *out, struct slice json); /* a value that is valid already */

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
