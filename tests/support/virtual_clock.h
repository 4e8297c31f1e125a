/*
 * A clock that a test advances by hand.
 *
 * The functions with a `void *` are hooks of a conformance suite, for backends whose first field is the clock.
 */
#ifndef ROLLCALL_TESTS_VIRTUAL_CLOCK_H
#define ROLLCALL_TESTS_VIRTUAL_CLOCK_H

#include "base/clock.h"

static inline struct clock virtual_clock_begin(void)
{
    return (struct clock){.now_ms = 10, .wall_ms = 1700000000000};
}

static inline void virtual_clock_pass(void *backend, int64_t duration_ms)
{
    struct clock *clock = backend;
    clock->now_ms += duration_ms;
    clock->wall_ms += duration_ms;
}

static inline int64_t virtual_clock_wall_ms(void *backend)
{
    return ((const struct clock *)backend)->wall_ms;
}

#endif
