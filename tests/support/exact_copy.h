/*
 * Copies of test input that end exactly where their allocation ends, so that the address sanitizer sees a
 * parser that reads one byte too far. The caller frees them.
 */
#ifndef ROLLCALL_TESTS_EXACT_COPY_H
#define ROLLCALL_TESTS_EXACT_COPY_H

#include "base/slice.h"

#include <stdlib.h>
#include <string.h>

static inline char *exact_copy(struct slice bytes)
{
    char *copy = malloc(bytes.len ? bytes.len : 1);
    if (!copy)
        abort();
    if (bytes.len)
        memcpy(copy, bytes.data, bytes.len);
    return copy;
}

#endif
