/*
 * A histogram of round trips with a bucket per microsecond; the last bucket counts all longer ones.
 */
#ifndef ROLLCALL_BENCH_LATENCY_H
#define ROLLCALL_BENCH_LATENCY_H

#include <stdint.h>

#define LATENCY_BUCKETS 100000

struct latency {
    uint64_t count;
    uint32_t buckets[LATENCY_BUCKETS];
};

void latency_reset(struct latency *latency);
void latency_add(struct latency *latency, uint64_t duration_ns);

/* The smallest duration that a `share` (0 to 1) of all did not exceed; 0 if there are none. */
uint64_t latency_quantile_us(const struct latency *latency, double share);

#endif
