/*
 * A hierarchical timing wheel: timers by the hundred thousand, each set, moved and cancelled in
 * constant time, with a resolution of one millisecond.
 *
 * Level 0 has a slot for each of the next 64 milliseconds, level 1 for each of the next 64 × 64,
 * and so on; a timer waits in the coarsest slot that contains its time and moves down as that comes
 * near. A timer never fires early. It is embedded in what it belongs to and holds no memory of its
 * own; cancel it before that memory goes. Timers further away than the last level reaches wait
 * there and are placed anew. One thread.
 */
#ifndef ROLLCALL_BASE_WHEEL_H
#define ROLLCALL_BASE_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WHEEL_LEVELS = 5, WHEEL_SLOT_BITS = 6, WHEEL_SLOTS = 1 << WHEEL_SLOT_BITS };

struct wheel_timer {
    struct wheel_timer *next;
    struct wheel_timer **link; /* what points to this timer; NULL when it is not set */
    int64_t at_ms;
    void (*fire)(struct wheel_timer *timer);
};

struct wheel {
    int64_t now_ms; /* everything up to here has fired */
    uint64_t occupied[WHEEL_LEVELS];
    struct wheel_timer *slots[WHEEL_LEVELS][WHEEL_SLOTS];
    struct wheel_timer *due;    /* set to a time that had passed: for the next advance */
    struct wheel_timer *firing; /* their time has come */
};

void wheel_init(struct wheel *wheel, int64_t now_ms);

/* Sets or moves a timer; a time that has passed fires at the next wheel_advance(), not in the one
 * that is running. */
void wheel_set(struct wheel *wheel, struct wheel_timer *timer, int64_t at_ms);

void wheel_cancel(struct wheel *wheel, struct wheel_timer *timer);

static inline bool wheel_is_set(const struct wheel_timer *timer)
{
    return timer->link != NULL;
}

/* Fires what is due at `now_ms`, at most `max` timers; the rest stays due for the next call. A
 * firing timer is no longer set and may be set again, or freed, by its callback. */
size_t wheel_advance(struct wheel *wheel, int64_t now_ms, size_t max);

/* A time at or before which wheel_advance() need not be called; INT64_MAX when no timer is set. */
int64_t wheel_next_ms(const struct wheel *wheel);

#endif
