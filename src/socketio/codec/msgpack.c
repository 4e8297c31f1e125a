#include "socketio/codec/msgpack.h"

#include <string.h>

/* First bytes. The lowest and the highest carry a value or a length in their low bits; FORMATS lists those
 * between. */
enum {
    FIXMAP = 0x80,
    FIXARRAY = 0x90,
    FIXSTR = 0xa0,
    NIL = 0xc0,
    FALSE = 0xc2,
    FLOAT64 = 0xcb,
    UINT8 = 0xcc,
    INT8 = 0xd0,
    FIXEXT1 = 0xd4,
    STR8 = 0xd9,
    ARRAY32 = 0xdd,
    MAP32 = 0xdf,
    FIXINT_NEGATIVE = 0xe0,
};

enum { COUNT_BYTES = 4, FIXARRAY_MAX = 15, FIXSTR_MAX = 31, FIXINT_MAX = 127, FIXINT_MIN = -32 };

struct format {
    uint8_t type;         /* enum msgpack_type; INVALID for the one unused byte */
    uint8_t number_bytes; /* of the value or the length that follows */
};

static const struct format FORMATS[FIXINT_NEGATIVE - NIL] = {
    {MSGPACK_NIL, 0},       {MSGPACK_INVALID, 0},   {MSGPACK_BOOLEAN, 0},   {MSGPACK_BOOLEAN, 0},
    {MSGPACK_BINARY, 1},    {MSGPACK_BINARY, 2},    {MSGPACK_BINARY, 4},    {MSGPACK_EXTENSION, 1},
    {MSGPACK_EXTENSION, 2}, {MSGPACK_EXTENSION, 4}, {MSGPACK_REAL, 4},      {MSGPACK_REAL, 8},
    {MSGPACK_NATURAL, 1},   {MSGPACK_NATURAL, 2},   {MSGPACK_NATURAL, 4},   {MSGPACK_NATURAL, 8},
    {MSGPACK_INTEGER, 1},   {MSGPACK_INTEGER, 2},   {MSGPACK_INTEGER, 4},   {MSGPACK_INTEGER, 8},
    {MSGPACK_EXTENSION, 0}, {MSGPACK_EXTENSION, 0}, {MSGPACK_EXTENSION, 0}, {MSGPACK_EXTENSION, 0},
    {MSGPACK_EXTENSION, 0}, {MSGPACK_STRING, 1},    {MSGPACK_STRING, 2},    {MSGPACK_STRING, 4},
    {MSGPACK_ARRAY, 2},     {MSGPACK_ARRAY, 4},     {MSGPACK_MAP, 2},       {MSGPACK_MAP, 4},
};

/* ---- reading ---- */

static bool take_msgpack_bytes(struct slice *rest, size_t len, struct slice *taken)
{
    if (len > rest->len)
        return false;
    *taken = (struct slice){rest->data, len};
    *rest = (struct slice){rest->data + len, rest->len - len};
    return true;
}

static bool take_msgpack_number(struct slice *rest, size_t len, uint64_t *number)
{
    struct slice bytes;
    *number = 0;
    if (!take_msgpack_bytes(rest, len, &bytes))
        return false;
    for (size_t i = 0; i < len; i++)
        *number = *number << 8 | (uint8_t)bytes.data[i];
    return true;
}

static int64_t msgpack_integer_of(uint64_t number, size_t len)
{
    switch (len) {
    case 1:
        return (int8_t)number;
    case 2:
        return (int16_t)number;
    case 4:
        return (int32_t)number;
    default:
        return (int64_t)number;
    }
}

static double msgpack_real_of(uint64_t bits, size_t len)
{
    uint32_t single_bits = (uint32_t)bits;
    float single;
    double real;
    memcpy(&single, &single_bits, sizeof(single));
    memcpy(&real, &bits, sizeof(real));
    return len == sizeof(single) ? (double)single : real;
}

/* The number means a length, a count or the value itself, depending on the format. */
static bool take_msgpack_value(struct slice *rest, struct format format, uint64_t number,
                               struct msgpack_item *out)
{
    uint64_t extension;
    out->type = (enum msgpack_type)format.type;
    switch (out->type) {
    case MSGPACK_BOOLEAN:
        out->boolean = number;
        return true;
    case MSGPACK_NATURAL:
        out->natural = number;
        return true;
    case MSGPACK_INTEGER:
        out->integer = msgpack_integer_of(number, format.number_bytes);
        return true;
    case MSGPACK_REAL:
        out->real = msgpack_real_of(number, format.number_bytes);
        return true;
    case MSGPACK_STRING:
    case MSGPACK_BINARY:
        return take_msgpack_bytes(rest, (size_t)number, &out->bytes);
    case MSGPACK_EXTENSION:
        if (!take_msgpack_number(rest, 1, &extension))
            return false;
        if (extension == 0 && number == 1)
            out->type = MSGPACK_UNDEFINED;
        return take_msgpack_bytes(rest, (size_t)number, &out->bytes);
    case MSGPACK_ARRAY:
        out->count = (uint32_t)number;
        return number <= rest->len;
    case MSGPACK_MAP:
        out->count = (uint32_t)number;
        return number <= rest->len / 2;
    default:
        return out->type != MSGPACK_INVALID;
    }
}

