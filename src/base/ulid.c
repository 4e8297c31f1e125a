#include "base/ulid.h"

enum { ULID_TIME_BYTES = 6 };

static const char ulid_alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

struct ulid ulid_make(int64_t wall_ms, struct random *random)
{
    const int64_t wall_ms_max = ((int64_t)1 << 8 * ULID_TIME_BYTES) - 1;
    if (wall_ms < 0)
        wall_ms = 0;
    if (wall_ms > wall_ms_max)
        wall_ms = wall_ms_max;
    struct ulid ulid;
    for (int i = 0; i < ULID_TIME_BYTES; i++)
        ulid.bytes[i] = (uint8_t)(wall_ms >> 8 * (ULID_TIME_BYTES - 1 - i));
    random_bytes(random, ulid.bytes + ULID_TIME_BYTES, sizeof(ulid.bytes) - ULID_TIME_BYTES);
    return ulid;
}

/* 26 characters hold 130 bits; the two extra bits are the highest ones and are zero. */
void ulid_write(char out[ULID_TEXT_LEN], const struct ulid *ulid)
{
    unsigned bits = 0;
    unsigned bit_count = 2;
    for (size_t i = 0; i < sizeof(ulid->bytes); i++) {
        bits = (bits << 8 | ulid->bytes[i]) & 0xffff;
        for (bit_count += 8; bit_count >= 5; bit_count -= 5)
            *out++ = ulid_alphabet[bits >> (bit_count - 5) & 31];
    }
}

/* Returns the value of a character, or a number above 31 if it is outside the alphabet.
 * Crockford also reads I, L and O as digits; we do not, since an identifier must have one spelling
 * (apart from case). */
static unsigned ulid_digit_value(char character)
{
    static const uint8_t letters[26] = {10, 11, 12, 13, 14, 15, 16, 17, 32, 18, 19, 32, 20,
                                        21, 32, 22, 23, 24, 25, 26, 32, 27, 28, 29, 30, 31};
    if (character >= '0' && character <= '9')
        return (unsigned)(character - '0');
    char upper = (char)(character & ~0x20);
    return upper >= 'A' && upper <= 'Z' ? letters[upper - 'A'] : 32;
}

bool ulid_parse(struct slice text, struct ulid *out)
{
    if (text.len != ULID_TEXT_LEN || ulid_digit_value(text.data[0]) > 7)
        return false;
    uint8_t *to = out->bytes;
    unsigned bits = 0;
    unsigned bit_count = 0;
    for (size_t i = 0; i < ULID_TEXT_LEN; i++) {
        unsigned value = ulid_digit_value(text.data[i]);
        if (value > 31)
            return false;
        bits = (bits << 5 | value) & 0xffff;
        bit_count += i == 0 ? 3 : 5;
        if (bit_count >= 8) {
            bit_count -= 8;
            *to++ = (uint8_t)(bits >> bit_count);
        }
    }
    return true;
}
