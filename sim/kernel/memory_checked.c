#include "kernel/memory.h"

void *__real_malloc(size_t bytes);
void *__real_realloc(void *data, size_t bytes);
void __real_free(void *data);

void *memory_take(size_t bytes)
{
    return __real_malloc(bytes);
}

void *memory_resize(void *data, size_t before, size_t bytes)
{
    (void)before;
    return __real_realloc(data, bytes);
}

void memory_give(void *data, size_t bytes)
{
    (void)bytes;
    __real_free(data);
}
