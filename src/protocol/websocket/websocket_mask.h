/*
 * The masking of WebSocket payloads: each byte is exclusive-ored with one of four mask bytes, which
 * repeat.
 *
 * Masking is its own inverse, so clients mask with the same function. A mask is kept in the byte order of the
 * wire, which makes all of this independent of endianness. Pure functions on the caller's memory.
 */
#ifndef ROLLCALL_PROTOCOL_WEBSOCKET_WEBSOCKET_MASK_H
#define ROLLCALL_PROTOCOL_WEBSOCKET_WEBSOCKET_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct websocket_mask {
    uint8_t bytes[4];
};

/* The mask of a server's frames, which changes nothing. */
#define WEBSOCKET_UNMASKED ((struct websocket_mask){{0, 0, 0, 0}})

static inline struct websocket_mask websocket_mask_of(const uint8_t *bytes)
{
    struct websocket_mask mask;
    memcpy(mask.bytes, bytes, sizeof mask.bytes);
    return mask;
}

/* The mask for the bytes that follow the first `count`. */
static inline struct websocket_mask websocket_mask_after(struct websocket_mask mask, size_t count)
{
    struct websocket_mask after;
    for (size_t i = 0; i < 4; i++)
        after.bytes[i] = mask.bytes[(i + count) % 4];
    return after;
}

/* Masks or unmasks in place. Returns whether the result is all ASCII, which costs nothing to find out and spares
 * the caller a second pass over nearly every text. */
static inline bool websocket_unmask(char *data, size_t len, struct websocket_mask mask)
{
    uint32_t mask4;
    uint32_t word4;
    uint64_t word;
    uint64_t seen = 0;
    memcpy(&mask4, mask.bytes, 4);
    const uint64_t mask8 = mask4 | (uint64_t)mask4 << 32;
    for (; len >= 8; data += 8, len -= 8) {
        memcpy(&word, data, 8);
        word ^= mask8;
        seen |= word;
        memcpy(data, &word, 8);
    }
    if (len & 4) {
        memcpy(&word4, data, 4);
        word4 ^= mask4;
        seen |= word4;
        memcpy(data, &word4, 4);
        data += 4;
    }
    for (size_t i = 0; i < (len & 3); i++) {
        data[i] = (char)(data[i] ^ mask.bytes[i]);
        seen |= (unsigned char)data[i];
    }
    return (seen & UINT64_C(0x8080808080808080)) == 0;
}

#endif
