/*
 * A rate limit per second with a burst, in one number: the time at which the next unit would be due if all
 * came evenly (the generic cell rate algorithm). A zero-initialised limit allows a whole burst.
 */
#ifndef ROLLCALL_CONNECTION_RATE_LIMIT_H
#define ROLLCALL_CONNECTION_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct rate_limit {
    int64_t due_us;
};

/* Takes one unit. Returns false when there is none; *retry_after_ms is then the time until there is one. */
static inline bool rate_limit_take(struct rate_limit *limit, uint32_t per_second, uint32_t burst,
                                   int64_t now_ms, int64_t *retry_after_ms)
{
    int64_t interval_us = 1000000 / (int64_t)(per_second ? per_second : 1);
    int64_t tolerance_us = interval_us * ((int64_t)burst - 1);
    int64_t now_us = now_ms * 1000;
    int64_t due_us = limit->due_us > now_us ? limit->due_us : now_us;
    if (due_us - now_us > tolerance_us) {
        *retry_after_ms = (due_us - tolerance_us - now_us + 999) / 1000;
        return false;
    }
    limit->due_us = due_us + interval_us;
    return true;
}

#endif
