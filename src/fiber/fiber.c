#include "fiber/fiber.h"

#include "fiber/fiber_sanitizers.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

struct fiber {
    struct fiber *next; /* in the pool's list of free ones, or of all */
    struct fiber *next_of_all;
    struct fiber_pool *pool;
    fiber_main run;
    void *arg;
    ucontext_t context;
    ucontext_t caller;
    void *mapping; /* a guard page, then the stack */
    struct fiber_sanitizers sanitizers;
    bool ended;
};

struct fiber_pool {
    size_t fibers_max;
    size_t count; /* made so far */
    size_t used;
    size_t guard_bytes;
    struct fiber *free;
    struct fiber *all;
};

static void *get_fiber_stack(const struct fiber *fiber)
{
    return (char *)fiber->mapping + fiber->pool->guard_bytes;
}

/* ---- switching ---- */

/* Runs the fiber from where it is until it suspends itself or ends. */
static void enter_fiber(struct fiber *fiber)
{
    fiber_sanitizers_before_entering(&fiber->sanitizers, get_fiber_stack(fiber), FIBER_STACK_BYTES);
    swapcontext(&fiber->caller, &fiber->context);
    fiber_sanitizers_after_leaving(&fiber->sanitizers);
    if (!fiber->ended)
        return;
    fiber->next = fiber->pool->free;
    fiber->pool->free = fiber;
    fiber->pool->used--;
}

static void leave_fiber(struct fiber *fiber)
{
    fiber_sanitizers_before_leaving(&fiber->sanitizers, fiber->ended);
    swapcontext(&fiber->context, &fiber->caller);
    fiber_sanitizers_after_entering(&fiber->sanitizers);
}

/* makecontext() passes only ints. */
static void fiber_trampoline(unsigned high, unsigned low)
{
    struct fiber *fiber = (struct fiber *)((uintptr_t)high << 32 | (uintptr_t)low);
    fiber_sanitizers_after_entering(&fiber->sanitizers);
    for (;;) {
        fiber->run(fiber, fiber->arg);
        fiber->ended = true;
        leave_fiber(fiber); /* returns when the pool starts this fiber again */
    }
}

void fiber_suspend(struct fiber *fiber)
{
    leave_fiber(fiber);
}

void fiber_resume(struct fiber *fiber)
{
    assert(!fiber->ended);
    enter_fiber(fiber);
}

/* ---- the pool ---- */

static void free_fiber(struct fiber *fiber)
{
    fiber_sanitizers_free(&fiber->sanitizers);
    munmap(fiber->mapping, fiber->pool->guard_bytes + FIBER_STACK_BYTES);
    free(fiber);
}

static bool map_fiber_stack(struct fiber *fiber)
{
    size_t guard_bytes = fiber->pool->guard_bytes;
    fiber->mapping = mmap(NULL, guard_bytes + FIBER_STACK_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fiber->mapping == MAP_FAILED)
        return false;
    if (mprotect(fiber->mapping, guard_bytes, PROT_NONE) == 0)
        return true;
    munmap(fiber->mapping, guard_bytes + FIBER_STACK_BYTES);
    return false;
}

static void prepare_fiber_context(struct fiber *fiber)
{
    uintptr_t address = (uintptr_t)fiber;
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = get_fiber_stack(fiber);
    fiber->context.uc_stack.ss_size = FIBER_STACK_BYTES;
    makecontext(&fiber->context, (void (*)(void))fiber_trampoline, 2, (unsigned)(address >> 32),
                (unsigned)address);
}

static struct fiber *make_fiber(struct fiber_pool *pool)
{
    struct fiber *fiber = calloc(1, sizeof(*fiber));
    if (!fiber)
        return NULL;
    fiber->pool = pool;
    if (!map_fiber_stack(fiber)) {
        free(fiber);
        return NULL;
    }
    prepare_fiber_context(fiber);
    fiber_sanitizers_init(&fiber->sanitizers);
    fiber->next_of_all = pool->all;
    pool->all = fiber;
    pool->count++;
    return fiber;
}

struct fiber_pool *fiber_pool_make(size_t fibers_max)
{
    struct fiber_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return NULL;
    pool->fibers_max = fibers_max;
    pool->guard_bytes = (size_t)sysconf(_SC_PAGESIZE);
    return pool;
}

void fiber_pool_free(struct fiber_pool **pool)
{
    struct fiber_pool *freed = *pool;
    *pool = NULL;
    if (!freed)
        return;
    assert(freed->used == 0);
    while (freed->all) {
        struct fiber *fiber = freed->all;
        freed->all = fiber->next_of_all;
        free_fiber(fiber);
    }
    free(freed);
}

bool fiber_pool_has_free(const struct fiber_pool *pool)
{
    return pool->used < pool->fibers_max;
}

static struct fiber *take_fiber(struct fiber_pool *pool)
{
    struct fiber *fiber = pool->free;
    if (!fiber)
        return pool->count < pool->fibers_max ? make_fiber(pool) : NULL;
    pool->free = fiber->next;
    return fiber;
}

bool fiber_start(struct fiber_pool *pool, fiber_main run, void *arg)
{
    struct fiber *fiber = take_fiber(pool);
    if (!fiber)
        return false;
    pool->used++;
    fiber->run = run;
    fiber->arg = arg;
    fiber->ended = false;
    enter_fiber(fiber);
    return true;
}