bool msgpack_read(struct slice *rest, struct msgpack_item *out)
{
    uint64_t number;
    if (!take_msgpack_number(rest, 1, &number))
        return false;
    uint8_t first = (uint8_t)number;
    if (first < FIXMAP)
        return take_msgpack_value(rest, (struct format){MSGPACK_NATURAL, 1}, first, out);
    if (first < FIXARRAY)
        return take_msgpack_value(rest, (struct format){MSGPACK_MAP, 0}, first - FIXMAP, out);
    if (first < FIXSTR)
        return take_msgpack_value(rest, (struct format){MSGPACK_ARRAY, 0}, first - FIXARRAY, out);
    if (first < NIL)
        return take_msgpack_value(rest, (struct format){MSGPACK_STRING, 0}, first - FIXSTR, out);
    if (first >= FIXINT_NEGATIVE)
        return take_msgpack_value(rest, (struct format){MSGPACK_INTEGER, 1}, first, out);
    struct format format = FORMATS[first - NIL];
    if (!take_msgpack_number(rest, format.number_bytes, &number))
        return false;
    if (format.type == MSGPACK_EXTENSION && format.number_bytes == 0)
        number = 1ULL << (first - FIXEXT1);
    else if (format.type == MSGPACK_BOOLEAN)
        number = first - FALSE;
    return take_msgpack_value(rest, format, number, out);
}

bool msgpack_skip(struct slice *rest)
{
    struct msgpack_item item;
    for (uint64_t due = 1; due > 0; due--) {
        if (due > rest->len || !msgpack_read(rest, &item))
            return false;
        if (item.type == MSGPACK_ARRAY)
            due += item.count;
        else if (item.type == MSGPACK_MAP)
            due += 2 * (uint64_t)item.count;
    }
    return true;
}

/* ---- writing ---- */

static void write_msgpack_number(struct buffer *out, uint8_t first, uint64_t number, size_t len)
{
    char bytes[1 + sizeof(number)] = {(char)first};
    for (size_t i = len; i > 0; i--) {
        bytes[i] = (char)number;
        number >>= 8;
    }
    buffer_append(out, bytes, 1 + len);
}

void msgpack_write_nil(struct buffer *out)
{
    buffer_append_byte(out, (char)NIL);
}

void msgpack_write_bool(struct buffer *out, bool value)
{
    buffer_append_byte(out, (char)(FALSE + value));
}

/* The formats of a kind with 1, 2, 4 and 8 bytes have consecutive first bytes. */
void msgpack_write_int(struct buffer *out, int64_t value)
{
    uint8_t width = 0; /* log2 of the bytes */
    if (value >= FIXINT_MIN && value <= FIXINT_MAX) {
        buffer_append_byte(out, (char)value);
        return;
    }
    if (value >= 0) {
        while (width < 3 && (uint64_t)value >> (8 << width))
            width++;
        write_msgpack_number(out, (uint8_t)(UINT8 + width), (uint64_t)value, 1U << width);
        return;
    }
    while (width < 3 && value < -(1LL << ((8 << width) - 1)))
        width++;
    write_msgpack_number(out, (uint8_t)(INT8 + width), (uint64_t)value, 1U << width);
}

void msgpack_write_double(struct buffer *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    write_msgpack_number(out, FLOAT64, bits, sizeof(bits));
}

void msgpack_write_string(struct buffer *out, struct slice value)
{
    if (value.len <= FIXSTR_MAX)
        buffer_append_byte(out, (char)(FIXSTR + value.len));
    else if (value.len <= UINT8_MAX)
        write_msgpack_number(out, STR8, value.len, 1);
    else if (value.len <= UINT16_MAX)
        write_msgpack_number(out, STR8 + 1, value.len, 2);
    else
        write_msgpack_number(out, STR8 + 2, value.len, 4);
    buffer_append_slice(out, value);
}

size_t msgpack_write_open(struct buffer *out, enum msgpack_type type)
{
    size_t opened_at = out->len;
    write_msgpack_number(out, type == MSGPACK_MAP ? MAP32 : ARRAY32, 0, COUNT_BYTES);
    return opened_at;
}

/* A short container needs a head of only one byte, so its elements move up. */
void msgpack_write_close(struct buffer *out, size_t opened_at, uint32_t count)
{
    if (out->failed)
        return;
    char *head = out->data + opened_at;
    bool is_map = (uint8_t)head[0] == MAP32;
    if (count > FIXARRAY_MAX) {
        for (unsigned i = 0; i < COUNT_BYTES; i++)
            head[1 + i] = (char)(count >> (24 - 8 * i));
        return;
    }
    head[0] = (char)((is_map ? FIXMAP : FIXARRAY) + (int)count);
    memmove(head + 1, head + 1 + COUNT_BYTES, out->len - opened_at - 1 - COUNT_BYTES);
    out->len -= COUNT_BYTES;
}
