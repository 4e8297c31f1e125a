#include "frame.h"

#include <assert.h>

#define MASK_BYTES 4
#define FINAL_BIT 0x80
#define MASKED_BIT 0x80
#define LENGTH_16_BITS 126
#define LENGTH_64_BITS 127

void frame_encode(struct frame *frame, enum frame_opcode opcode, const char *payload, size_t count)
{
    static const char mask[MASK_BYTES] = {0x37, 0x1a, 0x5c, 0x29};
    assert(count <= FRAME_PAYLOAD_BYTES_MAX);
    size_t at = 0;
    frame->bytes[at++] = (char)(FINAL_BIT | opcode);
    if (count < LENGTH_16_BITS) {
        frame->bytes[at++] = (char)(MASKED_BIT | count);
    } else {
        frame->bytes[at++] = (char)(MASKED_BIT | LENGTH_16_BITS);
        frame->bytes[at++] = (char)(count >> 8);
        frame->bytes[at++] = (char)count;
    }
    for (size_t i = 0; i < MASK_BYTES; i++)
        frame->bytes[at++] = mask[i];
    for (size_t i = 0; i < count; i++)
        frame->bytes[at++] = payload[i] ^ mask[i % MASK_BYTES];
    frame->count = at;
}

int frame_decode(const char *bytes, size_t count, struct frame_view *view)
{
    if (count < 2)
        return 0;
    uint8_t length_byte = (uint8_t)bytes[1];
    if (!((uint8_t)bytes[0] & FINAL_BIT) || length_byte >= LENGTH_64_BITS)
        return -1;
    size_t header_bytes = 2;
    size_t payload_bytes = length_byte;
    if (length_byte == LENGTH_16_BITS) {
        if (count < 4)
            return 0;
        header_bytes = 4;
        payload_bytes = (size_t)(uint8_t)bytes[2] << 8 | (uint8_t)bytes[3];
    }
    if (count < header_bytes + payload_bytes)
        return 0;
    *view = (struct frame_view){.opcode = (uint8_t)bytes[0] & 0x0f,
                                .payload = bytes + header_bytes,
                                .payload_bytes = payload_bytes,
                                .total_bytes = header_bytes + payload_bytes};
    return 1;
}
