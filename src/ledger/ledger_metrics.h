/*
 * The counters of a ledger. Any thread writes them with relaxed atomics, and the exposition reads them at any
 * time; the values are not from one instant.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_METRICS_H
#define ROLLCALL_LEDGER_LEDGER_METRICS_H

#include "ledger/ledger.h"

#include <stdatomic.h>
#include <stdint.h>

/* Bucket 0 counts the value 0, bucket i values in [2^(i-1), 2^i), and the last one all greater values: for
 * microseconds that is up to 8 seconds. */
enum { LEDGER_HISTOGRAM_BUCKETS = 25 };

struct ledger_histogram {
    _Atomic uint64_t buckets[LEDGER_HISTOGRAM_BUCKETS];
    _Atomic uint64_t sum;
};

struct ledger_metrics {
    _Atomic uint64_t answers[LEDGER_STATUS_COUNT]; /* of the backend, by status */
    _Atomic uint64_t timeouts; /* answered by a client when the time limit passed */
    _Atomic uint64_t commits;
    _Atomic uint64_t commit_failures;
    _Atomic uint64_t checkpoints;
    _Atomic uint64_t reopens;        /* connections reopened after a failure */
    _Atomic uint64_t halted_appends; /* SEV-1: refused because a chat's counter is corrupt */
    _Atomic uint64_t
        duplicate_sequences;     /* SEV-1: of these, their sequence belonged to a message */
    _Atomic uint64_t throttles;  /* DynamoDB: requests refused beyond the capacity, each attempt */
    _Atomic uint64_t conflicts;  /* DynamoDB: transactions cancelled by another one, each attempt */
    _Atomic uint64_t duplicates; /* appends that repeated an earlier one */
    _Atomic uint64_t appends;
    _Atomic uint64_t writes_done; /* writes that the store answered, also with a refusal */
    _Atomic uint64_t over_share;  /* refused: their user had too much waiting */
    _Atomic int64_t writes_waiting;
    _Atomic int64_t reads_waiting;
    _Atomic bool available;           /* false from a failed write until the next successful one */
    struct ledger_histogram write_us; /* from submit to commit */
    struct ledger_histogram read_us;  /* from submit to answer */
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
