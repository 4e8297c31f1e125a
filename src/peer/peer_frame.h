/*
 * Frames of a peer link: a 4-byte big-endian length and that many bytes. A codec without I/O, for whatever
 * bytes have come.
 */
#ifndef ROLLCALL_PEER_PEER_FRAME_H
#define ROLLCALL_PEER_PEER_FRAME_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    PEER_FRAME_BYTES_MAX = 16 << 20,
    PEER_FRAME_LENGTH_BYTES = 4,
};

enum peer_frame_result {
    PEER_FRAME_WHOLE,
    PEER_FRAME_INCOMPLETE, /* the rest has not come yet */
    PEER_FRAME_TOO_LONG,
};

/* Appends one frame of all pieces. False: it is too long, or there is no room; then nothing is appended. */
bool peer_frame_write(struct buffer *out, const struct slice *pieces, size_t count);

/* Takes the frame at the front of the input, which is moved behind it; `frame` points into the input. Neither is
 * touched unless it is whole. */
enum peer_frame_result peer_frame_take(struct slice *input, struct slice *frame);

#endif
