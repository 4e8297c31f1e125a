#include "world/report.h"

#include <inttypes.h>
#include <sys/mman.h>

struct report *report_share(void)
{
    void *shared = mmap(NULL, sizeof(struct report), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? NULL : shared;
}

/* ---- adding ---- */

static void report_sum(uint64_t *sum, uint64_t more)
{
    if (more > 0)
        __atomic_fetch_add(sum, more, __ATOMIC_RELAXED);
}

static void report_keep_worst(uint64_t *worst, uint64_t value)
{
    uint64_t before = __atomic_load_n(worst, __ATOMIC_RELAXED);
    while (value > before && !__atomic_compare_exchange_n(worst, &before, value, false,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void report_add_delays(struct report *report, const struct world *world)
{
    for (size_t lie = 0; lie < LIE_COUNT; lie++) {
        const struct delays *delays = &world->delays[lie];
        for (size_t i = 0; i < INVARIANTS_SAMPLES; i++)
            report_sum(&report->delays[lie][i], delays->counts[i]);
        report_keep_worst(&report->worst_us[lie], (uint64_t)delays->worst_us);
    }
}

void report_add(struct report *report, const struct world *world, uint64_t processor_ms)
{
    const struct world_counts *counts = &world->counts;
    report_sum(&report->seeds, 1);
    report_sum(&report->violated, world->is_violated);
    report_sum(&report->virtual_ms, (uint64_t)kernel_now_us() / 1000);
    report_sum(&report->processor_ms, processor_ms);
    report_sum(&report->steps, kernel_turns());
    report_sum(&report->crashes, counts->crashes);
    report_sum(&report->acknowledged, counts->acknowledged);
    report_sum(&report->delivered, counts->delivered);
    report_sum(&report->told, counts->told);
    report_sum(&report->answered, counts->answered);
    report_sum(&report->calls, counts->calls);
    report_sum(&report->settings, counts->settings);
    for (size_t i = 0; i < FAULT_KIND_COUNT; i++)
        report_sum(&report->faults[i], world->faults.counts[i]);
    if (world->is_violated)
        report_sum(&report->violations[world->violated], 1);
    report_add_delays(report, world);
}

/* ---- printing ---- */

int64_t report_find_percentile_us(const uint64_t counts[INVARIANTS_SAMPLES], unsigned per_mille)
{
    uint64_t total = 0, seen = 0;
    for (size_t i = 0; i < INVARIANTS_SAMPLES; i++)
        total += counts[i];
    for (size_t i = 0; i < INVARIANTS_SAMPLES; i++) {
        seen += counts[i];
        if (seen > total * per_mille / 1000)
            return (int64_t)(i + 1) * 100000;
    }
    return 0;
}

static void report_print_row(FILE *out, const char *what, uint64_t count)
{
    fprintf(out, "| %s | %" PRIu64 " |\n", what, count);
}

static void report_print_delay(const struct report *report, FILE *out, enum lie lie,
                               const char *what)
{
    fprintf(out, "| %s, after the change or the fault's end: p99, worst | %.1f s, %.1f s |\n", what,
            (double)report_find_percentile_us(report->delays[lie], 990) / 1e6,
            (double)report->worst_us[lie] / 1e6);
}

static void report_print_faults(const struct report *report, FILE *out)
{
    uint64_t total = 0;
    for (size_t i = 0; i < FAULT_KIND_COUNT; i++)
        total += report->faults[i];
    report_print_row(out, "faults", total);
    for (size_t i = 0; i < FAULT_KIND_COUNT; i++)
        if (report->faults[i] > 0)
            fprintf(out, "| … %s | %" PRIu64 " |\n", fault_name((enum fault_kind)i),
                    report->faults[i]);
}

void report_print(const struct report *report, FILE *out)
{
    fprintf(out, "\n| simulated | |\n|---|---|\n");
    report_print_row(out, "seeds", report->seeds);
    report_print_row(out, "hours of virtual time", report->virtual_ms / 3600000);
    report_print_row(out, "times as fast as real time, on one core",
                     report->processor_ms ? report->virtual_ms / report->processor_ms : 0);
    report_print_row(out, "steps", report->steps);
    report_print_faults(report, out);
    report_print_row(out, "crashes of processes", report->crashes);
    report_print_row(out, "messages acknowledged", report->acknowledged);
    report_print_row(out, "messages delivered", report->delivered);
    report_print_row(out, "presences told", report->told);
    report_print_row(out, "requests with an id answered", report->answered);
    report_print_row(out, "calls", report->calls);
    report_print_row(out, "changes of privacy", report->settings);
    report_print_delay(report, out, LIE_GHOST, "ghosts (online, but gone)");
    report_print_delay(report, out, LIE_FALSE_OFFLINE, "false offline");
    report_print_row(out, "seeds that violated an invariant", report->violated);
    for (size_t i = 0; i < INVARIANT_COUNT; i++)
        if (report->violations[i] > 0)
            fprintf(out, "| … %s | %" PRIu64 " |\n", invariant_name((enum invariant)i),
                    report->violations[i]);
}
