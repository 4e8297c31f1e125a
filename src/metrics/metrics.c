#include "metrics/metrics.h"

/* There is one writer, so a load and a store suffice; a locked addition costs ten times as much. */
static void metrics_histogram_grow(_Atomic uint64_t *counter, uint64_t amount)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + amount, memory_order_relaxed);
}

void metrics_latency(struct metrics *metrics, enum metrics_latency latency, int64_t microseconds)
{
    uint64_t duration_us = microseconds > 0 ? (uint64_t)microseconds : 0;
    struct metrics_histogram *histogram = &metrics->latencies[latency];
    unsigned bucket = duration_us <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(duration_us - 1);
    if (bucket >= METRICS_HISTOGRAM_BUCKETS)
        bucket = METRICS_HISTOGRAM_BUCKETS - 1;
    metrics_histogram_grow(&histogram->buckets[bucket], 1);
    metrics_histogram_grow(&histogram->sum_us, duration_us);
}
