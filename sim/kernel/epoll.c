#include "base/container.h"
#include "kernel/descriptor.h"
#include "kernel/thread.h"

#include <errno.h>

struct epoll {
    struct descriptor base;
    struct list ready;      /* watches */
    struct thread *waiting; /* NULL: nobody waits */
};

/* ---- watches ---- */

void watch_add(struct watch *watch, struct descriptor *descriptor)
{
    watch->descriptor = descriptor;
    list_init(&watch->ready);
    list_append(&descriptor->watches, &watch->of_descriptor);
}

void watch_remove(struct watch *watch)
{
    list_remove(&watch->of_descriptor);
    list_remove(&watch->ready);
    if (watch->epoll)
        kernel_free(watch);
}

void epoll_report(struct watch *watch)
{
    struct epoll *epoll = watch->epoll;
    if (!(descriptor_poll(watch->descriptor) & (watch->interest | EPOLLERR | EPOLLHUP)))
        return;
    if (list_empty(&watch->ready))
        list_append(&epoll->ready, &watch->ready);
    if (epoll->waiting)
        thread_wake(epoll->waiting);
}

static struct watch *epoll_find(struct epoll *epoll, struct descriptor *descriptor)
{
    for (struct list *at = descriptor->watches.next; at != &descriptor->watches; at = at->next) {
        struct watch *watch = CONTAINER_OF(at, struct watch, of_descriptor);
        if (watch->epoll == epoll)
            return watch;
    }
    return NULL;
}

/* ---- the descriptor ---- */

/* Its watches belong to what they watch, which the same process has opened, so a crash closes them too. */
static void epoll_close(struct descriptor *descriptor)
{
    struct epoll *epoll = (struct epoll *)descriptor;
    struct process *process = descriptor->process;
    for (struct list *at = process->descriptors.next; at != &process->descriptors; at = at->next) {
        struct watch *watch = epoll_find(epoll, CONTAINER_OF(at, struct descriptor, of_process));
        if (watch)
            watch_remove(watch);
    }
    kernel_free(epoll);
}

/* Takes what is ready out of the list; level-triggered watches go to its end. */
static int epoll_collect(struct epoll *epoll, struct epoll_event *events, int max)
{
    struct list level;
    int count = 0;
    list_init(&level);
    while (count < max && !list_empty(&epoll->ready)) {
        struct watch *watch = CONTAINER_OF(epoll->ready.next, struct watch, ready);
        uint32_t ready =
            descriptor_poll(watch->descriptor) & (watch->interest | EPOLLERR | EPOLLHUP);
        list_remove(&watch->ready);
        if (!ready)
            continue;
        events[count++] = (struct epoll_event){.events = ready, .data = watch->data};
        if (!(watch->interest & EPOLLET))
            list_append(&level, &watch->ready);
    }
    while (!list_empty(&level)) {
        struct list *first = level.next;
        list_remove(first);
        list_append(&epoll->ready, first);
    }
    return count;
}

/* ---- the calls ---- */

int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int fd, int action, int of, struct epoll_event *event);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms);

int __wrap_epoll_create1(int flags)
{
    static const struct descriptor_kind KIND = {.close = epoll_close};
    struct epoll *epoll = kernel_alloc(sizeof(*epoll));
    (void)flags;
    list_init(&epoll->ready);
    return descriptor_open(&epoll->base, &KIND);
}

int __wrap_epoll_ctl(int fd, int action, int of, struct epoll_event *event)
{
    struct epoll *epoll = (struct epoll *)descriptor_find(fd);
    struct descriptor *descriptor = descriptor_find(of);
    if (!epoll || !descriptor)
        return -1;
    struct watch *watch = epoll_find(epoll, descriptor);
    if ((action == EPOLL_CTL_ADD) == (watch != NULL)) {
        errno = watch ? EEXIST : ENOENT;
        return -1;
    }
    if (action == EPOLL_CTL_DEL) {
        watch_remove(watch);
        return 0;
    }
    if (!watch) {
        watch = kernel_alloc(sizeof(*watch));
        watch->epoll = epoll;
        watch_add(watch, descriptor);
    }
    watch->interest = event->events;
    watch->data = event->data;
    epoll_report(watch);
    return 0;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
    struct epoll *epoll = (struct epoll *)descriptor_find(fd);
    if (!epoll)
        return -1;
    int count = epoll_collect(epoll, events, max);
    if (count > 0)
        return count;
    epoll->waiting = kernel_current();
    thread_wait(timeout_ms < 0 ? -1 : (int64_t)timeout_ms * 1000);
    epoll->waiting = NULL;
    return epoll_collect(epoll, events, max);
}
