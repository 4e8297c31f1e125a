/*
 * MessagePack: its formats, read and written one item at a time. A codec without I/O.
 *
 * An item is a scalar, a whole string, or the head of an array or a map; the elements of such (of a map, keys
 * and values in turn) are the items that follow. Every format is read. A length is held against the bytes
 * that are left, and a count too, since no element takes less than one: what announces more than it brings
 * is refused at its head.
 *
 * Nothing is allocated but by the buffer that is written to; strings point into the input. Pure functions;
 * any thread.
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
    MSGPACK_UNDEFINED, /* extension 0 of one byte, by which JavaScript's encoders mean it */
    MSGPACK_BOOLEAN,
    MSGPACK_NATURAL,
    MSGPACK_INTEGER, /* of a signed format, be it negative or not */
    MSGPACK_REAL,
    MSGPACK_STRING,
    MSGPACK_BINARY,
    MSGPACK_EXTENSION, /* any other */
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

/* Takes the next item off the front of *rest. False: there is none, or it is not whole. */
bool msgpack_read(struct slice *rest, struct msgpack_item *out);

/* Takes the next value off, with all that is in it, however deep. False: it is not whole. */
bool msgpack_skip(struct slice *rest);

void msgpack_write_nil(struct buffer *out);
void msgpack_write_bool(struct buffer *out, bool value);
void msgpack_write_int(struct buffer *out, int64_t value);
void msgpack_write_double(struct buffer *out, double value);
void msgpack_write_string(struct buffer *out, struct slice value);

/* Opens an array or a map whose elements are counted only while they are written; answers what to close it
 * with. */
size_t msgpack_write_open(struct buffer *out, enum msgpack_type type);
void msgpack_write_close(struct buffer *out, size_t opened_at, uint32_t count);

#endif
