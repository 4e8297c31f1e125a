/*
 * A buffer is a growable array of bytes to write text into.
 *
 * Failure is sticky: when memory runs out, or `max` would be exceeded, `failed` is set and later
 * appends do nothing, so a writer checks once, at the end. The holder of the struct owns the memory
 * until buffer_free() or buffer_detach(). Not shared between threads.
 */
#ifndef ROLLCALL_BASE_BUFFER_H
#define ROLLCALL_BASE_BUFFER_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
    char *data;
    size_t len;
    size_t cap;
    size_t max; /* 0: bounded by memory only */
    bool failed;
};

#define BUFFER_INIT ((struct buffer){0})
#define BUFFER_BOUNDED(bytes_max) ((struct buffer){.max = (bytes_max)})

/* Reserves capacity for `extra` more bytes. Returns false (sticky) if that is impossible. */
bool buffer_reserve(struct buffer *buffer, size_t extra);

void buffer_append(struct buffer *buffer, const void *data, size_t len);
void buffer_append_byte(struct buffer *buffer, char byte);
void buffer_append_int(struct buffer *buffer, int64_t value);
void buffer_append_uint(struct buffer *buffer, uint64_t value);
void buffer_printf(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline void buffer_append_slice(struct buffer *buffer, struct slice s)
{
    buffer_append(buffer, s.data, s.len);
}

static inline void buffer_append_text(struct buffer *buffer, const char *text)
{
    buffer_append_slice(buffer, slice_of(text));
}

static inline struct slice buffer_slice(const struct buffer *buffer)
{
    return (struct slice){buffer->data, buffer->len};
}

/* Removes the first `count` bytes. */
void buffer_consume(struct buffer *buffer, size_t count);

/* Empties the buffer and clears a failure; memory and bound stay. */
void buffer_clear(struct buffer *buffer);

/* Moves the bytes out and leaves the buffer empty. The caller frees them with free(). */
char *buffer_detach(struct buffer *buffer, size_t *len);

void buffer_free(struct buffer *buffer);

#endif
