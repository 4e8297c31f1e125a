/* The words of a command, or the keys or arguments of a script: borrowed slices in a row. */
#ifndef ROLLCALL_REDIS_PROTOCOL_REDIS_ARGS_H
#define ROLLCALL_REDIS_PROTOCOL_REDIS_ARGS_H

#include "base/slice.h"

#include <stddef.h>

struct redis_args {
    const struct slice *items;
    size_t count;
};

/* REDIS_ARGS(SLICE("GET"), key): lives as long as the block it stands in. */
#define REDIS_ARGS(...)                                                                            \
    ((struct redis_args){(const struct slice[]){__VA_ARGS__},                                      \
                         sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice)})
#define REDIS_NO_ARGS ((struct redis_args){NULL, 0})

#endif
