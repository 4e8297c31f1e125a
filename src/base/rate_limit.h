/*
 * A rate limit with a burst, in one number: the time at which the budget would be full again (the generic cell rate
 * algorithm). A zero-initialised limit has a full budget. What an action costs is a span of time, so that dear
 * actions cost more than cheap ones.
 */
#ifndef ROLLCALL_BASE_RATE_LIMIT_H
#define ROLLCALL_BASE_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define RATE_SECOND_US INT64_C(1000000)

struct rate {
    int64_t interval_us; /* in which one unit returns; 0: no limit */
    int64_t full_us;     /* in which a whole burst returns */
};

struct rate_limit {
    int64_t due_us; /* when the budget is full */
};

/* `count` units per period, and at most `burst` at once. A count of 0 means no limit. */
static inline struct rate rate_make(uint32_t count, int64_t period_us, uint32_t burst)
{
    int64_t interval_us = count ? period_us / count : 0;
    return (struct rate){interval_us, interval_us * (burst ? burst : 1)};
}

/* Takes what costs `cost_us`; a full budget pays for anything. Returns 0, or, when the budget is too low, the time until
 * it suffices. */
static inline int64_t rate_limit_wait_ms(struct rate_limit *limit, const struct rate *rate,
                                         int64_t cost_us, int64_t now_ms)
{
    int64_t now_us = now_ms * 1000;
    int64_t due_us = limit->due_us > now_us ? limit->due_us : now_us;
    due_us += cost_us < rate->full_us ? cost_us : rate->full_us;
    if (due_us - now_us > rate->full_us)
        return (due_us - rate->full_us - now_us + 999) / 1000;
    limit->due_us = due_us;
    return 0;
}

/* The same, as a question: *retry_after_ms is 0 or the time until the budget suffices. */
static inline bool rate_limit_take(struct rate_limit *limit, const struct rate *rate,
                                   int64_t cost_us, int64_t now_ms, int64_t *retry_after_ms)
{
    *retry_after_ms = rate_limit_wait_ms(limit, rate, cost_us, now_ms);
    return *retry_after_ms == 0;
}

#endif
