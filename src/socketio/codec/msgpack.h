/*
 * MessagePack: its formats, read and written one item at a time. A codec without I/O.
 *
 * An item is a scalar, a whole string, or the head of an array or a map; the elements of an array or a map (keys and
 * values alternate) are the items that follow. Every format is read. Lengths and counts are checked against the bytes
 * left, since each element takes at least one: a value that claims more than the input holds is refused at its head.
 *
 * Only the buffer that is written to allocates; strings point into the input. Pure functions; any thread.
 */
#ifndef ROLLCALL_SOCKETIO_CODEC_MSGPACK_H
#define ROLLCALL_SOCKETIO_CODEC_MSGPACK_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum msgpack_type {
    MSGPACK_INVALID,
    MSGPACK_NIL,
    MSGPACK_UNDEFINED, /* extension 0 of one byte, as JavaScript's encoders write it */
    MSGPACK_BOOLEAN,
    MSGPACK_NATURAL,
    MSGPACK_INTEGER, /* of a signed format, negative or not */
    MSGPACK_REAL,
    MSGPACK_STRING,
    MSGPACK_BINARY,
    MSGPACK_EXTENSION, /* any other extension */
    MSGPACK_ARRAY,
    MSGPACK_MAP,
};

struct msgpack_item {
    enum msgpack_type type;
    union {
        bool boolean;
        uint64_t natural;
        int64_t integer;
        double real;
        struct slice bytes; /* string, binary, extension (without its type) */
        uint32_t count;     /* elements of an array, pairs of a map */
    };
};

/* Takes the next item off the front of *rest. Returns false when there is none, or it is truncated. */
bool msgpack_read(struct slice *rest, struct msgpack_item *out);

/* Takes the next value off with everything inside it, at any depth. Returns false when it is truncated. */
bool msgpack_skip(struct slice *rest);

void msgpack_write_nil(struct buffer *out);
void msgpack_write_bool(struct buffer *out, bool value);
void msgpack_write_int(struct buffer *out, int64_t value);
void msgpack_write_double(struct buffer *out, double value);
void msgpack_write_string(struct buffer *out, struct slice value);

/* Opens an array or a map whose count is known only after its elements are written. Returns the position to
 * pass to msgpack_write_close(). */
size_t msgpack_write_open(struct buffer *out, enum msgpack_type type);
void msgpack_write_close(struct buffer *out, size_t opened_at, uint32_t count);

#endif
