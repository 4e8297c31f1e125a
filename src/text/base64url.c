#include "text/base64url.h"

#include <stdint.h>

static const char base64url_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Returns the value of a character, or a number above 63 if it is outside the alphabet. */
static uint32_t base64url_digit_value(char character)
{
    if (character >= 'A' && character <= 'Z')
        return (uint32_t)(character - 'A');
    if (character >= 'a' && character <= 'z')
        return (uint32_t)(character - 'a') + 26;
    if (character >= '0' && character <= '9')
        return (uint32_t)(character - '0') + 52;
    if (character == '-')
        return 62;
    return character == '_' ? 63 : 64;
}

/* Decodes the two or three characters after the last whole group. The unused bits must be zero, or
 * several texts would mean the same bytes. */
static bool decode_base64url_tail(const char *text, size_t len, unsigned char *out)
{
    uint32_t bits = 0;
    uint32_t seen = 0;
    for (size_t i = 0; i < 3; i++) {
        uint32_t value = i < len ? base64url_digit_value(text[i]) : 0;
        seen |= value;
        bits = bits << 6 | value;
    }
    uint32_t unused = len == 2 ? 0x3ff : 0x3;
    if (seen > 63 || (bits & unused))
        return false;
    out[0] = (unsigned char)(bits >> 10);
    if (len == 3)
        out[1] = (unsigned char)(bits >> 2);
    return true;
}

bool base64url_decode(struct slice text, unsigned char *out, size_t *out_len)
{
    size_t tail = text.len % 4;
    if (tail == 1)
        return false;
    unsigned char *to = out;
    size_t tail_at = text.len - tail;
    for (size_t i = 0; i < tail_at; i += 4, to += 3) {
        const char *at = text.data + i;
        uint32_t a = base64url_digit_value(at[0]), b = base64url_digit_value(at[1]);
        uint32_t c = base64url_digit_value(at[2]), d = base64url_digit_value(at[3]);
        if ((a | b | c | d) > 63)
            return false;
        to[0] = (unsigned char)(a << 2 | b >> 4);
        to[1] = (unsigned char)(b << 4 | c >> 2);
        to[2] = (unsigned char)(c << 6 | d);
    }
    if (tail) {
        if (!decode_base64url_tail(text.data + tail_at, tail, to))
            return false;
        to += tail - 1;
    }
    *out_len = (size_t)(to - out);
    return true;
}

void base64url_encode(struct buffer *out, const void *data, size_t len)
{
    size_t text_len = len / 3 * 4 + (len % 3 ? len % 3 + 1 : 0);
    if (len == 0 || !buffer_reserve(out, text_len))
        return;
    const unsigned char *at = data;
    char *to = out->data + out->len;
    uint32_t bits = 0;
    unsigned bit_count = 0;
    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | at[i];
        for (bit_count += 8; bit_count >= 6; bit_count -= 6)
            *to++ = base64url_alphabet[bits >> (bit_count - 6) & 63];
    }
    if (bit_count)
        *to++ = base64url_alphabet[bits << (6 - bit_count) & 63];
    out->len += text_len;
}
