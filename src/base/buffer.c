#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUFFER_CAP_MIN = 64 };

static bool buffer_grow(struct buffer *buffer, size_t cap_min)
{
    size_t cap = buffer->cap ? buffer->cap : BUFFER_CAP_MIN;
    while (cap < cap_min)
        cap *= 2;
    char *data = realloc(buffer->data, cap);
    if (!data) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->cap = cap;
    return true;
}

bool buffer_reserve(struct buffer *buffer, size_t extra)
{
    if (buffer->failed)
        return false;
    size_t len_max = buffer->max ? buffer->max : SIZE_MAX / 4;
    if (buffer->len > len_max || extra > len_max - buffer->len) {
        buffer->failed = true;
        return false;
    }
    return buffer->len + extra <= buffer->cap || buffer_grow(buffer, buffer->len + extra);
}

void buffer_append(struct buffer *buffer, const void *data, size_t len)
{
    if (len == 0 || !buffer_reserve(buffer, len))
        return;
    memcpy(buffer->data + buffer->len, data, len);
    buffer->len += len;
}

void buffer_append_byte(struct buffer *buffer, char byte)
{
    if (buffer_reserve(buffer, 1))
        buffer->data[buffer->len++] = byte;
}

void buffer_append_uint(struct buffer *buffer, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    buffer_append(buffer, digits + at, sizeof(digits) - at);
}

void buffer_append_int(struct buffer *buffer, int64_t value)
{
    if (value < 0)
        buffer_append_byte(buffer, '-');
    buffer_append_uint(buffer, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list measured;
    va_copy(measured, args);
    int measure = vsnprintf(NULL, 0, format, measured);
    va_end(measured);
    size_t len = measure < 0 ? SIZE_MAX : (size_t)measure;
    /* The terminator needs memory but does not count towards the bound. */
    if (buffer_reserve(buffer, len) &&
        (buffer->len + len < buffer->cap || buffer_grow(buffer, buffer->len + len + 1))) {
        vsnprintf(buffer->data + buffer->len, len + 1, format, args);
        buffer->len += len;
    }
    va_end(args);
}

void buffer_consume(struct buffer *buffer, size_t count)
{
    if (count >= buffer->len) {
        buffer->len = 0;
        return;
    }
    memmove(buffer->data, buffer->data + count, buffer->len - count);
    buffer->len -= count;
}

void buffer_clear(struct buffer *buffer)
{
    buffer->len = 0;
    buffer->failed = false;
}

char *buffer_detach(struct buffer *buffer, size_t *len)
{
    char *data = buffer->data;
    *len = buffer->len;
    *buffer = (struct buffer){.max = buffer->max};
    return data;
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){.max = buffer->max};
}
