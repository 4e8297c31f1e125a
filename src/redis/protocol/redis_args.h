/* The words of a command, or the keys or arguments of a script: borrowed slices in a row. */
#ifndef ROLLCALL_REDIS_PROTOCOL_REDIS_ARGS_H
#define ROLLCALL_REDIS_PROTOCOL_REDIS_ARGS_H

#include "base/slice.h"

#include <stddef.h>

struct redis_words {
    const struct slice *items;
    size_t count;
};

/* REDIS_WORDS(SLICE("GET"), key): lives as long as the block it stands in. */
#define REDIS_WORDS(...)                                                                           \
    ((struct redis_words){(const struct slice[]){__VA_ARGS__},                                     \
                          sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice)})
#define REDIS_NO_WORDS ((struct redis_words){NULL, 0})

#endif
