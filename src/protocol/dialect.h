/*
 * A dialect is how messages look on the wire: a table of functions, and of what else differs between
 * dialects. Native JSON is one (native.c); every dialect maps onto the same commands and events, and code
 * outside a dialect's own folder asks its table, never which dialect it is.
 *
 * `decode` turns a frame's payload (which it may write to) into a message that points into it and the
 * scratch. On failure it says why; message->id is set if it could be read, so that the error can name
 * the request. `encode` appends a frame's payload; a dialect with `split` says one message in several
 * frames, and writes the byte between them.
 *
 * A dialect may be another one in other bytes: its frames are those of `text`, packed. It has neither
 * `decode` nor `encode`; its receiver unpacks first.
 */
#ifndef ROLLCALL_PROTOCOL_DIALECT_H
#define ROLLCALL_PROTOCOL_DIALECT_H

#include "base/buffer.h"
#include "protocol/fields.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>

/* Each dialect has a slot of its own in tables of what is kept per dialect. Others take theirs where they
 * are defined. */
enum { DIALECT_SLOT_NATIVE, DIALECT_SLOT_COUNT = 3 };

struct dialect {
    unsigned slot; /* below DIALECT_SLOT_COUNT */
    bool (*decode)(struct fields_scratch *scratch, char *data, size_t len, struct message *out,
                   const char **problem);
    void (*encode)(const struct message *message, struct buffer *out);
    char split; /* stands between two frames of one message; 0: a message is one frame */
    const struct dialect *text; /* what this one packs, into binary frames; NULL: frames are text */
    /* Makes a frame's payload of one of `text`, which is spent. */
    void (*pack)(char *text, size_t len, struct buffer *out);
    bool has_offsets;   /* an event ends with an offset, if the encoder has a clock for it */
    bool keeps_events;  /* its sessions keep events for a recovery (session_context.h) */
    bool confirms_acks; /* an ack that has an id is answered with ok */
};

extern const struct dialect DIALECT_TABLE_NATIVE;

/* The dialect whose text a dialect packs; an unpacked dialect is its own. */
static inline const struct dialect *dialect_text(const struct dialect *dialect)
{
    return dialect->text ? dialect->text : dialect;
}

#endif
