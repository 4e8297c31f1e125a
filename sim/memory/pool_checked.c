#include "memory/pool.h"

#include <stdlib.h>

void *pool_take(size_t bytes)
{
    return malloc(bytes);
}

void *pool_resize(void *data, size_t before, size_t bytes)
{
    (void)before;
    return realloc(data, bytes);
}

void pool_give(void *data, size_t bytes)
{
    (void)bytes;
    free(data);
}
