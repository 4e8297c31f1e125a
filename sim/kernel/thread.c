#include "kernel/thread.h"

#include "base/container.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef FIBER_WITH_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes) ((void)(data), (void)(bytes))
#endif

enum { STACKS_KEPT_MAX = 1024 };

static struct {
    void *free[STACKS_KEPT_MAX];
    size_t count;
} stacks;

static size_t thread_guard_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void *thread_take_stack(void)
{
    if (stacks.count > 0)
        return stacks.free[--stacks.count];
    size_t guard_bytes = thread_guard_bytes();
    char *mapping = mmap(NULL, guard_bytes + THREAD_STACK_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED || mprotect(mapping, guard_bytes, PROT_NONE) != 0)
        abort();
    return mapping + guard_bytes;
}

static void thread_unmap_stack(void *stack)
{
    size_t guard_bytes = thread_guard_bytes();
    munmap((char *)stack - guard_bytes, guard_bytes + THREAD_STACK_BYTES);
}

static void thread_give_stack(void *stack)
{
    ASAN_UNPOISON_MEMORY_REGION(stack, THREAD_STACK_BYTES);
    if (stacks.count < STACKS_KEPT_MAX)
        stacks.free[stacks.count++] = stack;
    else
        thread_unmap_stack(stack);
}

void thread_free_stacks(void)
{
    while (stacks.count > 0)
        thread_unmap_stack(stacks.free[--stacks.count]);
}

/* ---- switching ---- */

static void thread_leave(struct thread *thread)
{
    fiber_sanitizers_before_leaving(&thread->sanitizers, false);
    context_switch(&thread->context, &thread->kernel_context);
    fiber_sanitizers_after_entering(&thread->sanitizers);
}

static void thread_end(struct thread *thread)
{
    struct process *process = thread->process;
    thread->is_ended = true;
    thread->is_waiting = false;
    for (struct list *at = process->threads.next; at != &process->threads; at = at->next) {
        struct thread *other = CONTAINER_OF(at, struct thread, place);
        if (other->condition == thread)
            thread_wake(other);
    }
}

static void thread_trampoline(void *arg)
{
    struct thread *thread = arg;
    fiber_sanitizers_after_entering(&thread->sanitizers);
    thread->result = thread->main(thread->arg);
    thread_end(thread);
    for (;;)
        thread_leave(thread);
}

static void thread_run(struct thread *thread)
{
    struct process *process = thread->process;
    thread->is_waiting = false;
    kernel_leave(thread);
    fiber_sanitizers_before_entering(&thread->sanitizers, thread->stack, THREAD_STACK_BYTES);
    context_switch(&thread->kernel_context, &thread->context);
    fiber_sanitizers_after_leaving(&thread->sanitizers);
    kernel_enter();
    if (process->is_ending)
        process_crash(&process);
    else if (thread->is_ended && thread->is_detached)
        thread_free(thread);
}

static void on_thread_woken(struct event *event)
{
    struct thread *thread = CONTAINER_OF(event, struct thread, wake);
    int64_t left_us = thread->process->paused_until_us - kernel_now_us();
    if (left_us > 0)
        kernel_set_event(event, left_us);
    else
        thread_run(thread);
}

struct thread *thread_make(struct process *process, void *(*main)(void *), void *arg)
{
    struct thread *thread = kernel_alloc(sizeof(*thread));
    thread->process = process;
    thread->main = main;
    thread->arg = arg;
    thread->stack = thread_take_stack();
    thread->wake.run = on_thread_woken;
    thread->is_waiting = true;
    fiber_sanitizers_init(&thread->sanitizers);
    context_make(&thread->context, thread->stack, THREAD_STACK_BYTES, thread_trampoline, thread);
    list_append(&process->threads, &thread->place);
    thread_wake(thread);
    return thread;
}

void thread_free(struct thread *thread)
{
    event_cancel(kernel_events(), &thread->wake);
    list_remove(&thread->place);
    fiber_sanitizers_free(&thread->sanitizers);
    thread_give_stack(thread->stack);
    kernel_free(thread);
}

/* ---- waiting ---- */

void thread_wait(int64_t timeout_us)
{
    struct thread *thread = kernel_current();
    const struct machine *machine = thread->process->machine;
    thread->is_waiting = true;
    if (timeout_us >= 0) /* a fast clock reaches the end earlier */
        kernel_set_event(&thread->wake, timeout_us - timeout_us * machine->drift_ppm / 1000000);
    thread_leave(thread);
}

void thread_wake(struct thread *thread)
{
    int64_t in_us = 1 + (int64_t)random_below(kernel_random(), THREAD_WAKE_US_MAX);
    if (!thread->is_waiting ||
        (event_is_set(&thread->wake) && thread->wake.at_us <= kernel_now_us() + in_us))
        return;
    kernel_set_event(&thread->wake, in_us);
}

void thread_exit_process(int status)
{
    struct thread *thread = kernel_current();
    thread->process->is_ending = true;
    thread->process->status = status;
    for (;;)
        thread_leave(thread);
}

/* ---- the calls: a pthread_t is the thread ---- */

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*main)(void *),
                          void *arg);
int __wrap_pthread_join(pthread_t id, void **result);
int __wrap_pthread_detach(pthread_t id);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*main)(void *),
                          void *arg)
{
    (void)attributes;
    *id = (pthread_t)thread_make(kernel_process(), main, arg);
    return 0;
}

int __wrap_pthread_join(pthread_t id, void **result)
{
    struct thread *thread = (struct thread *)id;
    struct thread *joining = kernel_current();
    joining->condition = thread;
    while (!thread->is_ended)
        thread_wait(-1);
    joining->condition = NULL;
    if (result)
        *result = thread->result;
    thread_free(thread);
    return 0;
}

int __wrap_pthread_detach(pthread_t id)
{
    ((struct thread *)id)->is_detached = true;
    return 0;
}

static void thread_wait_for_condition(const void *condition, pthread_mutex_t *mutex,
                                      int64_t timeout_us)
{
    struct thread *thread = kernel_current();
    thread->condition = condition;
    pthread_mutex_unlock(mutex);
    thread_wait(timeout_us);
    thread->condition = NULL;
    pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    thread_wait_for_condition(condition, mutex, -1);
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    const struct machine *machine = kernel_process()->machine;
    int64_t until_us = (int64_t)until->tv_sec * 1000000 + until->tv_nsec / 1000;
    int64_t left_us = until_us - machine_monotonic_us(machine);
    thread_wait_for_condition(condition, mutex, left_us > 0 ? left_us : 0);
    return machine_monotonic_us(machine) >= until_us ? ETIMEDOUT : 0;
}

static void thread_signal(const void *condition, bool all)
{
    struct process *process = kernel_process();
    for (struct list *at = process->threads.next; at != &process->threads; at = at->next) {
        struct thread *thread = CONTAINER_OF(at, struct thread, place);
        if (thread->condition != condition)
            continue;
        thread->condition = NULL;
        thread_wake(thread);
        if (!all)
            return;
    }
}

int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    thread_signal(condition, false);
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    thread_signal(condition, true);
    return 0;
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    (void)how, (void)set, (void)old;
    return 0;
}
