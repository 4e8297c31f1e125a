/*
 * A clock is a value: the time as of this turn of the loop. Its owner advances it (the loop from
 * the system, a test or the simulator by hand); everybody else reads the fields and never asks the
 * system.
 *
 * `now_ms` is monotonic and what all waiting is measured in; `wall_ms` is Unix time in milliseconds
 * and only ever shown or stored. The wall clock may jump; no decision is taken from its
 * differences.
 */
#ifndef ROLLCALL_BASE_CLOCK_H
#define ROLLCALL_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    int64_t now_ms;
    int64_t wall_ms;
};

/* Reads the system's clocks. Only the loop, command-line tools and threads of their own call
 * this. */
void clock_advance(struct clock *clock);

/* The monotonic clock in microseconds, for measuring only. */
int64_t clock_microseconds(void);

#endif
