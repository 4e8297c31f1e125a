/* The arguments of a command, or the keys or arguments of a script: an array of borrowed slices. */
#ifndef ROLLCALL_REDIS_PROTOCOL_REDIS_ARGS_H
#define ROLLCALL_REDIS_PROTOCOL_REDIS_ARGS_H

#include "base/slice.h"

#include <stddef.h>

struct redis_args {
    const struct slice *items;
    size_t count;
};

/* REDIS_ARGS(SLICE("GET"), key): valid as long as the enclosing block. */
#define REDIS_ARGS(...)                                                                            \
    ((struct redis_args){(const struct slice[]){__VA_ARGS__},                                      \
                         sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice)})
#define REDIS_NO_ARGS ((struct redis_args){NULL, 0})

#endif
