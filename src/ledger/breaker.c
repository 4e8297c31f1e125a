#include "ledger/breaker.h"

#include <stdlib.h>

bool breaker_init(struct breaker *breaker, const struct breaker_limits *limits)
{
    *breaker = (struct breaker){.limits = *limits, .state = BREAKER_CLOSED, .ticket = 1};
    breaker->failures_ms = calloc(limits->failure_threshold, sizeof(*breaker->failures_ms));
    return breaker->failures_ms != NULL;
}

void breaker_free(struct breaker *breaker)
{
    free(breaker->failures_ms);
    breaker->failures_ms = NULL;
}

/* All changes of state go through here. */
static void set_breaker_state(struct breaker *breaker, enum breaker_state state, int64_t now_ms)
{
    breaker->state = state;
    breaker->ticket = breaker->ticket == UINT32_MAX ? 1 : breaker->ticket + 1;
    breaker->failures = 0;
    breaker->probes_out = 0;
    breaker->probes_passed = 0;
    if (state == BREAKER_OPEN)
        breaker->opened_at_ms = now_ms;
}

bool breaker_admit(struct breaker *breaker, int64_t now_ms, uint32_t *ticket)
{
    if (breaker->state == BREAKER_OPEN && breaker_open_for_ms(breaker, now_ms) == 0)
        set_breaker_state(breaker, BREAKER_HALF_OPEN, now_ms);
    if (breaker->state == BREAKER_OPEN)
        return false;
    if (breaker->state == BREAKER_HALF_OPEN) {
        if (breaker->probes_out == breaker->limits.probe_count)
            return false;
        breaker->probes_out++;
    }
    *ticket = breaker->ticket;
    return true;
}

/* Adds a failure. Returns whether failure_threshold failures lie within failure_window_ms. */
static bool add_breaker_failure(struct breaker *breaker, int64_t now_ms)
{
    uint32_t threshold = breaker->limits.failure_threshold;
    breaker->failures_ms[breaker->failures++ % threshold] = now_ms;
    if (breaker->failures < threshold)
        return false;
    int64_t oldest_ms = breaker->failures_ms[breaker->failures % threshold];
    if (breaker->failures == 2 * threshold)
        breaker->failures = threshold; /* the same slot of the ring, without overflow */
    return now_ms - oldest_ms <= breaker->limits.failure_window_ms;
}

void breaker_report(struct breaker *breaker, uint32_t ticket, enum breaker_result result,
                    int64_t now_ms)
{
    if (ticket != breaker->ticket)
        return;
    bool probing = breaker->state == BREAKER_HALF_OPEN;
    switch (result) {
    case BREAKER_NEITHER:
        if (probing)
            breaker->probes_out--;
        break;
    case BREAKER_SUCCESS:
        if (probing && ++breaker->probes_passed == breaker->limits.probe_count)
            set_breaker_state(breaker, BREAKER_CLOSED, now_ms);
        break;
    case BREAKER_FAILURE:
        if (probing || add_breaker_failure(breaker, now_ms))
            set_breaker_state(breaker, BREAKER_OPEN, now_ms);
        break;
    }
}

int64_t breaker_open_for_ms(const struct breaker *breaker, int64_t now_ms)
{
    int64_t ends_at_ms = breaker->opened_at_ms + breaker->limits.open_duration_ms;
    return breaker->state == BREAKER_OPEN && ends_at_ms > now_ms ? ends_at_ms - now_ms : 0;
}

const char *breaker_state_name(enum breaker_state state)
{
    static const char *const names[] = {
        [BREAKER_CLOSED] = "closed",
        [BREAKER_OPEN] = "open",
        [BREAKER_HALF_OPEN] = "half_open",
    };
    return names[state];
}
