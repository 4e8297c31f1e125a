#include "socketio/codec/socketio_offset.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OFFSET_DIGITS = 16, OFFSET_END_BYTES = 2 /* a quote and the closing bracket */ };

void socketio_offset_append(struct buffer *event, uint64_t offset)
{
    event->len--;
    buffer_printf(event, ",\"%016" PRIx64 "\"]", offset);
}

uint64_t socketio_offset_of(const struct blob *blob)
{
    char digits[OFFSET_DIGITS + 1] = {0};
    if (blob->len < OFFSET_DIGITS + OFFSET_END_BYTES + 1)
        return 0;
    const char *end = blob->bytes + blob->len;
    const char *start = end - OFFSET_END_BYTES - OFFSET_DIGITS;
    memcpy(digits, start, OFFSET_DIGITS);
    bool is_quoted = end[-1] == ']' && end[-2] == '"' && start[-1] == '"';
    return is_quoted ? strtoull(digits, NULL, 16) : 0;
}

void socketio_offset_replace(struct blob *blob, uint64_t offset)
{
    char digits[OFFSET_DIGITS + 1];
    assert(blob->refs == 1 && socketio_offset_of(blob));
    snprintf(digits, sizeof(digits), "%016" PRIx64, offset);
    memcpy(blob->bytes + blob->len - OFFSET_END_BYTES - OFFSET_DIGITS, digits, OFFSET_DIGITS);
}

bool socketio_offset_parse(struct slice text, uint64_t *out)
{
    static const char DIGITS[] = "0123456789abcdef";
    uint64_t offset = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *digit = memchr(DIGITS, text.data[i], sizeof(DIGITS) - 1);
        if (!digit)
            return false;
        offset = offset << 4 | (uint64_t)(digit - DIGITS);
    }
    *out = offset;
    return text.len == OFFSET_DIGITS;
}
