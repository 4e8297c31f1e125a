/*
 * What happens next, in virtual time: a heap of events by time, and by the order in which they were set where the times are
 * equal. The owner embeds the event; it may set it again, which moves it, and cancel it. One thread.
 */
#ifndef ROLLCALL_SIM_KERNEL_EVENT_QUEUE_H
#define ROLLCALL_SIM_KERNEL_EVENT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event {
    void (*run)(struct event *event);
    int64_t at_us;
    size_t place; /* in the heap, from 1; 0: not set */
};

/* A place in the heap has what is compared, so that the events themselves are not read. */
struct event_entry {
    int64_t at_us;
    uint64_t order;
    struct event *event;
};

struct event_queue {
    struct event_entry *heap; /* from 1 */
    size_t count;
    size_t capacity;
    uint64_t set_count;
};

/* Aborts when out of memory. */
void event_set(struct event_queue *queue, struct event *event, int64_t at_us);
void event_cancel(struct event_queue *queue, struct event *event);

/* Removes and returns the next event; NULL: there is none. */
struct event *event_take(struct event_queue *queue);

static inline bool event_is_set(const struct event *event)
{
    return event->place != 0;
}

void event_queue_free(struct event_queue *queue);

#endif
