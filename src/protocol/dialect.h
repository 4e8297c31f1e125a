/*
 * A dialect is how messages look on the wire: a small table of functions. Native JSON is one
 * (native.c), the events of Socket.IO another (socketio_dialect.c); every dialect maps onto the same
 * commands and events.
 *
 * `decode` turns a frame's payload (which it may write to) into a message that points into it and the
 * scratch. On failure it says why; message->id is set if it could be read, so that the error can name
 * the request. `encode` appends a frame's payload; a dialect with `split` says one message in several
 * frames, and writes the byte between them.
 *
 * A dialect may be another one in other bytes (socketio_packed.c): its frames are those of `text`, packed. It has
 * neither `decode` nor `encode`; who receives for it unpacks first.
 */
#ifndef ROLLCALL_PROTOCOL_DIALECT_H
#define ROLLCALL_PROTOCOL_DIALECT_H

#include "base/buffer.h"
#include "protocol/fields.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>

enum dialect_id { DIALECT_NATIVE, DIALECT_SOCKETIO, DIALECT_SOCKETIO_PACKED, DIALECT_COUNT };

struct dialect {
    enum dialect_id id;
    bool (*decode)(struct fields_scratch *scratch, char *data, size_t len, struct message *out,
                   const char **problem);
    void (*encode)(const struct message *message, struct buffer *out);
    char split; /* stands between two frames of one message; 0: a message is one frame */
    const struct dialect *text; /* what this one packs, into binary frames; NULL: frames are text */
    /* Makes a frame's payload of one of `text`, which is spent. */
    void (*pack)(char *text, size_t len, struct buffer *out);
};

extern const struct dialect DIALECT_TABLE_NATIVE;
extern const struct dialect DIALECT_TABLE_SOCKETIO;
extern const struct dialect DIALECT_TABLE_SOCKETIO_PACKED;

#endif
