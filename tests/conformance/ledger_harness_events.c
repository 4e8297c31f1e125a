#include "conformance/ledger_harness_internal.h"

#include <stdio.h>

static void write_events(void *arg, const struct ledger_events_outcome *outcome)
{
    struct harness *harness = arg;
    if (!harness_begin(harness, outcome->status))
        return;
    harness->event_count = 0;
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_event *event = &outcome->events[i];
        harness_add(harness, " %s@%lld:%.*s", ledger_event_type_name(event->type),
                    (long long)event->time_ms, SLICE_FORMAT(event->subject));
        if (harness->shows_data)
            harness_add(harness, "%.*s", SLICE_FORMAT(event->data));
        if (harness->shows_bodies)
            harness_add(harness, "#%llu:%.*s", (unsigned long long)event->sequence,
                        SLICE_FORMAT(event->body));
        if (event->queue.len)
            harness_add(harness, "(%.*s %.*s)", SLICE_FORMAT(event->queue),
                        SLICE_FORMAT(event->reason));
        if (i < HARNESS_EVENTS_MAX)
            snprintf(harness->events[harness->event_count++], LEDGER_EVENT_POSITION_BYTES_MAX + 1,
                     "%.*s", SLICE_FORMAT(event->position));
    }
    harness_add(harness, "%s", outcome->has_more ? " more" : "");
}

static void write_event_queue(void *arg, const struct ledger_event_queue_outcome *outcome)
{
    struct harness *harness = arg;
    if (!harness_begin(harness, outcome->status))
        return;
    harness_add(harness, " %.*s v%llu", SLICE_FORMAT(outcome->holder),
                (unsigned long long)outcome->lease_version);
    harness->queue_count = outcome->event_count;
    harness->queue_dropped = outcome->dropped;
}

/* Names the listed events from `first` on. */
static size_t name_events(struct harness *harness, size_t first, size_t count,
                          struct slice *positions)
{
    size_t named = 0;
    for (size_t i = first; i < first + count && i < harness->event_count; i++)
        positions[named++] = slice_of(harness->events[i]);
    return named;
}

const char *harness_call_event(struct harness *harness, enum ledger_event_type type, const char *id,
                               const char *caller, const char *callee)
{
    struct ledger_call call = {.id = slice_of(id),
                               .caller = slice_of(caller),
                               .callee = slice_of(callee),
                               .reason = SLICE("ringing"),
                               .started_at_ms = harness->clock.wall_ms};
    ledger_call_event(&harness->client, type, &call, harness_write_change, harness);
    return harness_line(harness);
}

const char *harness_events(struct harness *harness, const char *queue, uint32_t limit)
{
    ledger_events_list(&harness->client, slice_of(queue), limit, write_events, harness);
    return harness_line(harness);
}

const char *harness_events_remove(struct harness *harness, const char *queue, size_t first,
                                  size_t count)
{
    struct slice positions[HARNESS_EVENTS_MAX];
    count = name_events(harness, first, count, positions);
    ledger_events_remove(&harness->client, slice_of(queue), positions, count, harness_write_change,
                         harness);
    return harness_line(harness);
}

const char *harness_events_bury(struct harness *harness, const char *queue, size_t first,
                                size_t count, const char *reason)
{
    struct slice positions[HARNESS_EVENTS_MAX];
    count = name_events(harness, first, count, positions);
    ledger_events_bury(&harness->client, slice_of(queue), positions, count, slice_of(reason),
                       harness_write_change, harness);
    return harness_line(harness);
}

const char *harness_dead_events(struct harness *harness, const char *after_queue,
                                const char *after_position, uint32_t limit)
{
    ledger_dead_events_list(&harness->client, slice_of(after_queue), slice_of(after_position),
                            limit, write_events, harness);
    return harness_line(harness);
}

const char *harness_dead_events_replay(struct harness *harness, const char *queue, size_t first,
                                       size_t count)
{
    struct slice positions[HARNESS_EVENTS_MAX];
    count = name_events(harness, first, count, positions);
    ledger_dead_events_replay(&harness->client, slice_of(queue), positions, count,
                              harness_write_change, harness);
    return harness_line(harness);
}

const char *harness_event_queue(struct harness *harness, const char *queue)
{
    ledger_event_queue_get(&harness->client, slice_of(queue), write_event_queue, harness);
    return harness_line(harness);
}

const char *harness_event_lease(struct harness *harness, const char *queue, const char *holder,
                                uint64_t seen_version)
{
    ledger_event_lease(&harness->client, slice_of(queue), slice_of(holder), seen_version,
                       write_event_queue, harness);
    return harness_line(harness);
}
