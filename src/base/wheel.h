/*
 * A hierarchical timing wheel for hundreds of thousands of timers: each is set, moved and cancelled
 * in constant time, with a resolution of one millisecond.
 *
 * Level 0 has a slot for each of the next 64 milliseconds, level 1 for each of the next 64 × 64, and
 * so on. A timer waits in the coarsest slot that contains its time and moves to finer levels as its
 * time comes near. It never fires early.
 *
 * When a coarse slot comes up, all its timers move: every four seconds those of the next four seconds, which may be all
 * that there are. So at most WHEEL_MOVES_MAX move in one advance, and time stands still until the rest has moved. A phase
 * shifts the slots against those of other wheels, so that threads and processes with one clock do not move theirs in the
 * same moment.
 *
 * A timer is embedded in its owner's struct and holds no
 * memory; cancel it before that struct is freed. A timer beyond the last level waits there and is
 * placed again. One thread.
 */
#ifndef ROLLCALL_BASE_WHEEL_H
#define ROLLCALL_BASE_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WHEEL_LEVELS = 5,
    WHEEL_SLOT_BITS = 6,
    WHEEL_SLOTS = 1 << WHEEL_SLOT_BITS,
    WHEEL_MOVES_MAX = 1024,
    WHEEL_PHASES =
        1 << (3 * WHEEL_SLOT_BITS), /* beyond this the next slots to come up are the same */
};

struct wheel_timer;

/* Runs when the timer is due; the timer is not set then. May set it again or free its owner. */
typedef void (*wheel_fire)(struct wheel_timer *timer);

struct wheel_timer {
    struct wheel_timer *next;
    struct wheel_timer **link; /* the pointer to this timer; NULL if it is not set */
    int64_t at_ms;
    wheel_fire fire;
};

struct wheel {
    int64_t now_ms;   /* all timers before this time have fired */
    int64_t phase_ms; /* added to a time to find its slot */
    uint64_t occupied[WHEEL_LEVELS];
    struct wheel_timer *slots[WHEEL_LEVELS][WHEEL_SLOTS];
    struct wheel_timer *due;    /* set to a past time: fire at the next advance */
    struct wheel_timer *firing; /* due in the running advance */
    struct wheel_timer *moving; /* of slots that have come up: due now, or to be placed again */
};

void wheel_init(struct wheel *wheel, int64_t now_ms);

/* Sets the phase, from 0 to WHEEL_PHASES - 1, while no timer is set. */
void wheel_set_phase(struct wheel *wheel, int64_t phase_ms);

/* Sets or moves a timer. A timer set to a past time fires at the next wheel_advance(), not in a
 * running one. */
void wheel_set(struct wheel *wheel, struct wheel_timer *timer, int64_t at_ms);

void wheel_cancel(struct wheel *wheel, struct wheel_timer *timer);

static inline bool wheel_is_set(const struct wheel_timer *timer)
{
    return timer->link != NULL;
}

/* Fires the timers that are due at `now_ms`, at most `max`, and moves at most WHEEL_MOVES_MAX; the others stay for
 * the next wheel_advance(). Returns how many fired. */
size_t wheel_advance(struct wheel *wheel, int64_t now_ms, size_t max);

/* Returns the earliest time at which wheel_advance() can have work; INT64_MAX if no timer is
 * set. */
int64_t wheel_next_ms(const struct wheel *wheel);

#endif
