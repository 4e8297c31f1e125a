#include "kernel/event_queue.h"

#include "kernel/memory.h"

/* Of each place in the heap: they are beside each other, so that few lines of memory are read. */
enum { EVENT_CHILDREN = 4 };

static size_t event_parent(size_t place)
{
    return (place + EVENT_CHILDREN - 2) / EVENT_CHILDREN;
}

static size_t event_first_child(size_t place)
{
    return EVENT_CHILDREN * (place - 1) + 2;
}

static bool event_is_before(const struct event_entry *left, const struct event_entry *right)
{
    return left->at_us != right->at_us ? left->at_us < right->at_us : left->order < right->order;
}

static void event_put(struct event_queue *queue, size_t place, struct event_entry entry)
{
    queue->heap[place] = entry;
    entry.event->place = place;
}

static void event_rise(struct event_queue *queue, size_t place, struct event_entry entry)
{
    for (; place > 1 && event_is_before(&entry, &queue->heap[event_parent(place)]);
         place = event_parent(place))
        event_put(queue, place, queue->heap[event_parent(place)]);
    event_put(queue, place, entry);
}

/* The child that happens first. */
static size_t event_next_child(const struct event_queue *queue, size_t place)
{
    size_t first = event_first_child(place), next = first;
    for (size_t child = first + 1; child < first + EVENT_CHILDREN && child <= queue->count; child++)
        if (event_is_before(&queue->heap[child], &queue->heap[next]))
            next = child;
    return next;
}

static void event_sink(struct event_queue *queue, size_t place, struct event_entry entry)
{
    for (size_t child; event_first_child(place) <= queue->count; place = child) {
        child = event_next_child(queue, place);
        if (!event_is_before(&queue->heap[child], &entry))
            break;
        event_put(queue, place, queue->heap[child]);
    }
    event_put(queue, place, entry);
}

void event_cancel(struct event_queue *queue, struct event *event)
{
    size_t place = event->place;
    if (place == 0)
        return;
    event->place = 0;
    struct event_entry last = queue->heap[queue->count--];
    if (last.event == event)
        return;
    if (place > 1 && event_is_before(&last, &queue->heap[event_parent(place)]))
        event_rise(queue, place, last);
    else
        event_sink(queue, place, last);
}

void event_set(struct event_queue *queue, struct event *event, int64_t at_us)
{
    event_cancel(queue, event);
    if (queue->count + 1 >= queue->capacity) {
        queue->capacity = queue->capacity ? 2 * queue->capacity : 256;
        queue->heap = kernel_realloc(queue->heap, queue->capacity * sizeof(queue->heap[0]));
    }
    event->at_us = at_us;
    event_rise(queue, ++queue->count, (struct event_entry){at_us, queue->set_count++, event});
}

struct event *event_take(struct event_queue *queue)
{
    if (queue->count == 0)
        return NULL;
    struct event *first = queue->heap[1].event;
    event_cancel(queue, first);
    return first;
}

void event_queue_free(struct event_queue *queue)
{
    kernel_free(queue->heap);
    *queue = (struct event_queue){0};
}
