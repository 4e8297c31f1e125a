/*
 * How much later than others a frame of a link arrived, by two monotonic clocks that have nothing to do with each other.
 *
 * The difference between the time of arrival and the time of sending is the clocks' difference plus the time on the way.
 * The smallest of the last one to two periods is taken as that of a frame without delay; a period is short enough that the
 * clocks drift apart by less than a millisecond. Zero-initialised memory is valid.
 */
#ifndef ROLLCALL_AGGREGATE_AGGREGATE_LATENESS_H
#define ROLLCALL_AGGREGATE_AGGREGATE_LATENESS_H

#include <stdbool.h>
#include <stdint.h>

enum { AGGREGATE_LATENESS_PERIOD_MS = 10000 };

struct aggregate_lateness {
    bool has_current;
    bool has_previous;
    int64_t since_ms;   /* when the current period began */
    int64_t current_ms; /* the smallest difference of this period, and of the one before */
    int64_t previous_ms;
};

/* Notes a frame and returns how late it is. */
static inline int64_t aggregate_lateness_note(struct aggregate_lateness *lateness, int64_t sent_ms,
                                              int64_t arrived_ms)
{
    int64_t difference_ms = arrived_ms - sent_ms;
    if (lateness->has_current && arrived_ms - lateness->since_ms >= AGGREGATE_LATENESS_PERIOD_MS) {
        lateness->has_previous = true;
        lateness->previous_ms = lateness->current_ms;
        lateness->has_current = false;
    }
    if (!lateness->has_current) {
        lateness->has_current = true;
        lateness->since_ms = arrived_ms;
        lateness->current_ms = difference_ms;
    }
    if (difference_ms < lateness->current_ms)
        lateness->current_ms = difference_ms;
    int64_t least_ms = lateness->current_ms;
    if (lateness->has_previous && lateness->previous_ms < least_ms)
        least_ms = lateness->previous_ms;
    return difference_ms - least_ms;
}

#endif
