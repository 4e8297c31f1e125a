/*
 * The simulated machines: time, processes, threads. Everything runs on one real thread, in an order that follows from the
 * seed alone.
 *
 *   machine   an address on the network, a clock, a disk; processes run on it
 *   process   a main function, its threads, descriptors and memory. It ends when main returns, or by a crash,
 *             after which nothing of it is left
 *   thread    a fiber. It runs until it waits (epoll_wait, poll, a condition, a signal, a join); then the kernel runs what
 *             is next in virtual time
 *
 * Programs do not know: they call the system as always, and those calls are replaced at link time (kernel/calls.c and
 * beside it). The calls have no argument that says which simulation they belong to, so there is one kernel per program.
 *
 * Time stands still while a thread runs. How long a woken thread waits for its turn is drawn from the seed.
 */
#ifndef ROLLCALL_SIM_KERNEL_KERNEL_H
#define ROLLCALL_SIM_KERNEL_KERNEL_H

#include "base/list.h"
#include "base/random.h"
#include "kernel/event_queue.h"
#include "kernel/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KERNEL_NAME_BYTES = 32, KERNEL_TURNS_AT_ONCE_MAX = 1000000 };

/* ---- machines ---- */

struct machine {
    struct list place;
    char name[KERNEL_NAME_BYTES];
    uint32_t address;    /* IPv4, in the host's byte order */
    bool is_off;         /* without power: it answers nothing */
    int64_t latency_us;  /* from here to the backbone, besides what is drawn */
    int64_t jitter_us;   /* the most that is drawn */
    int64_t drift_ppm;   /* of its clocks */
    int64_t clock_at_us; /* virtual time at which the next two were set */
    int64_t monotonic_us;
    int64_t wall_us;
    struct list files; /* kernel/file.c */
    /* A load balancer: a connection to it goes to one of these that listens on the port. */
    struct machine **balanced;
    size_t balanced_count;
};

/* Lives until kernel_close(). */
struct machine *machine_make(const char *name, uint32_t address);
int64_t machine_monotonic_us(const struct machine *machine);
int64_t machine_wall_us(const struct machine *machine);
void machine_step_wall(struct machine *machine, int64_t by_us);
void machine_set_drift(struct machine *machine, int64_t ppm);

/* ---- processes ---- */

typedef int (*process_main)(void *arg);

struct process {
    struct list place;
    struct machine *machine;
    char name[KERNEL_NAME_BYTES];
    int pid;
    process_main main;
    void *arg;
    struct random random; /* what getrandom(2) returns */
    struct memory memory;
    struct list threads;
    struct list descriptors;
    uint64_t signals;        /* pending, by number */
    struct list signal_fds;  /* descriptors that wait for signals */
    int64_t paused_until_us; /* its threads do not run before */
    bool is_ending;
    int status;
    void (*on_end)(struct process *process,
                   void *arg); /* may be NULL; the process is freed after it */
    void *on_end_arg;
};

/* Starts a process; its main runs at the next occasion. `arg` is borrowed. */
struct process *process_start(struct machine *machine, const char *name, process_main main,
                              void *arg);

/* Ends it without any clean-up of its own. Its machine closes its connections; a machine that is off does not.
 * Not from within a thread of the process. */
void process_crash(struct process **process);

/* From anywhere: SIGTERM and the like. */
void process_signal(struct process *process, int number);

/* ---- threads ---- */

struct thread;

/* The one that runs, and its process; NULL: the simulator itself runs. */
struct thread *kernel_current(void);
struct process *kernel_process(void);
struct memory *kernel_current_memory(void);

/* Lets the simulator itself allocate while a process runs: kernel_leave() gets what kernel_enter() returned. */
struct thread *kernel_enter(void);
void kernel_leave(struct thread *thread);

/* The current thread waits until it is woken, or until `timeout_us` have passed on its machine's clock (< 0: for ever). */
void thread_wait(int64_t timeout_us);
void thread_wake(struct thread *thread);

/* Ends the process of the current thread; does not return. */
void thread_exit_process(int status) __attribute__((noreturn));

/* ---- time ---- */

void kernel_open(uint64_t seed);
void kernel_close(void);

int64_t kernel_now_us(void);
struct event_queue *kernel_events(void);
void kernel_set_event(struct event *event, int64_t in_us);

/* What the network and the scheduler draw. */
struct random *kernel_random(void);

/* Runs until the time, or until kernel_stop(). */
void kernel_run(int64_t until_us);
void kernel_stop(void);
uint64_t kernel_turns(void);
struct list *kernel_processes(void);

/* Everything of a machine that the network must find. */
struct machine *machine_find(uint32_t address);

#endif
