/*
 * Shared by the fuzz targets. A target defines LLVMFuzzerTestOneInput() and links with libFuzzer, or with
 * driver.c for a short run without it; see README.md.
 */
#ifndef ROLLCALL_TESTS_FUZZ_H
#define ROLLCALL_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts if the property does not hold, so that the fuzzer keeps the input. */
static inline void fuzz_require(bool holds, const char *property)
{
    if (holds)
        return;
    fprintf(stderr, "broken: %s\n", property);
    abort();
}

/* Copies bytes into an allocation of their exact size, so that the sanitizer detects an over-read. The caller
 * frees it. */
static inline char *fuzz_copy(const void *data, size_t size)
{
    char *copy = malloc(size ? size : 1);
    fuzz_require(copy != NULL, "there is memory");
    if (size)
        memcpy(copy, data, size);
    return copy;
}

/* Returns the size of the next piece of an input that is passed in pieces: 1 to 16 bytes, or everything that is
 * left, depending on the seed in the input. */
static inline size_t fuzz_piece(uint32_t *seed, size_t left)
{
    *seed = *seed * 1664525u + 1013904223u;
    size_t piece = (*seed >> 24) % 17;
    return piece == 0 || piece > left ? left : piece;
}

#endif
