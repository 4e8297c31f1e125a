/*
 * One event loop: epoll, timers, and tasks for the end of the turn. Each worker has exactly one.
 *
 * A turn: wait; advance the clock; give each ready source its events; fire due timers; run the tasks
 * deferred so far. All work of a turn is bounded (LOOP_EVENTS_MAX, LOOP_TIMERS_MAX, what sources read at a
 * time); the rest is done in the next turn, which then does not wait.
 *
 * Sources are edge-triggered and registered once for reading and writing: a source stays marked as
 * readable or writable until a system call returns EAGAIN. Nothing is freed inside a callback: mark it, and
 * free it in a task.
 *
 * The caller owns the memory of sources, timers and tasks. One thread; only loop_stop() and the mailbox
 * (mailbox.h) may be used from others.
 */
#ifndef ROLLCALL_NET_LOOP_H
#define ROLLCALL_NET_LOOP_H

#include "base/clock.h"
#include "base/wheel.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOOP_EVENTS_MAX = 512,
    LOOP_TIMERS_MAX = 2048,
    LOOP_READ_BYTES = 64 * 1024,
};

struct epoll_event;

struct loop_source {
    int fd;
    void (*on_ready)(struct loop_source *source, uint32_t events);
};

struct loop_task {
    struct loop_task *next;
    void (*run)(struct loop_task *task);
    bool queued;
};

struct loop {
    int epoll_fd;
    struct clock clock;                   /* as of this turn */
    void (*advance)(struct clock *clock); /* clock_advance(); virtual time in tests */
    int64_t turn_started_us;
    struct epoll_event *unhandled; /* events of this turn that no source has got yet */
    size_t unhandled_count;
    struct wheel wheel;
    struct loop_task *tasks;
    struct loop_task **tasks_end;
    atomic_bool stopping;
    char *read_buffer; /* LOOP_READ_BYTES, shared by all sources, valid during a callback */
};

/* Returns false, with errno, when there is no epoll descriptor or no memory. */
bool loop_init(struct loop *loop);
void loop_free(struct loop *loop);

/* Registers a source for reading and writing, edge-triggered. Returns false with errno on failure. */
bool loop_add(struct loop *loop, struct loop_source *source);

/* Makes this source the receiver of the descriptor's events, instead of another source. */
bool loop_rebind(struct loop *loop, struct loop_source *source);

/* Level-triggered, reading only: for listeners and eventfds. */
bool loop_add_level(struct loop *loop, struct loop_source *source);

/* Level-triggered, for EPOLLIN, EPOLLOUT or both; again for a source that is registered so: changes for what. */
bool loop_watch_level(struct loop *loop, struct loop_source *source, uint32_t events,
                      bool is_registered);

/* `on_ready` is not called any more, not even in this turn: the memory may be freed. */
void loop_remove(struct loop *loop, struct loop_source *source);

/* Runs the task once at the end of this turn (of the next one when called from a task). */
void loop_defer(struct loop *loop, struct loop_task *task);

static inline void loop_set_timer(struct loop *loop, struct wheel_timer *timer, int64_t at_ms)
{
    wheel_set(&loop->wheel, timer, at_ms);
}

static inline void loop_cancel_timer(struct loop *loop, struct wheel_timer *timer)
{
    wheel_cancel(&loop->wheel, timer);
}

/* Turns until loop_stop(). */
void loop_run(struct loop *loop);

/* One turn that waits at most `wait_ms` (-1: until something happens). Never call it from within a turn,
 * whose callbacks still use the shared buffer. */
void loop_turn(struct loop *loop, int wait_ms);

/* Microseconds since this turn woke up, that is, how long a message has waited. Makes a system call. */
int64_t loop_turn_us(const struct loop *loop);

/* From any thread; takes effect at the end of a turn (wake the loop through its mailbox). */
void loop_stop(struct loop *loop);

#endif
