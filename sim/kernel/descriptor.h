/*
 * Descriptors of simulated processes: sockets, epoll instances, eventfds, signal descriptors and files. Their numbers begin
 * at DESCRIPTOR_FIRST, so that a number below is a real descriptor of the simulator.
 *
 * A watch tells a waiting thread, or an epoll instance, when a descriptor is ready. As with epoll(7), an edge-triggered
 * watch reports each change once, a level-triggered one for as long as the descriptor is ready.
 */
#ifndef ROLLCALL_SIM_KERNEL_DESCRIPTOR_H
#define ROLLCALL_SIM_KERNEL_DESCRIPTOR_H

#include "kernel/kernel.h"

#include <sys/epoll.h>
#include <sys/types.h>

enum { DESCRIPTOR_FIRST = 4096 };

struct descriptor;

struct descriptor_kind {
    uint32_t (*poll)(const struct descriptor *descriptor); /* EPOLL… that hold now */
    ssize_t (*read)(struct descriptor *descriptor, void *data, size_t bytes);
    ssize_t (*write)(struct descriptor *descriptor, const void *data, size_t bytes);
    void (*close)(struct descriptor *descriptor); /* frees it */
};

struct descriptor {
    const struct descriptor_kind *kind;
    struct process *process;
    struct list of_process;
    struct list of_kind; /* for the kind's own use */
    struct list watches;
    int fd;
};

struct watch {
    struct list of_descriptor;
    struct list ready; /* in the list of an epoll instance that may have something to report */
    struct descriptor *descriptor;
    struct epoll *epoll;   /* exactly one of these two is NULL */
    struct thread *thread; /* woken when ready */
    uint32_t interest;
    epoll_data_t data;
};

/* Gives the descriptor a number in the current process. Returns the number. */
int descriptor_open(struct descriptor *descriptor, const struct descriptor_kind *kind);

/* NULL, with errno EBADF: it is none of the simulated ones. */
struct descriptor *descriptor_find(int fd);
void descriptor_close(struct descriptor *descriptor);

/* Something has changed. */
void descriptor_notify(struct descriptor *descriptor);

static inline uint32_t descriptor_poll(const struct descriptor *descriptor)
{
    return descriptor->kind->poll ? descriptor->kind->poll(descriptor) : 0;
}

/* kernel/epoll.c */
void watch_add(struct watch *watch, struct descriptor *descriptor);
void watch_remove(struct watch *watch);
void epoll_report(struct watch *watch);

/* kernel/process.c: 0: none is pending. */
int process_take_signal(struct process *process);

#endif
