#include "base/container.h"
#include "kernel/descriptor.h"
#include "kernel/thread.h"

#include <signal.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

enum { FIRST_PID = 100 };

/* The main thread's. */
static void *run_process(void *arg)
{
    struct process *process = arg;
    int status = process->main(process->arg);
    thread_exit_process(status);
}

struct process *process_start(struct machine *machine, const char *name, process_main main,
                              void *arg)
{
    static int pids;
    struct process *process = kernel_alloc(sizeof(*process));
    process->machine = machine;
    snprintf(process->name, sizeof(process->name), "%s", name);
    process->pid = FIRST_PID + pids++;
    process->main = main;
    process->arg = arg;
    random_init_seeded(&process->random, random_u64(kernel_random()));
    memory_init(&process->memory);
    list_init(&process->threads);
    list_init(&process->descriptors);
    list_init(&process->signal_fds);
    list_append(kernel_processes(), &process->place);
    thread_make(process, run_process, process);
    return process;
}

void process_crash(struct process **process)
{
    struct process *ended = *process;
    *process = NULL;
    while (!list_empty(&ended->threads))
        thread_free(CONTAINER_OF(ended->threads.next, struct thread, place));
    while (!list_empty(&ended->descriptors))
        descriptor_close(CONTAINER_OF(ended->descriptors.next, struct descriptor, of_process));
    if (ended->on_end)
        ended->on_end(ended, ended->on_end_arg);
    memory_release(&ended->memory);
    list_remove(&ended->place);
    kernel_free(ended);
}

/* ---- signals ---- */

void process_signal(struct process *process, int number)
{
    process->signals |= UINT64_C(1) << number;
    for (struct list *at = process->signal_fds.next; at != &process->signal_fds; at = at->next)
        descriptor_notify(CONTAINER_OF(at, struct descriptor, of_kind));
    for (struct list *at = process->threads.next; at != &process->threads; at = at->next) {
        struct thread *thread = CONTAINER_OF(at, struct thread, place);
        if (thread->condition == &process->signals)
            thread_wake(thread);
    }
}

int process_take_signal(struct process *process)
{
    for (int number = 1; number < 64; number++) {
        if (process->signals >> number & 1) {
            process->signals &= ~(UINT64_C(1) << number);
            return number;
        }
    }
    return 0;
}

/* ---- the calls ---- */

int __wrap_sigwait(const sigset_t *set, int *number);
int __wrap_kill(pid_t pid, int number);
pid_t __wrap_getpid(void);
void __wrap__exit(int status) __attribute__((noreturn));
int __wrap_gethostname(char *name, size_t bytes);

int __wrap_sigwait(const sigset_t *set, int *number)
{
    struct thread *thread = kernel_current();
    (void)set;
    thread->condition = &thread->process->signals;
    while ((*number = process_take_signal(thread->process)) == 0)
        thread_wait(-1);
    thread->condition = NULL;
    return 0;
}

int __wrap_kill(pid_t pid, int number)
{
    (void)pid; /* programs signal only themselves */
    process_signal(kernel_process(), number);
    return 0;
}

pid_t __wrap_getpid(void)
{
    return kernel_process() ? kernel_process()->pid : 1;
}

void __wrap__exit(int status)
{
    thread_exit_process(status);
}

int __wrap_gethostname(char *name, size_t bytes)
{
    snprintf(name, bytes, "%s", kernel_process()->machine->name);
    return 0;
}
