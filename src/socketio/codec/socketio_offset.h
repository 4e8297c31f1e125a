/*
 * The offset of an event: its last argument, 16 hexadecimal digits in quotes. A client that comes back names the last
 * one it received (socketio_recovery.h). The encoder counts them (protocol/encoder.h). Pure functions; any thread.
 */
#ifndef ROLLCALL_SOCKETIO_CODEC_SOCKETIO_OFFSET_H
#define ROLLCALL_SOCKETIO_CODEC_SOCKETIO_OFFSET_H

#include "base/blob.h"
#include "base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

/* dialect.append_offset: adds the offset to the last event in the buffer, before the closing bracket. */
void socketio_offset_append(struct buffer *event, uint64_t offset);

/* The offset in an event's blob of text; 0: it has none. */
uint64_t socketio_offset_of(const struct blob *blob);

/* Overwrites the offset of an event that has one. The blob must not be shared yet. */
void socketio_offset_replace(struct blob *blob, uint64_t offset);

/* Reads an offset from a client. Returns false unless it has the form in which it is written. */
bool socketio_offset_parse(struct slice text, uint64_t *out);

#endif
