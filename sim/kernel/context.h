/*
 * Where a stack stopped, and the switch to another one. The switch saves what a called function must keep, and nothing
 * else: no signal mask, so it makes no system call, which would be a tenth of a simulation. context_x86_64.c has it for
 * that processor; context_portable.c uses swapcontext(3) everywhere else.
 */
#ifndef ROLLCALL_SIM_KERNEL_CONTEXT_H
#define ROLLCALL_SIM_KERNEL_CONTEXT_H

#include <stddef.h>

struct context {
    void *place; /* on the stack that stopped */
};

/* The first switch to `context` calls `entry`, which must not return, on the stack. */
void context_make(struct context *context, void *stack, size_t bytes, void (*entry)(void *arg),
                  void *arg);

/* Returns when something switches back to `from`. */
void context_switch(struct context *from, const struct context *to);

#endif
