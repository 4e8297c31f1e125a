#include "kernel/descriptor.h"

#include "base/container.h"
#include "kernel/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { DESCRIPTORS_MAX = 16384 };

static struct descriptor *descriptors[DESCRIPTORS_MAX];
static int first_free; /* no lower number is */

int descriptor_open(struct descriptor *descriptor, const struct descriptor_kind *kind)
{
    int at = first_free;
    while (at < DESCRIPTORS_MAX && descriptors[at])
        at++;
    if (at == DESCRIPTORS_MAX)
        abort();
    descriptors[at] = descriptor;
    first_free = at + 1;
    descriptor->kind = kind;
    descriptor->fd = DESCRIPTOR_FIRST + at;
    descriptor->process = kernel_process();
    list_init(&descriptor->watches);
    list_init(&descriptor->of_kind);
    list_append(&descriptor->process->descriptors, &descriptor->of_process);
    return descriptor->fd;
}

struct descriptor *descriptor_find(int fd)
{
    bool is_one = fd >= DESCRIPTOR_FIRST && fd < DESCRIPTOR_FIRST + DESCRIPTORS_MAX;
    struct descriptor *found = is_one ? descriptors[fd - DESCRIPTOR_FIRST] : NULL;
    if (!found)
        errno = EBADF;
    return found;
}

void descriptor_close(struct descriptor *descriptor)
{
    while (!list_empty(&descriptor->watches))
        watch_remove(CONTAINER_OF(descriptor->watches.next, struct watch, of_descriptor));
    int at = descriptor->fd - DESCRIPTOR_FIRST;
    descriptors[at] = NULL;
    if (at < first_free)
        first_free = at;
    list_remove(&descriptor->of_process);
    list_remove(&descriptor->of_kind);
    descriptor->kind->close(descriptor);
}

void descriptor_notify(struct descriptor *descriptor)
{
    for (struct list *at = descriptor->watches.next; at != &descriptor->watches; at = at->next) {
        struct watch *watch = CONTAINER_OF(at, struct watch, of_descriptor);
        if (watch->epoll)
            epoll_report(watch);
        else if (descriptor_poll(descriptor) & watch->interest)
            thread_wake(watch->thread);
    }
}

/* ---- poll(2), of one descriptor ---- */

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    struct descriptor *descriptor = count == 1 && fds->fd >= 0 ? descriptor_find(fds->fd) : NULL;
    struct watch watch = {.thread = kernel_current()};
    uint32_t interest =
        count == 1 ? (uint32_t)(unsigned short)fds->events | EPOLLERR | EPOLLHUP : 0;
    watch.interest = interest;
    fds->revents = 0;
    if (!descriptor || !(descriptor_poll(descriptor) & interest)) {
        if (descriptor)
            watch_add(&watch, descriptor);
        thread_wait(timeout_ms < 0 ? -1 : (int64_t)timeout_ms * 1000);
        if (descriptor)
            watch_remove(&watch);
    }
    if (descriptor) /* poll(2) and epoll(7) have the same bits */
        fds->revents = (short)(descriptor_poll(descriptor) & interest);
    return fds->revents != 0;
}

/* ---- eventfd(2) ---- */

struct event_descriptor {
    struct descriptor base;
    uint64_t count;
};

static uint32_t eventfd_poll(const struct descriptor *descriptor)
{
    return EPOLLOUT | (((const struct event_descriptor *)descriptor)->count ? EPOLLIN : 0);
}

static ssize_t eventfd_take(struct descriptor *descriptor, void *data, size_t bytes)
{
    struct event_descriptor *self = (struct event_descriptor *)descriptor;
    if (self->count == 0 || bytes < sizeof(self->count)) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(data, &self->count, sizeof(self->count));
    self->count = 0;
    return sizeof(self->count);
}

static ssize_t eventfd_add(struct descriptor *descriptor, const void *data, size_t bytes)
{
    struct event_descriptor *self = (struct event_descriptor *)descriptor;
    uint64_t more;
    memcpy(&more, data, sizeof(more));
    self->count += more;
    descriptor_notify(descriptor);
    return (ssize_t)bytes;
}

static void descriptor_free(struct descriptor *descriptor)
{
    kernel_free(descriptor);
}

int __wrap_eventfd(unsigned count, int flags);

int __wrap_eventfd(unsigned count, int flags)
{
    static const struct descriptor_kind KIND = {
        .poll = eventfd_poll, .read = eventfd_take, .write = eventfd_add, .close = descriptor_free};
    struct event_descriptor *self = kernel_alloc(sizeof(*self));
    (void)flags;
    self->count = count;
    return descriptor_open(&self->base, &KIND);
}

/* ---- signalfd(2) ---- */

static uint32_t signalfd_poll(const struct descriptor *descriptor)
{
    return descriptor->process->signals ? EPOLLIN : 0;
}

static ssize_t signalfd_take(struct descriptor *descriptor, void *data, size_t bytes)
{
    struct signalfd_siginfo info = {0};
    info.ssi_signo = (uint32_t)process_take_signal(descriptor->process);
    if (info.ssi_signo == 0 || bytes < sizeof(info)) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(data, &info, sizeof(info));
    return sizeof(info);
}

int __wrap_signalfd(int fd, const sigset_t *set, int flags);

int __wrap_signalfd(int fd, const sigset_t *set, int flags)
{
    static const struct descriptor_kind KIND = {
        .poll = signalfd_poll, .read = signalfd_take, .close = descriptor_free};
    struct descriptor *self = kernel_alloc(sizeof(*self));
    (void)fd, (void)set, (void)flags;
    int number = descriptor_open(self, &KIND);
    list_append(&kernel_process()->signal_fds, &self->of_kind);
    return number;
}
