/*
 * The states of a circuit breaker, without I/O: it decides which operations may start, from the
 * results of earlier ones.
 *
 *             failure_threshold failures within failure_window_ms
 *   CLOSED ───────────────────────────────────────────────────► OPEN ◄────────┐
 *     ▲                                     open_duration later  │            │ a probe failed
 *     │                                                          ▼            │
 *     └───────────────── probe_count probes succeeded ─────── HALF_OPEN ──────┘
 *
 * An admitted operation gets a ticket and reports its result with it. A ticket belongs to the state in
 * which it was given. A report that comes after a change of state is ignored, so that a slow answer from
 * before an outage does not count as a probe.
 *
 * `now_ms` is passed in and monotonic. One thread at a time.
 */
#ifndef ROLLCALL_LEDGER_BREAKER_H
#define ROLLCALL_LEDGER_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };

enum breaker_result {
    BREAKER_SUCCESS,
    BREAKER_FAILURE,
    BREAKER_NEITHER, /* no evidence either way; another probe may take its place */
};

struct breaker_limits {
    uint32_t failure_threshold; /* at least 1 */
    uint32_t probe_count;       /* at least 1 */
    int64_t failure_window_ms;
    int64_t open_duration_ms;
};

struct breaker {
    struct breaker_limits limits;
    enum breaker_state state;
    uint32_t ticket;      /* of this state; changes with every change of state */
    int64_t *failures_ms; /* a ring of the last failure_threshold failures in this CLOSED state */
    uint32_t failures;    /* ever written to the ring */
    uint32_t probes_out;  /* HALF_OPEN: admitted and not reported as NEITHER */
    uint32_t probes_passed;
    int64_t opened_at_ms;
};

/* Returns false when out of memory. */
bool breaker_init(struct breaker *breaker, const struct breaker_limits *limits);
void breaker_free(struct breaker *breaker);

/* Returns whether an operation may start, with its ticket (never 0). */
bool breaker_admit(struct breaker *breaker, int64_t now_ms, uint32_t *ticket);

/* Reports the result of an admitted operation. */
void breaker_report(struct breaker *breaker, uint32_t ticket, enum breaker_result result,
                    int64_t now_ms);

/* Returns for how long the breaker stays OPEN; 0 in the other states. */
int64_t breaker_open_for_ms(const struct breaker *breaker, int64_t now_ms);

const char *breaker_state_name(enum breaker_state state);

#endif
