/*
 * The header of one WebSocket frame (RFC 6455, 5.2), read from contiguous bytes.
 *
 *    0      FIN RSV1-3 opcode(4)
 *    1      MASK length(7)         126: two bytes of length follow, 127: eight
 *    2..    length, big endian, in the shortest form that holds it
 *    ..     four bytes of mask, if MASK
 *
 * Pure functions, inline because they are the hottest path. A fault is a static text for the close frame (code
 * 1002); NULL means no fault. Private to websocket.c and websocket_encode.c.
 */
#ifndef ROLLCALL_PROTOCOL_WEBSOCKET_WEBSOCKET_FRAME_H
#define ROLLCALL_PROTOCOL_WEBSOCKET_WEBSOCKET_FRAME_H

#include "protocol/websocket/websocket.h"
#include "protocol/websocket/websocket_mask.h"

#define WEBSOCKET_FRAME_HEADER_BYTES_MAX 14
#define WEBSOCKET_FRAME_FINAL 0x80
#define WEBSOCKET_FRAME_RESERVED 0x70
#define WEBSOCKET_FRAME_OPCODE 0x0f
#define WEBSOCKET_FRAME_CONTROL 0x08
#define WEBSOCKET_FRAME_MASKED 0x80
#define WEBSOCKET_FRAME_LENGTH 0x7f
#define WEBSOCKET_FRAME_LENGTH_IN_2_BYTES 126
#define WEBSOCKET_FRAME_LENGTH_IN_8_BYTES 127

struct websocket_frame {
    uint64_t payload_len;
    struct websocket_mask mask;
    uint8_t opcode;
    bool final;
};

static inline bool websocket_frame_is_control(const struct websocket_frame *frame)
{
    return frame->opcode & WEBSOCKET_FRAME_CONTROL;
}

static inline const char *websocket_frame_control_fault(const uint8_t *header, size_t len)
{
    if ((header[0] & WEBSOCKET_FRAME_OPCODE) > WEBSOCKET_OPCODE_PONG)
        return "reserved opcode";
    if (!(header[0] & WEBSOCKET_FRAME_FINAL))
        return "fragmented control frame";
    if (len > 1 && (header[1] & WEBSOCKET_FRAME_LENGTH) > WEBSOCKET_CONTROL_BYTES_MAX)
        return "control frame too long";
    return NULL;
}

/* The fault in the first `len` (at least one) bytes of a header, so that a bad frame is refused before it is
 * complete. */
static inline const char *websocket_frame_fault(const uint8_t *header, size_t len,
                                                bool message_is_open, bool expects_masks)
{
    uint8_t opcode = header[0] & WEBSOCKET_FRAME_OPCODE;
    if (header[0] & WEBSOCKET_FRAME_RESERVED)
        return "reserved bit set";
    if (opcode & WEBSOCKET_FRAME_CONTROL) {
        const char *fault = websocket_frame_control_fault(header, len);
        if (fault)
            return fault;
    } else if (opcode > WEBSOCKET_OPCODE_BINARY) {
        return "reserved opcode";
    } else if (message_is_open != (opcode == WEBSOCKET_OPCODE_CONTINUATION)) {
        return message_is_open ? "new message inside a fragmented one"
                               : "continuation of no message";
    }
    if (len > 1 && !(header[1] & WEBSOCKET_FRAME_MASKED) == expects_masks)
        return expects_masks ? "frame not masked" : "frame masked";
    return NULL;
}

/* The size of the header, as far as its first `len` bytes determine it. */
static inline size_t websocket_frame_header_size(const uint8_t *header, size_t len)
{
    if (len < 2)
        return 2;
    size_t size = header[1] & WEBSOCKET_FRAME_MASKED ? 6 : 2;
    uint8_t length = header[1] & WEBSOCKET_FRAME_LENGTH;
    if (length < WEBSOCKET_FRAME_LENGTH_IN_2_BYTES)
        return size;
    return size + (length == WEBSOCKET_FRAME_LENGTH_IN_2_BYTES ? 2 : 8);
}

static inline uint64_t websocket_frame_big_endian(const uint8_t *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Reads a complete header of `size` bytes in which websocket_frame_fault() found none. */
static inline const char *websocket_frame_read(const uint8_t *header, size_t size,
                                               struct websocket_frame *frame)
{
    uint8_t length = header[1] & WEBSOCKET_FRAME_LENGTH;
    frame->opcode = header[0] & WEBSOCKET_FRAME_OPCODE;
    frame->final = header[0] & WEBSOCKET_FRAME_FINAL;
    frame->payload_len = length;
    frame->mask = header[1] & WEBSOCKET_FRAME_MASKED ? websocket_mask_of(header + size - 4)
                                                     : WEBSOCKET_UNMASKED;
    if (length < WEBSOCKET_FRAME_LENGTH_IN_2_BYTES)
        return NULL;
    bool in_2_bytes = length == WEBSOCKET_FRAME_LENGTH_IN_2_BYTES;
    frame->payload_len = websocket_frame_big_endian(header + 2, in_2_bytes ? 2 : 8);
    if (frame->payload_len >> 63)
        return "length of 2^63 or more";
    if (frame->payload_len < (in_2_bytes ? WEBSOCKET_FRAME_LENGTH_IN_2_BYTES : 0x10000))
        return "length not in its shortest form";
    return NULL;
}

#endif
