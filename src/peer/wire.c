#include "peer/wire.h"

#include <string.h>

enum { BITS = 7, MORE = 1 << BITS, NUMBER_BYTES_MAX = 10 };

struct wire wire_writing(struct buffer *out)
{
    return (struct wire){.out = out};
}

struct wire wire_reading(struct slice in, wire_alloc alloc, void *alloc_arg)
{
    return (struct wire){.in = in, .alloc = alloc, .alloc_arg = alloc_arg};
}

bool wire_end(const struct wire *wire)
{
    return wire->out ? !wire->failed && !wire->out->failed : !wire->failed && wire->in.len == 0;
}

void wire_fail(struct wire *wire)
{
    wire->failed = true;
    wire->in = SLICE_NONE;
}

/* ---- numbers ---- */

/* Accepts only the shortest form of a number that fits into 64 bits. */
static bool read_wire_number(struct slice *in, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < in->len && i < NUMBER_BYTES_MAX; i++) {
        uint64_t byte = (unsigned char)in->data[i];
        if (i == NUMBER_BYTES_MAX - 1 && byte > 1)
            return false;
        *value |= (byte & (MORE - 1)) << (BITS * i);
        if (byte & MORE)
            continue;
        *in = slice_after(*in, i + 1);
        return byte != 0 || i == 0;
    }
    return false;
}

void wire_number(struct wire *wire, uint64_t *value, uint64_t max)
{
    if (wire->out) {
        uint64_t left = *value;
        for (; left >= MORE; left >>= BITS)
            buffer_append_byte(wire->out, (char)(left | MORE));
        buffer_append_byte(wire->out, (char)left);
        return;
    }
    if (!wire->failed && read_wire_number(&wire->in, value) && *value <= max)
        return;
    *value = 0;
    wire_fail(wire);
}

void wire_count(struct wire *wire, uint32_t *value, uint32_t max)
{
    uint64_t number = *value;
    wire_number(wire, &number, max);
    if (!wire->out)
        *value = (uint32_t)number;
}

void wire_signed(struct wire *wire, int64_t *value)
{
    uint64_t sign = *value < 0 ? UINT64_MAX : 0;
    uint64_t number = ((uint64_t)*value << 1) ^ sign;
    wire_number(wire, &number, UINT64_MAX);
    if (!wire->out)
        *value = (int64_t)((number >> 1) ^ (number & 1 ? UINT64_MAX : 0));
}

void wire_choice(struct wire *wire, unsigned *value, unsigned count)
{
    wire_count(wire, value, count - 1);
}

void wire_bool(struct wire *wire, bool *value)
{
    unsigned number = *value;
    wire_choice(wire, &number, 2);
    if (!wire->out)
        *value = number == 1;
}

/* ---- texts and lists ---- */

void wire_text(struct wire *wire, struct slice *text, size_t bytes_min, size_t bytes_max)
{
    uint64_t len = text->len;
    wire_number(wire, &len, bytes_max);
    if (wire->out) {
        buffer_append_slice(wire->out, *text);
        return;
    }
    *text = SLICE_NONE;
    if (len > wire->in.len || len < bytes_min) {
        wire_fail(wire);
        return;
    }
    if (len > 0)
        *text = slice_first(wire->in, len);
    wire->in = slice_after(wire->in, len);
}

void wire_bytes(struct wire *wire, void *bytes, size_t len)
{
    if (wire->out) {
        buffer_append(wire->out, bytes, len);
        return;
    }
    memset(bytes, 0, len);
    if (len > wire->in.len) {
        wire_fail(wire);
        return;
    }
    memcpy(bytes, wire->in.data, len);
    wire->in = slice_after(wire->in, len);
}

void wire_rest(struct wire *wire, struct slice *rest)
{
    if (wire->out) {
        buffer_append_slice(wire->out, *rest);
        return;
    }
    *rest = wire->in;
    wire->in = SLICE_NONE;
}

bool wire_list(struct wire *wire, const void **items, size_t *count, size_t item_bytes,
               size_t count_max)
{
    uint64_t number = *count;
    wire_number(wire, &number, count_max);
    if (wire->out)
        return number > 0;
    *items = NULL;
    *count = 0;
    if (number > wire->in.len)
        wire_fail(wire);
    if (wire->failed || number == 0)
        return false;
    void *memory = wire->alloc ? wire->alloc(wire->alloc_arg, number * item_bytes) : NULL;
    if (!memory) {
        wire_fail(wire);
        return false;
    }
    *items = memset(memory, 0, number * item_bytes);
    *count = number;
    return true;
}

void wire_ids(struct wire *wire, const struct slice **ids, size_t *count, size_t count_max,
              size_t bytes_max)
{
    const void *items = *ids;
    if (wire_list(wire, &items, count, sizeof(**ids), count_max))
        for (size_t i = 0; i < *count; i++)
            wire_text(wire, (struct slice *)items + i, 1, bytes_max);
    if (!wire->out)
        *ids = items;
}
