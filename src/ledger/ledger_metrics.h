/*
 * What a ledger counts. Written by any thread with relaxed atomics, read by the exposition whenever
 * it likes; a reading is not one instant.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_METRICS_H
#define ROLLCALL_LEDGER_LEDGER_METRICS_H

#include "ledger/ledger.h"

#include <stdatomic.h>
#include <stdint.h>

/* Bucket i counts values in [2^(i-1), 2^i), bucket 0 the value 0, the last one all that is greater:
 * for microseconds that is up to 8 seconds. */
enum { LEDGER_HISTOGRAM_BUCKETS = 25 };

struct ledger_histogram {
    _Atomic uint64_t buckets[LEDGER_HISTOGRAM_BUCKETS];
    _Atomic uint64_t sum;
};

struct ledger_metrics {
    _Atomic uint64_t answers[LEDGER_STATUS_COUNT]; /* by status, as the backend gave them */
    _Atomic uint64_t timeouts;                     /* answered by a client because time ran out */
    _Atomic uint64_t commits;
    _Atomic uint64_t commit_failures;
    _Atomic uint64_t checkpoints;
    _Atomic uint64_t reopens;        /* connections made anew after a failure */
    _Atomic uint64_t halted_appends; /* SEV-1: refused because a chat's counter is corrupt */
    _Atomic uint64_t duplicates;     /* appends that found their first send */
    _Atomic uint64_t appends;
    _Atomic int64_t writes_waiting;
    _Atomic int64_t reads_waiting;
    _Atomic bool available;           /* false from a write that failed until one that did not */
    struct ledger_histogram write_us; /* from the call to the commit */
    struct ledger_histogram read_us;  /* from the call to the answer */
    struct ledger_histogram commit_us;
    struct ledger_histogram group_requests; /* requests in one transaction */
};

static inline void ledger_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static inline void ledger_histogram_add(struct ledger_histogram *histogram, uint64_t value)
{
    unsigned bucket = value ? 64 - (unsigned)__builtin_clzll(value) : 0;
    if (bucket >= LEDGER_HISTOGRAM_BUCKETS)
        bucket = LEDGER_HISTOGRAM_BUCKETS - 1;
    ledger_count(&histogram->buckets[bucket]);
    atomic_fetch_add_explicit(&histogram->sum, value, memory_order_relaxed);
}

#endif
