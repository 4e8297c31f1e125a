/*
 * Who owns which memory. What a simulated process allocates belongs to it: a crash frees all of it at once, as an operating
 * system does, and what is left at an orderly exit is a leak. The kernel's own memory belongs to nobody.
 *
 * Allocation has no argument that says for whom, so it is for the process that runs (kernel_current()).
 */
#ifndef ROLLCALL_SIM_KERNEL_MEMORY_H
#define ROLLCALL_SIM_KERNEL_MEMORY_H

#include "base/list.h"

#include <stddef.h>

/* The memory of a process. */
struct memory {
    struct list blocks;
    size_t bytes;
    size_t bytes_most;
};

void memory_init(struct memory *memory);

/* Frees all of it. */
void memory_release(struct memory *memory);

/* Where blocks come from: memory_pooled.c, or memory_checked.c for builds with sanitizers. NULL: out of memory. */
void *memory_take(size_t bytes);
void *memory_resize(void *data, size_t before, size_t bytes);
void memory_give(void *data, size_t bytes);

/* For the kernel. They abort when out of memory. */
void *kernel_alloc(size_t bytes); /* zeroed */
void *kernel_realloc(void *data, size_t bytes);
void kernel_free(void *data);

#endif
