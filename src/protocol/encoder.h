/*
 * The encoder turns messages into framed blobs, each at most once per dialect. A packed dialect's blob is made
 * from that of its text, so both carry the same offset, and what is kept for recovery is always the text.
 *
 * One per worker; it holds the buffer messages are written into and the last heartbeat_ack, which
 * within one millisecond is the same for everybody.
 *
 * With a clock, every event of a dialect that `has_offsets` gets an offset as its last argument, for clients
 * that may recover: 16 hexadecimal digits of a number that grows, microseconds where it can.
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

/* A message on its way to many: encoded for a dialect when the first who speaks it is met. */
struct broadcast {
    const struct message *message;
    struct blob *blobs[DIALECT_SLOT_COUNT];
};

void encoder_init(struct encoder *encoder);
void encoder_free(struct encoder *encoder);

/* A new reference; NULL when memory is short. */
struct blob *encoder_encode(struct encoder *encoder, const struct dialect *dialect,
                            const struct message *message);

/* As above for a heartbeat_ack without id. */
struct blob *encoder_heartbeat_ack(struct encoder *encoder, const struct dialect *dialect,
                                   int64_t server_time_ms);

/* A new reference to what a blob of text frames is in this dialect, the same or, packed, another; NULL when
 * memory is short. */
struct blob *encoder_translate(struct encoder *encoder, const struct dialect *dialect,
                               struct blob *text);

/* Whether bytes that come from elsewhere could be a blob's: whole frames of text, at least one. */
bool encoder_wrote(struct slice frames);

/* The offset in a blob of an event; 0: it has none. */
uint64_t encoder_offset_of(const struct blob *blob);

/* From now on offsets are beyond this one. */
void encoder_pass(struct encoder *encoder, uint64_t offset);

/* Gives an event that was encoded before, maybe elsewhere, an offset of this encoder's. The blob is not shared
 * yet. */
void encoder_restamp(struct encoder *encoder, struct blob *blob);

/* Borrowed; lasts until broadcast_end(). NULL when memory is short. */
struct blob *broadcast_blob(struct broadcast *broadcast, struct encoder *encoder,
                            const struct dialect *dialect);
void broadcast_end(struct broadcast *broadcast);

#endif
