#include "base/backoff.h"

int64_t backoff_without_jitter_ms(unsigned failures, int64_t min_ms, int64_t max_ms)
{
    int64_t wait_ms = min_ms < max_ms ? min_ms : max_ms;
    for (unsigned i = 0; i < failures && wait_ms > 0 && wait_ms < max_ms; i++)
        wait_ms = wait_ms <= max_ms / 2 ? wait_ms * 2 : max_ms;
    return wait_ms;
}

int64_t backoff_ms(struct random *random, unsigned failures, int64_t min_ms, int64_t max_ms)
{
    int64_t longest_ms = backoff_without_jitter_ms(failures, min_ms, max_ms);
    int64_t half_ms = longest_ms / 2;
    return half_ms + (int64_t)random_below(random, (uint64_t)(longest_ms - half_ms) + 1);
}
