#include "text/utf8.h"

/* Inside a character the state holds the number of missing bytes and the range of the next one. */
#define DUE(count, min, max) ((uint32_t)(count) | (uint32_t)(min) << 8 | (uint32_t)(max) << 16)
#define DUE_COUNT(state) ((state)&0xff)
#define DUE_MIN(state) ((state) >> 8 & 0xff)
#define DUE_MAX(state) ((state) >> 16 & 0xff)

/* An empty range, so a refusal lasts. */
#define REFUSED DUE(1, 0xff, 0x00)

#define HIGH_BITS UINT64_C(0x8080808080808080)

static bool utf8_word_is_ascii(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return (word & HIGH_BITS) == 0;
}

/* Returns the first byte that is not ASCII, or `end`. The last, incomplete word is read as the last
 * eight bytes of the text, which costs one load instead of a loop over bytes. */
static const unsigned char *utf8_skip_ascii(const unsigned char *at, const unsigned char *end)
{
    if (end - at >= 8) {
        while (end - at >= 8 && utf8_word_is_ascii(at))
            at += 8;
        if (end - at < 8 && utf8_word_is_ascii(end - 8))
            return end;
    }
    while (at < end && *at < 0x80)
        at++;
    return at;
}

static uint32_t utf8_state_after_lead(unsigned char byte)
{
    if (byte < 0xc2)
        return REFUSED;
    if (byte < 0xe0)
        return DUE(1, 0x80, 0xbf);
    if (byte < 0xf0)
        return DUE(2, byte == 0xe0 ? 0xa0 : 0x80, byte == 0xed ? 0x9f : 0xbf);
    if (byte < 0xf5)
        return DUE(3, byte == 0xf0 ? 0x90 : 0x80, byte == 0xf4 ? 0x8f : 0xbf);
    return REFUSED;
}

static uint32_t utf8_state_after_continuation(uint32_t state, unsigned char byte)
{
    if (byte < DUE_MIN(state) || byte > DUE_MAX(state))
        return REFUSED;
    return DUE_COUNT(state) == 1 ? 0 : DUE(DUE_COUNT(state) - 1, 0x80, 0xbf);
}

bool utf8_add(struct utf8 *utf8, const char *data, size_t len)
{
    const unsigned char *at = (const unsigned char *)data;
    const unsigned char *end = at + len;
    uint32_t state = utf8->state;
    while (at < end && state != REFUSED) {
        if (state != 0)
            state = utf8_state_after_continuation(state, *at++);
        else if (*at < 0x80)
            at = utf8_skip_ascii(at, end);
        else
            state = utf8_state_after_lead(*at++);
    }
    utf8->state = state;
    return state != REFUSED;
}

bool utf8_valid(struct slice text)
{
    struct utf8 utf8 = UTF8_INIT;
    return utf8_add(&utf8, text.data, text.len) && utf8_complete(&utf8);
}
