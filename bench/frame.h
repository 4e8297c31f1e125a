/*
 * The client's half of a WebSocket frame, for the load generator.
 *
 * Written separately from the server's codec on purpose: a mistake shared by both sides would not show.
 * A message that many clients send is encoded once and the same bytes are sent by all of them, so
 * that the generator stays cheaper than the servers it drives. The mask is fixed and not zero: the
 * server has to do the real unmasking.
 */
#ifndef ROLLCALL_BENCH_FRAME_H
#define ROLLCALL_BENCH_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_BYTES_MAX 4096
#define FRAME_PAYLOAD_BYTES_MAX (FRAME_BYTES_MAX - 8)

enum frame_opcode { FRAME_TEXT = 1, FRAME_CLOSE = 8, FRAME_PING = 9, FRAME_PONG = 10 };

/* One encoded client frame, ready to be sent any number of times. */
struct frame {
    size_t count;
    char bytes[FRAME_BYTES_MAX];
};

/* One server frame inside a read buffer; borrowed until the buffer is read into again. */
struct frame_view {
    uint8_t opcode;
    const char *payload;
    size_t payload_bytes;
    size_t total_bytes;
};

/* Encodes a masked, final frame. `count` is at most FRAME_PAYLOAD_BYTES_MAX. */
void frame_encode(struct frame *frame, enum frame_opcode opcode, const char *payload, size_t count);

/* Decodes the first frame of `bytes`. Returns 1 and a view, 0 if the frame is incomplete, -1 if no server
 * may send it (masked, fragmented, or a length of 64 bits). */
int frame_decode(const char *bytes, size_t count, struct frame_view *view);

#endif
