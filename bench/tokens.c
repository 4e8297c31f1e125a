#include "tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"

const char **tokens_read(const char *path, size_t count)
{
    FILE *file = fopen(path, "r");
    const char **tokens = calloc(count + 1, sizeof(*tokens));
    if (file == NULL || tokens == NULL)
        cost_fail("cannot read the tokens in %s", path);
    for (size_t i = 0; i < count; i++) {
        char *line = NULL;
        size_t capacity = 0;
        if (getline(&line, &capacity, file) <= 0)
            cost_fail("%s has fewer than %zu tokens", path, count);
        line[strcspn(line, "\r\n")] = '\0';
        tokens[i] = line;
    }
    fclose(file);
    return tokens;
}

void tokens_free(const char ***tokens, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((char *)(*tokens)[i]);
    free(*tokens);
    *tokens = NULL;
}
