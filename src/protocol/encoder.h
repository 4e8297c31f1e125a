/*
 * The encoder turns messages into framed blobs, each at most once per dialect. The blob of a packed dialect is
 * made from that of its text, so both carry the same offset; recovery always keeps the text.
 *
 * One per worker. It holds the buffer that messages are written into, and the last heartbeat_ack, which is the
 * same for all clients within one millisecond.
 *
 * With a clock, every event of a dialect with `append_offset` gets an offset, for clients that may recover: a
 * growing number, which is the time in microseconds unless that would not grow.
 */
#ifndef ROLLCALL_PROTOCOL_ENCODER_H
#define ROLLCALL_PROTOCOL_ENCODER_H

#include "base/blob.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "protocol/dialect.h"

struct encoder {
    struct buffer scratch;
    struct blob *heartbeat_acks[DIALECT_SLOT_COUNT];
    int64_t heartbeat_ack_ms;
    const struct clock *offset_clock; /* NULL: events carry no offset */
    uint64_t offset;                  /* of the last event */
};

/* A message to many connections: encoded for a dialect when the first connection needs it. */
struct broadcast {
    const struct message *message;
    struct blob *blobs[DIALECT_SLOT_COUNT];
};

void encoder_init(struct encoder *encoder);
void encoder_free(struct encoder *encoder);

/* Returns a new reference, or NULL when out of memory. */
struct blob *encoder_encode(struct encoder *encoder, const struct dialect *dialect,
                            const struct message *message);

/* The same for a heartbeat_ack without id. */
struct blob *encoder_heartbeat_ack(struct encoder *encoder, const struct dialect *dialect,
                                   int64_t server_time_ms);

/* Returns a new reference to a blob of text frames in this dialect: the same blob or a packed one; NULL when
 * out of memory. */
struct blob *encoder_translate(struct encoder *encoder, const struct dialect *dialect,
                               struct blob *text);

/* Whether foreign bytes could be those of a blob: whole text frames, at least one. */
bool encoder_wrote(struct slice frames);

/* Makes all further offsets larger than this one. */
void encoder_pass(struct encoder *encoder, uint64_t offset);

/* Returns a new offset, larger than all before. The encoder must have a clock for offsets. */
uint64_t encoder_next_offset(struct encoder *encoder);

struct blob *broadcast_encode(struct broadcast *broadcast, struct encoder *encoder,
                              const struct dialect *dialect);

/* Returns a borrowed blob that lasts until broadcast_end(), or NULL when out of memory. */
static inline struct blob *broadcast_blob(struct broadcast *broadcast, struct encoder *encoder,
                                          const struct dialect *dialect)
{
    struct blob *blob = broadcast->blobs[dialect->slot];
    return blob ? blob : broadcast_encode(broadcast, encoder, dialect);
}

void broadcast_end(struct broadcast *broadcast);

#endif
