/*
 * A clock is a value: the time of this turn of the loop. Its owner advances it (the loop from the
 * system, a test or a simulator by hand); all other code reads the fields and never the
 * system's clocks.
 *
 * `now_ms` is monotonic; all waiting is measured with it. `wall_ms` is Unix time in milliseconds;
 * it is only shown or stored. The wall clock may jump, so no decision depends on its differences.
 */
#ifndef ROLLCALL_BASE_CLOCK_H
#define ROLLCALL_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    int64_t now_ms;
    int64_t wall_ms;
};

/* Reads the system's clocks. Only the loop, command-line tools and threads without a loop call
 * it. */
void clock_advance(struct clock *clock);

/* Returns the monotonic clock in microseconds, for measurements only. */
int64_t clock_microseconds(void);

#endif
