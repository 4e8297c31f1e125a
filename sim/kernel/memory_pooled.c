#include "kernel/memory.h"
#include "memory/pool.h"

void *memory_take(size_t bytes)
{
    return pool_take(bytes);
}

void *memory_resize(void *data, size_t before, size_t bytes)
{
    return pool_resize(data, before, bytes);
}

void memory_give(void *data, size_t bytes)
{
    pool_give(data, bytes);
}
