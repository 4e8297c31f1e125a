/* Tokens of a file with one a line, mapped and not copied: a million of them need no memory of this process. */
#ifndef ROLLCALL_BENCH_SWARM_TOKENS_H
#define ROLLCALL_BENCH_SWARM_TOKENS_H

#include <stddef.h>
#include <stdint.h>

struct swarm_tokens {
    const char *bytes;
    size_t count_bytes;
    uint32_t *ends; /* relative to `base`: the end of each line */
    size_t base;
};

/* Maps the lines `first` to `first + count - 1`. Ends the program if there are fewer. */
void swarm_tokens_open(struct swarm_tokens *tokens, const char *path, size_t first, size_t count);
void swarm_tokens_close(struct swarm_tokens *tokens);

/* Borrowed until swarm_tokens_close(). */
const char *swarm_token(const struct swarm_tokens *tokens, size_t index, size_t *out_bytes);

#endif
