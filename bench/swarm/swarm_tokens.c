#include "swarm_tokens.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../cost.h"

/* Returns the position after the line at `at`. */
static size_t skip_line(const struct swarm_tokens *tokens, size_t at, const char *path)
{
    const char *end = memchr(tokens->bytes + at, '\n', tokens->count_bytes - at);
    if (end == NULL)
        cost_fail("%s has too few tokens", path);
    return (size_t)(end - tokens->bytes) + 1;
}

void swarm_tokens_open(struct swarm_tokens *tokens, const char *path, size_t first, size_t count)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0 || status.st_size == 0)
        cost_fail("cannot read the tokens in %s", path);
    tokens->count_bytes = (size_t)status.st_size;
    void *bytes = mmap(NULL, tokens->count_bytes, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    tokens->ends = calloc(count, sizeof(*tokens->ends));
    if (bytes == MAP_FAILED || tokens->ends == NULL)
        cost_fail("out of memory for the tokens in %s", path);
    tokens->bytes = bytes;
    size_t at = 0;
    for (size_t i = 0; i < first; i++)
        at = skip_line(tokens, at, path);
    tokens->base = at;
    for (size_t i = 0; i < count; i++) {
        at = skip_line(tokens, at, path);
        tokens->ends[i] = (uint32_t)(at - tokens->base);
    }
}

void swarm_tokens_close(struct swarm_tokens *tokens)
{
    munmap((void *)tokens->bytes, tokens->count_bytes);
    free(tokens->ends);
    *tokens = (struct swarm_tokens){0};
}

const char *swarm_token(const struct swarm_tokens *tokens, size_t index, size_t *out_bytes)
{
    size_t start = index == 0 ? 0 : tokens->ends[index - 1];
    *out_bytes = tokens->ends[index] - start - 1;
    return tokens->bytes + tokens->base + start;
}
