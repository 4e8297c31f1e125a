#include "support/alloc_fault.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* The linker defines these names: --wrap=malloc calls __wrap_malloc instead and keeps __real_malloc. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static struct {
    size_t seen;
    size_t failed;
    size_t first; /* 0: none fails */
    size_t last;
} fault;

static void start_counting(size_t first, size_t last)
{
    fault.seen = 0;
    fault.failed = 0;
    fault.first = first;
    fault.last = last;
}

void alloc_fault_after(size_t n)
{
    start_counting(n, n);
}

void alloc_fault_from(size_t n)
{
    start_counting(n, (size_t)-1);
}

size_t alloc_fault_off(void)
{
    fault.first = 0;
    return fault.failed;
}

size_t alloc_fault_sweep(alloc_fault_start fail_at, alloc_fault_scenario scenario)
{
    size_t n = 1;
    while (scenario(fail_at, n) > 0)
        n++;
    return n;
}

size_t alloc_fault_seen(void)
{
    return fault.seen;
}

static bool allocation_fails(void)
{
    fault.seen++;
    if (fault.first == 0 || fault.seen < fault.first || fault.seen > fault.last)
        return false;
    fault.failed++;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return allocation_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return allocation_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return allocation_fails() ? NULL : __real_realloc(old, size);
}
