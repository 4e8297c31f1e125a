#include "net/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

bool loop_init(struct loop *loop)
{
    memset(loop, 0, sizeof(*loop));
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0)
        return false;
    loop->read_buffer = malloc(LOOP_READ_BYTES);
    if (!loop->read_buffer) {
        close(loop->epoll_fd);
        return false;
    }
    loop->advance = clock_advance;
    loop->advance(&loop->clock);
    wheel_init(&loop->wheel, loop->clock.now_ms);
    loop->tasks_end = &loop->tasks;
    return true;
}

void loop_free(struct loop *loop)
{
    close(loop->epoll_fd);
    free(loop->read_buffer);
    loop->read_buffer = NULL;
}

static bool loop_control_epoll(struct loop *loop, int action, struct loop_source *source,
                               uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    return epoll_ctl(loop->epoll_fd, action, source->fd, &event) == 0;
}

bool loop_add(struct loop *loop, struct loop_source *source)
{
    return loop_control_epoll(loop, EPOLL_CTL_ADD, source,
                              EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

bool loop_rebind(struct loop *loop, struct loop_source *source)
{
    return loop_control_epoll(loop, EPOLL_CTL_MOD, source,
                              EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

bool loop_add_level(struct loop *loop, struct loop_source *source)
{
    return loop_control_epoll(loop, EPOLL_CTL_ADD, source, EPOLLIN);
}

bool loop_watch_level(struct loop *loop, struct loop_source *source, uint32_t events,
                      bool is_registered)
{
    return loop_control_epoll(loop, is_registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, source, events);
}

void loop_remove(struct loop *loop, struct loop_source *source)
{
    loop_control_epoll(loop, EPOLL_CTL_DEL, source, 0);
    for (size_t i = 0; i < loop->unhandled_count; i++)
        if (loop->unhandled[i].data.ptr == source)
            loop->unhandled[i].data.ptr = NULL;
}

void loop_defer(struct loop *loop, struct loop_task *task)
{
    if (task->queued)
        return;
    task->queued = true;
    task->next = NULL;
    *loop->tasks_end = task;
    loop->tasks_end = &task->next;
}

static int loop_limit_wait_ms(const struct loop *loop, int wait_ms)
{
    if (loop->tasks)
        return 0;
    int64_t next = wheel_next_ms(&loop->wheel);
    if (next == INT64_MAX)
        return wait_ms;
    int64_t left = next - loop->clock.now_ms;
    if (left < 0)
        left = 0;
    if (wait_ms >= 0 && left > wait_ms)
        return wait_ms;
    return left > INT32_MAX ? INT32_MAX : (int)left;
}

int64_t loop_turn_us(const struct loop *loop)
{
    return clock_microseconds() - loop->turn_started_us;
}

void loop_turn(struct loop *loop, int wait_ms)
{
    struct epoll_event events[LOOP_EVENTS_MAX];
    int count =
        epoll_wait(loop->epoll_fd, events, LOOP_EVENTS_MAX, loop_limit_wait_ms(loop, wait_ms));
    loop->advance(&loop->clock);
    loop->turn_started_us = clock_microseconds();
    loop->unhandled = events;
    loop->unhandled_count = count > 0 ? (size_t)count : 0;
    while (loop->unhandled_count > 0) {
        const struct epoll_event *event = loop->unhandled++;
        struct loop_source *source = event->data.ptr;
        loop->unhandled_count--;
        if (source) /* otherwise it was removed meanwhile */
            source->on_ready(source, event->events);
    }
    wheel_advance(&loop->wheel, loop->clock.now_ms, LOOP_TIMERS_MAX);
    struct loop_task *task = loop->tasks;
    loop->tasks = NULL;
    loop->tasks_end = &loop->tasks;
    while (task) {
        struct loop_task *next = task->next;
        task->queued = false;
        task->run(task);
        task = next;
    }
}

void loop_run(struct loop *loop)
{
    while (!atomic_load_explicit(&loop->stopping, memory_order_acquire))
        loop_turn(loop, -1);
}

void loop_stop(struct loop *loop)
{
    atomic_store_explicit(&loop->stopping, true, memory_order_release);
}
