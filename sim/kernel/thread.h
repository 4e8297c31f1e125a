/*
 * Threads of simulated processes, for the kernel: fibers with a stack of their own. A thread that a crash ends does not run
 * its clean-up; its stack is used again.
 */
#ifndef ROLLCALL_SIM_KERNEL_THREAD_H
#define ROLLCALL_SIM_KERNEL_THREAD_H

#include "fiber/fiber_sanitizers.h"
#include "kernel/context.h"
#include "kernel/kernel.h"

enum {
    THREAD_STACK_BYTES = 512 * 1024,
    THREAD_WAKE_US_MAX = 50, /* how long a woken thread waits for a processor, at most */
};

struct thread {
    struct list place;
    struct process *process;
    void *(*main)(void *arg);
    void *arg;
    void *result;
    struct event wake;
    bool is_waiting;
    bool is_ended;
    bool is_detached;
    const void *condition; /* that it waits for, by address */
    struct context context;
    struct context kernel_context;
    void *stack;
    struct fiber_sanitizers sanitizers;
};

/* It runs at the next occasion. */
struct thread *thread_make(struct process *process, void *(*main)(void *), void *arg);

/* Not the one that runs. */
void thread_free(struct thread *thread);
void thread_free_stacks(void);

#endif
