/*
 * A dialect is how messages look on the wire: a table of functions and of other differences. Native JSON is
 * one (native.c). Every dialect maps onto the same commands and events, and code outside a dialect's own
 * folder uses its table and never checks which dialect it is.
 *
 * `decode` turns a frame's payload (which it may write to) into a message that points into the payload and
 * the scratch. On failure it sets *problem, and message->id if it could be read, so that the error can
 * name the command. `encode` appends a frame's payload; a dialect with `split` encodes one message as several
 * frames and writes that byte between them.
 *
 * A packed dialect is another dialect in binary form: its frames are those of `text`, packed. It has neither
 * `decode` nor `encode`, because its receiver unpacks first.
 */
#ifndef ROLLCALL_PROTOCOL_DIALECT_H
#define ROLLCALL_PROTOCOL_DIALECT_H

#include "base/buffer.h"
#include "protocol/fields.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>

/* Each dialect has a slot of its own in tables per dialect. Dialects in other folders define theirs there. */
enum { DIALECT_SLOT_NATIVE, DIALECT_SLOT_COUNT = 3 };

struct dialect {
    unsigned slot; /* below DIALECT_SLOT_COUNT */
    bool (*decode)(struct fields_scratch *scratch, char *data, size_t len, struct message *out,
                   const char **problem);
    void (*encode)(const struct message *message, struct buffer *out);
    char split; /* separates the frames of one message; 0: a message is one frame */
    const struct dialect
        *text; /* the dialect that this one packs into binary frames; NULL: it is text */
    /* Packs a frame's payload of `text`, which it may change. */
    void (*pack)(char *text, size_t len, struct buffer *out);
    /* May be NULL. Adds an offset to an encoded event, if the encoder has a clock for offsets. */
    void (*append_offset)(struct buffer *event, uint64_t offset);
    bool keeps_events;       /* its sessions keep events for a recovery (session_context.h) */
    bool confirms_acks;      /* an ack that has an id is answered with ok */
    bool answers_asked_only; /* the application's answer to an event without an id is not sent */
};

extern const struct dialect DIALECT_TABLE_NATIVE;

/* The dialect whose text a dialect packs; an unpacked dialect is its own. */
static inline const struct dialect *dialect_text(const struct dialect *dialect)
{
    return dialect->text ? dialect->text : dialect;
}

#endif
