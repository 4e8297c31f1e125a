/* Tokens from a file, one a line. */
#ifndef ROLLCALL_BENCH_TOKENS_H
#define ROLLCALL_BENCH_TOKENS_H

#include <stddef.h>

/* The first `count` of them, with room for one more. Ends the program when there are not as many. */
const char **tokens_read(const char *path, size_t count);

/* Frees as many as were read. */
void tokens_free(const char ***tokens, size_t count);

#endif
