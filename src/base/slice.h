/*
 * A slice borrows bytes: a pointer and a length, never terminated, never owned. It is valid as long as the memory it points into; a function that keeps one after it returns says so.
 */
#ifndef ROLLCALL_BASE_SLICE_H
#define ROLLCALL_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *data;
    size_t len;
};

#define SLICE(literal) ((struct slice){(literal), sizeof(literal) - 1})
#define SLICE_NONE ((struct slice){NULL, 0})

/* For printf's "%.*s". */
#define SLICE_FORMAT(s) (int)(s).len, (s).data

static inline struct slice slice_of(const char *text)
{
    return (struct slice){text, text ? strlen(text) : 0};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool slice_is(struct slice s, const char *text)
{
    return slice_equal(s, slice_of(text));
}

static inline bool slice_starts_with(struct slice s, struct slice prefix)
{
    return s.len >= prefix.len && slice_equal((struct slice){s.data, prefix.len}, prefix);
}

/* Returns the part after the first `count` bytes; empty if there are fewer. */
static inline struct slice slice_after(struct slice s, size_t count)
{
    return count >= s.len ? SLICE_NONE : (struct slice){s.data + count, s.len - count};
}

static inline struct slice slice_first(struct slice s, size_t count)
{
    return (struct slice){s.data, count < s.len ? count : s.len};
}

/* Splits at the first `separator`: *head is the part before it; the part after it is returned.
 * Without a separator *head is everything and SLICE_NONE (data == NULL) is returned. */
static inline struct slice slice_split(struct slice s, char separator, struct slice *head)
{
    const char *at = s.data && s.len ? memchr(s.data, separator, s.len) : NULL;
    if (!at) {
        *head = s;
        return SLICE_NONE;
    }
    size_t before = (size_t)(at - s.data);
    *head = (struct slice){s.data, before};
    return (struct slice){at + 1, s.len - before - 1};
}

/* Copies the bytes to *at, which has space for them, and moves *at to their end: for ids that follow a struct
 * in one allocation. Returns the copy; SLICE_NONE stays SLICE_NONE. */
static inline struct slice slice_copy_to(char **at, struct slice s)
{
    if (!s.data)
        return s;
    char *copy = memcpy(*at, s.data, s.len);
    *at += s.len;
    return (struct slice){copy, s.len};
}

#endif
