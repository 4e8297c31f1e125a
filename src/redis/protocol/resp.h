/*
 * RESP, the protocol of Redis (versions 2 and 3): writes commands, parses replies, without I/O.
 *
 * Arguments of a command are binary and sent with their lengths, so a user id can never become a command. The
 * parser reads one whole reply from the front of the input. When more bytes of an incomplete reply arrive it
 * continues where it stopped, so the cost does not grow with the number of pieces. It bounds nesting, the
 * number of values and the bytes of one text; the caller's buffer bounds the whole reply. Texts in a reply
 * point into the input.
 *
 * Attributes and streamed strings are not supported: Redis sends them only on request.
 */
#ifndef ROLLCALL_REDIS_PROTOCOL_RESP_H
#define ROLLCALL_REDIS_PROTOCOL_RESP_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RESP_DEPTH_MAX = 8,
    RESP_VALUES_MAX = 1 << 18,
    RESP_LINE_BYTES_MAX = 64 * 1024,
    RESP_TEXT_BYTES_MAX = 16 * 1024 * 1024,
    RESP_VALUES_KEPT = 4096, /* an idle parser keeps memory for so many */
};

enum resp_type {
    RESP_NULL,
    RESP_TEXT, /* simple, bulk and verbatim strings, doubles and big numbers */
    RESP_ERROR,
    RESP_INTEGER, /* booleans too */
    RESP_ARRAY,   /* sets too; a map is an array of alternating keys and values */
    RESP_PUSH,    /* an unrequested array (pub/sub); never inside another value */
};

struct resp_value {
    enum resp_type type;
    int64_t integer; /* of RESP_INTEGER; undefined in other types */
    struct slice text;
    const struct resp_value *items; /* of an array: `count` values */
    size_t count;
};

/* An array that is being read. */
struct resp_level {
    size_t next; /* index of the value for its next item */
    size_t left; /* items to come */
};

/* Memory for parsed replies, reused for the next, and the state of an incomplete one. Zero-initialise it. */
struct resp_parser {
    struct resp_value *values;
    size_t cap;
    size_t used;
    size_t at;
    unsigned depth;
    struct resp_level levels[RESP_DEPTH_MAX];
};

enum resp_result { RESP_INCOMPLETE, RESP_COMPLETE, RESP_INVALID };

/* Parses the reply at the front of `input`. COMPLETE: *reply is valid as long as the input and until the next
 * resp_parse(); *len is how many bytes it took. INCOMPLETE: parse again with the same bytes, possibly moved,
 * and more after them. INVALID, also when out of memory: the rest of the connection cannot be parsed. */
enum resp_result resp_parse(struct resp_parser *parser, struct slice input,
                            const struct resp_value **reply, size_t *len);

/* Drops an incomplete reply, for bytes of another connection. */
void resp_parser_restart(struct resp_parser *parser);
void resp_parser_free(struct resp_parser *parser);

/* Appends a command. */
void resp_write_command(struct buffer *out, const struct slice *arguments, size_t count);

/* Writes a command in parts: first the number of arguments, then each. */
void resp_write_count(struct buffer *out, size_t count);
void resp_write_argument(struct buffer *out, struct slice argument);
void resp_write_integer(struct buffer *out, int64_t argument);

/* Whether a reply is an error with this first word ("MOVED", "NOSCRIPT", …). */
bool resp_is_error(const struct resp_value *reply, const char *word);

/* Parses a whole text as a decimal number. Returns false when it is none, or does not fit. */
bool resp_parse_integer(struct slice text, int64_t *out);

#endif
