#include "protocol/websocket/websocket_encode.h"

#include "protocol/websocket/websocket_frame.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

/* RFC 6455, 1.3: proves that the server supports the protocol. */
#define HANDSHAKE_SALT "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

static void websocket_write_big_endian(uint8_t *out, uint64_t value, size_t count)
{
    while (count-- > 0) {
        out[count] = (uint8_t)value;
        value >>= 8;
    }
}

size_t websocket_header_write(uint8_t out[WEBSOCKET_HEADER_BYTES_MAX], enum websocket_opcode opcode,
                              uint64_t payload_len)
{
    out[0] = (uint8_t)(WEBSOCKET_FRAME_FINAL | opcode);
    if (payload_len < WEBSOCKET_FRAME_LENGTH_IN_2_BYTES) {
        out[1] = (uint8_t)payload_len;
        return 2;
    }
    if (payload_len <= UINT16_MAX) {
        out[1] = WEBSOCKET_FRAME_LENGTH_IN_2_BYTES;
        websocket_write_big_endian(out + 2, payload_len, 2);
        return 4;
    }
    out[1] = WEBSOCKET_FRAME_LENGTH_IN_8_BYTES;
    websocket_write_big_endian(out + 2, payload_len, 8);
    return 10;
}

size_t websocket_masked_header_write(uint8_t out[WEBSOCKET_MASKED_HEADER_BYTES_MAX],
                                     enum websocket_opcode opcode, uint64_t payload_len,
                                     const uint8_t mask[4])
{
    size_t size = websocket_header_write(out, opcode, payload_len);
    out[1] |= WEBSOCKET_FRAME_MASKED;
    memcpy(out + size, mask, 4);
    return size + 4;
}

/* Finds the payload of the first frame. Returns false when the frame is incomplete. */
static bool websocket_find_payload(struct slice frames, struct slice *payload)
{
    const uint8_t *header = (const uint8_t *)frames.data;
    size_t header_len = 2, digits = 0;
    if (frames.len < header_len)
        return false;
    uint64_t len = header[1];
    if (len == WEBSOCKET_FRAME_LENGTH_IN_2_BYTES)
        digits = 2;
    else if (len == WEBSOCKET_FRAME_LENGTH_IN_8_BYTES)
        digits = 8;
    header_len += digits;
    if (frames.len < header_len)
        return false;
    if (digits)
        len = websocket_frame_big_endian(header + 2, digits);
    *payload = (struct slice){frames.data + header_len, (size_t)len};
    return len <= frames.len - header_len;
}

bool websocket_written_next(struct slice *frames, enum websocket_opcode *opcode,
                            struct slice *payload)
{
    if (frames->len == 0)
        return false;
    bool whole = websocket_find_payload(*frames, payload);
    assert(whole);
    (void)whole;
    *opcode = (enum websocket_opcode)(frames->data[0] & WEBSOCKET_FRAME_OPCODE);
    *frames = slice_after(*frames, (size_t)(payload->data - frames->data) + payload->len);
    return true;
}

bool websocket_written_is_text(struct slice frames)
{
    const uint8_t text = WEBSOCKET_FRAME_FINAL | WEBSOCKET_OPCODE_TEXT;
    struct slice payload;
    bool good = frames.len > 0;
    while (good && frames.len > 0) {
        good = (uint8_t)frames.data[0] == text && websocket_find_payload(frames, &payload);
        if (good)
            frames = slice_after(frames, (size_t)(payload.data - frames.data) + payload.len);
    }
    return good;
}

size_t websocket_close_write(char out[WEBSOCKET_CONTROL_BYTES_MAX], unsigned code,
                             struct slice reason)
{
    if (code == WEBSOCKET_CLOSE_NO_CODE)
        return 0;
    assert(websocket_close_code_valid(code));
    size_t len = reason.len;
    if (len > WEBSOCKET_CONTROL_BYTES_MAX - 2) {
        len = WEBSOCKET_CONTROL_BYTES_MAX - 2;
        while (len > 0 && ((unsigned char)reason.data[len] & 0xc0) == 0x80) /* inside a character */
            len--;
    }
    websocket_write_big_endian((uint8_t *)out, code, 2);
    if (len > 0)
        memcpy(out + 2, reason.data, len);
    return 2 + len;
}

static bool websocket_key_is_16_bytes(struct slice key)
{
    if (key.len != WEBSOCKET_KEY_BYTES || memcmp(key.data + 22, "==", 2) != 0)
        return false;
    for (size_t i = 0; i < 22; i++) {
        char c = key.data[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              c == '+' || c == '/'))
            return false;
    }
    return true;
}

bool websocket_accept_key(struct slice key, char out[WEBSOCKET_ACCEPT_BYTES + 1])
{
    unsigned char salted[WEBSOCKET_KEY_BYTES + sizeof HANDSHAKE_SALT - 1];
    unsigned char digest[SHA_DIGEST_LENGTH];
    if (!websocket_key_is_16_bytes(key))
        return false;
    memcpy(salted, key.data, WEBSOCKET_KEY_BYTES);
    memcpy(salted + WEBSOCKET_KEY_BYTES, HANDSHAKE_SALT, sizeof HANDSHAKE_SALT - 1);
    if (!SHA1(salted, sizeof salted, digest))
        return false;
    EVP_EncodeBlock((unsigned char *)out, digest, sizeof digest);
    return true;
}
