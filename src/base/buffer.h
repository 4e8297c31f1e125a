/*
 * A buffer is a growable array of bytes to write text into.
 *
 * Failure is sticky: when memory runs out, or `max` would be passed, `failed` is set and every
 * later append does nothing, so that a writer checks once, at the end. Owned by whoever holds the
 * struct; buffer_free() or buffer_detach() ends it. Not shared between threads.
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
    size_t max; /* 0: no bound but memory */
    bool failed;
};

#define BUFFER_INIT ((struct buffer){0})
#define BUFFER_BOUNDED(bytes_max) ((struct buffer){.max = (bytes_max)})

/* Makes room for `extra` more bytes. False (and sticky) when that cannot be had. */
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

/* Drops the first `count` bytes. */
void buffer_consume(struct buffer *buffer, size_t count);

/* Empties the buffer, keeps its memory and its bound, and clears a failure. */
void buffer_clear(struct buffer *buffer);

/* Moves the bytes out (the caller frees them with free()) and leaves the buffer empty. */
char *buffer_detach(struct buffer *buffer, size_t *len);

void buffer_free(struct buffer *buffer);

#endif
