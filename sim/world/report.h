/*
 * What many runs simulated, as a table for docs/PROOF.md. Each run is a process of its own, so the sums are in memory
 * that they share, and are added to without locks.
 */
#ifndef ROLLCALL_SIM_WORLD_REPORT_H
#define ROLLCALL_SIM_WORLD_REPORT_H

#include "world/world.h"

#include <stdio.h>

/* All are sums, except the worst delays. */
struct report {
    uint64_t seeds;
    uint64_t violated;
    uint64_t virtual_ms;
    uint64_t processor_ms;
    uint64_t steps;
    uint64_t crashes;
    uint64_t acknowledged;
    uint64_t delivered;
    uint64_t told;
    uint64_t answered;
    uint64_t calls;
    uint64_t settings;
    uint64_t faults[FAULT_KIND_COUNT];
    uint64_t violations[INVARIANT_COUNT];
    uint64_t delays[LIE_COUNT][INVARIANTS_SAMPLES];
    uint64_t worst_us[LIE_COUNT];
};

/* Returns zeros that processes share which are forked from now on; NULL: out of memory. Never freed. */
struct report *report_share(void);

void report_add(struct report *report, const struct world *world, uint64_t processor_ms);

/* The delay that all but so many of a thousand have reached, rounded up to a tenth of a second. */
int64_t report_find_percentile_us(const uint64_t counts[INVARIANTS_SAMPLES], unsigned per_mille);

void report_print(const struct report *report, FILE *out);

#endif
