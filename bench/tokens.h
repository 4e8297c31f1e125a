/* Tokens from a file, one a line. */
#ifndef ROLLCALL_BENCH_TOKENS_H
#define ROLLCALL_BENCH_TOKENS_H

#include <stddef.h>

/* The first `count` of them, with room for one more. They live as long as the program, which ends here
 * when there are not as many. */
const char **tokens_read(const char *path, size_t count);

#endif
