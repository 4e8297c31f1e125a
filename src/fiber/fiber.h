/*
 * Fibers: functions that can wait. A fiber runs on the loop's thread with a stack of its own. When it needs an answer that
 * comes later, it suspends itself; the callback that brings the answer resumes it. So an operation of several
 * steps is one function with ordinary loops and returns, and nothing blocks.
 *
 *   fiber_start() ──► runs ──► fiber_suspend() ──► the loop goes on ──► fiber_resume() ──► runs ──► returns
 *
 * Bound: a pool has `fibers_max` stacks of FIBER_STACK_BYTES, made on first use and used again. Below each stack lies a page
 * that may not be touched: an overflow is a crash, never a silent overwrite.
 *
 * Threading: a pool and its fibers belong to one thread. Fibers do not nest: only the loop starts and resumes them.
 */
#ifndef ROLLCALL_FIBER_FIBER_H
#define ROLLCALL_FIBER_FIBER_H

#include <stdbool.h>
#include <stddef.h>

enum { FIBER_STACK_BYTES = 256 * 1024 };

struct fiber;
struct fiber_pool;

/* Runs on the fiber's stack; the fiber ends when it returns. */
typedef void (*fiber_main)(struct fiber *fiber, void *arg);

/* Returns NULL when out of memory. */
struct fiber_pool *fiber_pool_make(size_t fibers_max);

/* No fiber may be running or suspended. */
void fiber_pool_free(struct fiber_pool **pool);

/* Returns whether fiber_start() would find a free fiber, if there is memory for its stack. */
bool fiber_pool_has_free(const struct fiber_pool *pool);

/* Runs `run` on a fiber until it suspends itself or returns. Returns false, and runs nothing, when no fiber is free. */
bool fiber_start(struct fiber_pool *pool, fiber_main run, void *arg);

/* Called on the fiber itself: returns when somebody has resumed it. */
void fiber_suspend(struct fiber *fiber);

/* Called on the loop: continues a suspended fiber until it suspends itself again or returns. */
void fiber_resume(struct fiber *fiber);

#endif
