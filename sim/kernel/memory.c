/* Replaces the allocation functions at link time (sim/meson.build). */
#include "kernel/memory.h"

#include "kernel/kernel.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t bytes);
void *__real_realloc(void *data, size_t bytes);
void __real_free(void *data);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *data, size_t bytes);
void __wrap_free(void *data);
char *__wrap_strdup(const char *text);
int __wrap_malloc_trim(size_t pad);

/* In front of every block; it keeps the alignment. */
struct block {
    struct list place;
    struct memory *owner; /* NULL: nobody's */
    size_t bytes;
};

_Static_assert(sizeof(struct block) % 16 == 0, "a block starts aligned");

void *kernel_alloc(size_t bytes)
{
    void *data = __real_malloc(bytes);
    if (!data)
        abort();
    return memset(data, 0, bytes);
}

void *kernel_realloc(void *data, size_t bytes)
{
    void *moved = __real_realloc(data, bytes);
    if (!moved)
        abort();
    return moved;
}

void kernel_free(void *data)
{
    __real_free(data);
}

void memory_init(struct memory *memory)
{
    *memory = (struct memory){0};
    list_init(&memory->blocks);
}

static void memory_remove(struct block *block)
{
    if (!block->owner)
        return;
    list_remove(&block->place);
    block->owner->bytes -= block->bytes;
}

static void memory_add(struct block *block, struct memory *owner, size_t bytes)
{
    block->owner = owner;
    block->bytes = bytes;
    if (!owner)
        return;
    list_append(&owner->blocks, &block->place);
    owner->bytes += bytes;
    if (owner->bytes > owner->bytes_most)
        owner->bytes_most = owner->bytes;
}

void memory_release(struct memory *memory)
{
    while (!list_empty(&memory->blocks)) {
        struct block *block = (struct block *)memory->blocks.next;
        memory_remove(block);
        memory_give(block, sizeof(*block) + block->bytes);
    }
}

/* ---- the calls ---- */

void *__wrap_malloc(size_t bytes)
{
    struct block *block =
        bytes < SIZE_MAX - sizeof(*block) ? memory_take(sizeof(*block) + bytes) : NULL;
    if (!block)
        return NULL;
    memory_add(block, kernel_current_memory(), bytes);
    return block + 1;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        return NULL;
    void *data = __wrap_malloc(total);
    return data ? memset(data, 0, total) : NULL;
}

void *__wrap_realloc(void *data, size_t bytes)
{
    if (!data)
        return __wrap_malloc(bytes);
    struct block *block = (struct block *)data - 1;
    struct memory *owner = block->owner;
    size_t before = block->bytes;
    memory_remove(block);
    struct block *moved =
        bytes < SIZE_MAX - sizeof(*block)
            ? memory_resize(block, sizeof(*block) + before, sizeof(*block) + bytes)
            : NULL;
    memory_add(moved ? moved : block, owner, moved ? bytes : before);
    return moved ? moved + 1 : NULL;
}

void __wrap_free(void *data)
{
    if (!data)
        return;
    struct block *block = (struct block *)data - 1;
    memory_remove(block);
    memory_give(block, sizeof(*block) + block->bytes);
}

char *__wrap_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = __wrap_malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

int __wrap_malloc_trim(size_t pad)
{
    (void)pad;
    return 0;
}
