/* Frames of a peer link: a 4-byte big-endian length and that many bytes. A codec without I/O. */
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
    PEER_FRAME_INCOMPLETE, /* the rest has not arrived yet */
    PEER_FRAME_TOO_LONG,
};

/* Appends one frame made of all pieces. Returns false, having appended nothing, when it is too long or the
 * buffer is full. */
bool peer_frame_write(struct buffer *out, const struct slice *pieces, size_t count);

/* Takes the frame at the front of `input` and advances `input` behind it; `frame` points into the input.
 * Changes neither unless the frame is whole. */
enum peer_frame_result peer_frame_take(struct slice *input, struct slice *frame);

#endif
