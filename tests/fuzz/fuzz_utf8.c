/*
 * Compares the UTF-8 validator with a decoder that is obviously right: it computes the code point. Also: any
 * split gives the same result, and a byte is refused exactly if no valid text continues with it.
 *
 * Input: one byte of split seed, then the text.
 */
#include "fuzz.h"
#include "text/utf8.h"

#define PREFIX_BYTES_MAX 64

static size_t sequence_length(uint8_t lead)
{
    return lead < 0x80         ? 1
           : lead >> 5 == 0x6  ? 2
           : lead >> 4 == 0xe  ? 3
           : lead >> 3 == 0x1e ? 4
                               : 0;
}

/* Returns the length of the valid character at the start of `text`, or 0. */
static size_t reference_character(const uint8_t *text, size_t len)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = len ? sequence_length(text[0]) : 0;
    if (length == 0 || length > len)
        return 0;
    uint32_t point = length == 1 ? text[0] : text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (text[i] >> 6 != 0x2)
            return 0;
        point = point << 6 | (text[i] & 0x3f);
    }
    bool surrogate = point >= 0xd800 && point <= 0xdfff;
    return point < smallest[length] || point > 0x10ffff || surrogate ? 0 : length;
}

/* Returns how many bytes at the start of the text are complete valid characters. */
static size_t reference_valid_bytes(const uint8_t *text, size_t len)
{
    size_t at = 0;
    size_t length;
    while ((length = reference_character(text + at, len - at)) > 0)
        at += length;
    return at;
}

/* Returns whether more bytes can complete this start of a character. Continuation bytes differ only in their
 * range, so it tries one of each range. */
static bool reference_can_continue(const uint8_t *start, size_t len)
{
    static const uint8_t ranges[] = {0x80, 0x90, 0xa0};
    uint8_t text[4];
    if (reference_character(start, len) == len)
        return true;
    if (len >= sizeof text)
        return false;
    memcpy(text, start, len);
    for (size_t i = 0; i < sizeof ranges; i++) {
        text[len] = ranges[i];
        if (reference_can_continue(text, len + 1))
            return true;
    }
    return false;
}

static void check_split(const uint8_t *text, size_t len, uint32_t seed, bool valid)
{
    struct utf8 utf8 = UTF8_INIT;
    bool fed = true;
    for (size_t at = 0; at < len;) {
        size_t piece = fuzz_piece(&seed, len - at);
        char *copy = fuzz_copy(text + at, piece);
        bool now = utf8_add(&utf8, copy, piece);
        free(copy);
        fuzz_require(fed || !now, "a refusal is final");
        fed = now;
        at += piece;
    }
    fuzz_require((fed && utf8_complete(&utf8)) == valid, "a split changes nothing");
}

static void check_earliest_refusal(const uint8_t *text, size_t len)
{
    size_t valid_bytes = reference_valid_bytes(text, len);
    for (size_t prefix = 0; prefix <= len; prefix++) {
        struct utf8 utf8 = UTF8_INIT;
        bool fed = utf8_add(&utf8, (const char *)text, prefix);
        bool possible = prefix <= valid_bytes ||
                        reference_can_continue(text + valid_bytes, prefix - valid_bytes);
        fuzz_require(fed == possible, "refused at the earliest byte, and not before");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const uint8_t *text = data + 1;
    size_t len = size - 1;
    bool valid = utf8_valid((struct slice){(const char *)text, len});
    fuzz_require(valid == (reference_valid_bytes(text, len) == len), "the reference agrees");
    check_split(text, len, data[0], valid);
    check_earliest_refusal(text, len < PREFIX_BYTES_MAX ? len : PREFIX_BYTES_MAX);
    return 0;
}
