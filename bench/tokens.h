/* Tokens from a file, one a line. */
#ifndef ROLLCALL_BENCH_TOKENS_H
#define ROLLCALL_BENCH_TOKENS_H

#include <stddef.h>

/* Reads the first `count` tokens; the array has space for one more. Ends the program when there are fewer. */
const char **tokens_read(const char *path, size_t count);

/* Frees as many as were read. */
void tokens_free(const char ***tokens, size_t count);

#endif
