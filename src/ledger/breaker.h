/*
 * A circuit breaker's states, without I/O: who may ask now, and what the answers mean.
 *
 *             failure_threshold failures within failure_window
 *   CLOSED ───────────────────────────────────────────────────► OPEN ◄────────┐
 *     ▲                                     open_duration later  │            │ a probe failed
 *     │                                                          ▼            │
 *     └───────────────── probe_count probes succeeded ─────── HALF_OPEN ──────┘
 *
 * Whoever is admitted holds a ticket and reports how it went. A ticket is of the state it was given in:
 * a report that comes after the next change of state says nothing about the new one and is ignored, so
 * a slow answer from before an outage cannot pass for a probe.
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
    BREAKER_NEITHER, /* says nothing about what is behind it; a probe's place is free again */
};

struct breaker_limits {
    uint32_t failure_threshold; /* from 1 */
    uint32_t probe_count;       /* from 1 */
    int64_t failure_window_ms;
    int64_t open_duration_ms;
};

struct breaker {
    struct breaker_limits limits;
    enum breaker_state state;
    uint32_t ticket;      /* of this state; grows with every change */
    int64_t *failures_ms; /* the last failure_threshold of this CLOSED state, a ring */
    uint32_t failures;    /* noted in it, ever */
    uint32_t probes_out;  /* HALF_OPEN: admitted, and not reported as NEITHER */
    uint32_t probes_passed;
    int64_t opened_at_ms;
};

/* False when memory is short. */
bool breaker_init(struct breaker *breaker, const struct breaker_limits *limits);
void breaker_free(struct breaker *breaker);

/* True with a ticket (never 0) for who may ask. False: not now. */
bool breaker_admit(struct breaker *breaker, int64_t now_ms, uint32_t *ticket);

/* How it went. */
void breaker_report(struct breaker *breaker, uint32_t ticket, enum breaker_result result,
                    int64_t now_ms);

/* How long it will stay OPEN; 0 in the other states. */
int64_t breaker_open_for_ms(const struct breaker *breaker, int64_t now_ms);

const char *breaker_state_name(enum breaker_state state);

#endif
