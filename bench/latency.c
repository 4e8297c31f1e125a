#include "latency.h"

#include <string.h>

void latency_reset(struct latency *latency)
{
    memset(latency, 0, sizeof(*latency));
}

void latency_add(struct latency *latency, uint64_t duration_ns)
{
    uint64_t bucket = duration_ns / 1000;
    latency->buckets[bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1]++;
    latency->count++;
}

uint64_t latency_quantile_us(const struct latency *latency, double share)
{
    double goal = share * (double)latency->count;
    uint64_t seen = 0;
    for (uint64_t bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
        seen += latency->buckets[bucket];
        if (seen > 0 && (double)seen >= goal)
            return bucket;
    }
    return 0;
}
