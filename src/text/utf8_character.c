#include "text/utf8_character.h"

#include <assert.h>
#include <stdbool.h>

static bool is_utf8_continuation(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* Only the range of the second byte depends on the first. It excludes overlong forms (after E0 and
 * F0), surrogates (ED) and code points that are too large (F4). */
static bool is_utf8_second_byte(unsigned char first, unsigned char second)
{
    unsigned char min = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char max = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return second >= min && second <= max;
}

size_t utf8_character_len(const char *at, size_t len)
{
    const unsigned char *byte = (const unsigned char *)at;
    if (len == 0)
        return 0;
    if (byte[0] < 0x80)
        return 1;
    if (byte[0] < 0xc2 || byte[0] > 0xf4 || len < 2 || !is_utf8_second_byte(byte[0], byte[1]))
        return 0;
    if (byte[0] < 0xe0)
        return 2;
    if (len < 3 || !is_utf8_continuation(byte[2]))
        return 0;
    if (byte[0] < 0xf0)
        return 3;
    return len >= 4 && is_utf8_continuation(byte[3]) ? 4 : 0;
}

size_t utf8_character_write(char *out, uint32_t code_point)
{
    static const unsigned char leads[] = {0x00, 0xc0, 0xe0, 0xf0};
    assert(code_point <= 0x10ffff && (code_point < 0xd800 || code_point > 0xdfff));
    size_t later = (size_t)(code_point >= 0x80) + (code_point >= 0x800) + (code_point >= 0x10000);
    for (size_t i = later; i > 0; i--) {
        out[i] = (char)(0x80 | (code_point & 0x3f));
        code_point >>= 6;
    }
    out[0] = (char)(leads[later] | code_point);
    return later + 1;
}
