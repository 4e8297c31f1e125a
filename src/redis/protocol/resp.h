/*
 * RESP, the protocol of Redis (versions 2 and 3): commands out, replies in, without I/O.
 *
 * Arguments of a command are binary and go out with their lengths, so that nothing a user is called can
 * become a command. The parser reads one whole reply from the front of what arrived. A reply that is
 * not complete yet is read on, not again, when more of it has come, so that its cost does not grow
 * with the number of pieces. It is bounded here in nesting, in values and in the bytes of one text,
 * and in all its bytes by the caller's buffer. Texts in a reply point into the input.
 *
 * Not understood, since Redis sends them only to those who ask: attributes and streamed strings.
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
    RESP_VALUES_KEPT = 4096, /* memory for so many stays with an idle parser */
};

enum resp_type {
    RESP_NULL,
    RESP_TEXT, /* simple, bulk and verbatim strings, doubles and big numbers */
    RESP_ERROR,
    RESP_INTEGER, /* booleans too */
    RESP_ARRAY,   /* sets too; a map is an array of keys and values in turn */
    RESP_PUSH,    /* an array nobody asked for: pub/sub; never inside another value */
};

struct resp_value {
    enum resp_type type;
    int64_t integer; /* of an integer; means nothing in the other types */
    struct slice text;
    const struct resp_value *items; /* of an array, `count` of them */
    size_t count;
};

/* An array whose items are being read. */
struct resp_level {
    size_t next; /* the value its next item goes to */
    size_t left;
};

/* Memory for parsed replies, reused from one to the next, and how far an incomplete one was read. All
 * zero to begin with. */
struct resp_parser {
    struct resp_value *values;
    size_t cap;
    size_t used;
    size_t at;
    unsigned depth;
    struct resp_level levels[RESP_DEPTH_MAX];
};

enum resp_result { RESP_INCOMPLETE, RESP_COMPLETE, RESP_INVALID };

/* Parses the reply `input` begins with. COMPLETE: *reply lasts as long as the input and until the next
 * call; *len is how many bytes it took. INCOMPLETE: call again with the same bytes, wherever they are
 * by then, and more after them. INVALID, also when memory is short: the peer cannot be understood any
 * more. */
enum resp_result resp_parse(struct resp_parser *parser, struct slice input,
                            const struct resp_value **reply, size_t *len);

/* Forgets an incomplete reply: what comes next is from another connection. */
void resp_parser_restart(struct resp_parser *parser);
void resp_parser_free(struct resp_parser *parser);

/* Appends a command. */
void resp_write_command(struct buffer *out, const struct slice *arguments, size_t count);

/* The same piece by piece: first how many arguments, then each. */
void resp_write_count(struct buffer *out, size_t count);
void resp_write_argument(struct buffer *out, struct slice argument);
void resp_write_integer(struct buffer *out, int64_t argument);

/* Whether a reply is an error that begins with this word ("MOVED", "NOSCRIPT", …). */
bool resp_is_error(const struct resp_value *reply, const char *word);

/* Reads a whole text as a decimal number that fits. */
bool resp_parse_integer(struct slice text, int64_t *out);

#endif
