#include "kernel/kernel.h"

#include "base/container.h"
#include "kernel/file.h"
#include "kernel/thread.h"

#include <stdio.h>
#include <stdlib.h>

/* A Wednesday in 2030, when the simulated world begins. */
#define EPOCH_US INT64_C(1893456000000000)

enum { BOOTED_US_MAX = 1 << 30 };

/* The replaced calls have no argument, so this is the one mutable global of the simulator. */
static struct {
    int64_t now_us;
    struct event_queue events;
    struct random random;
    struct list machines;
    struct list processes;
    struct thread *current;
    uint64_t turns;
    bool is_stopping;
} kernel;

void kernel_open(uint64_t seed)
{
    random_init_seeded(&kernel.random, seed);
    list_init(&kernel.machines);
    list_init(&kernel.processes);
    kernel.now_us = 0;
    kernel.turns = 0;
    kernel.is_stopping = false;
}

void kernel_close(void)
{
    while (!list_empty(&kernel.processes)) {
        struct process *process = CONTAINER_OF(kernel.processes.next, struct process, place);
        process->on_end = NULL;
        process_crash(&process);
    }
    while (!list_empty(&kernel.machines)) {
        struct machine *machine = CONTAINER_OF(kernel.machines.next, struct machine, place);
        list_remove(&machine->place);
        file_remove_all(machine);
        kernel_free(machine);
    }
    thread_free_stacks();
    event_queue_free(&kernel.events);
}

/* ---- time ---- */

int64_t kernel_now_us(void)
{
    return kernel.now_us;
}

struct event_queue *kernel_events(void)
{
    return &kernel.events;
}

void kernel_set_event(struct event *event, int64_t in_us)
{
    event_set(&kernel.events, event, kernel.now_us + in_us);
}

struct random *kernel_random(void)
{
    return &kernel.random;
}

uint64_t kernel_turns(void)
{
    return kernel.turns;
}

struct list *kernel_processes(void)
{
    return &kernel.processes;
}

/* A program that never waits would stop time, so that is an error in it or in the simulator. */
void kernel_run(int64_t until_us)
{
    unsigned at_once = 0;
    kernel.is_stopping = false;
    while (!kernel.is_stopping) {
        struct event *event = event_take(&kernel.events);
        if (!event || event->at_us > until_us) {
            if (event)
                event_set(&kernel.events, event, event->at_us);
            kernel.now_us = until_us;
            return;
        }
        at_once = event->at_us == kernel.now_us ? at_once + 1 : 0;
        if (at_once > KERNEL_TURNS_AT_ONCE_MAX) {
            fprintf(stderr, "sim: something never waits\n");
            abort();
        }
        kernel.now_us = event->at_us;
        kernel.turns++;
        event->run(event);
    }
}

void kernel_stop(void)
{
    kernel.is_stopping = true;
}

/* ---- who runs ---- */

struct thread *kernel_current(void)
{
    return kernel.current;
}

struct thread *kernel_enter(void)
{
    struct thread *thread = kernel.current;
    kernel.current = NULL;
    return thread;
}

void kernel_leave(struct thread *thread)
{
    kernel.current = thread;
}

struct process *kernel_process(void)
{
    return kernel.current ? kernel.current->process : NULL;
}

struct memory *kernel_current_memory(void)
{
    return kernel.current ? &kernel.current->process->memory : NULL;
}

/* ---- machines ---- */

struct machine *machine_make(const char *name, uint32_t address)
{
    struct machine *machine = kernel_alloc(sizeof(*machine));
    snprintf(machine->name, sizeof(machine->name), "%s", name);
    machine->address = address;
    machine->clock_at_us = kernel.now_us;
    machine->monotonic_us = (int64_t)random_below(&kernel.random, BOOTED_US_MAX);
    machine->wall_us = EPOCH_US + kernel.now_us;
    list_init(&machine->files);
    list_append(&kernel.machines, &machine->place);
    return machine;
}

struct machine *machine_find(uint32_t address)
{
    for (struct list *at = kernel.machines.next; at != &kernel.machines; at = at->next) {
        struct machine *machine = CONTAINER_OF(at, struct machine, place);
        if (machine->address == address)
            return machine;
    }
    return NULL;
}

static int64_t machine_elapsed_us(const struct machine *machine)
{
    int64_t elapsed_us = kernel.now_us - machine->clock_at_us;
    return elapsed_us + elapsed_us * machine->drift_ppm / 1000000;
}

int64_t machine_monotonic_us(const struct machine *machine)
{
    return machine->monotonic_us + machine_elapsed_us(machine);
}

int64_t machine_wall_us(const struct machine *machine)
{
    return machine->wall_us + machine_elapsed_us(machine);
}

static void machine_set_clocks(struct machine *machine)
{
    int64_t elapsed_us = machine_elapsed_us(machine);
    machine->monotonic_us += elapsed_us;
    machine->wall_us += elapsed_us;
    machine->clock_at_us = kernel.now_us;
}

void machine_step_wall(struct machine *machine, int64_t by_us)
{
    machine_set_clocks(machine);
    machine->wall_us += by_us;
}

void machine_set_drift(struct machine *machine, int64_t ppm)
{
    machine_set_clocks(machine);
    machine->drift_ppm = ppm;
}
