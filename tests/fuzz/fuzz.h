/*
 * What the fuzz targets share. A target defines LLVMFuzzerTestOneInput() and links with libFuzzer,
 * or with driver.c for a short run without it; README.md tells how.
 */
#ifndef ROLLCALL_TESTS_FUZZ_H
#define ROLLCALL_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A broken promise ends the run, so that the fuzzer keeps the input. */
static inline void fuzz_require(bool kept, const char *promise)
{
    if (kept)
        return;
    fprintf(stderr, "broken: %s\n", promise);
    abort();
}

/* The next piece of an input that is fed in pieces: between 1 and 16 bytes, or all that is left, as
 * the input's own seed decides. */
static inline size_t fuzz_piece(uint32_t *seed, size_t left)
{
    *seed = *seed * 1664525u + 1013904223u;
    size_t piece = (*seed >> 24) % 17;
    return piece == 0 || piece > left ? left : piece;
}

#endif
