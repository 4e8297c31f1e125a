#include "metrics/exposition_text.h"

#include "metrics/metric_row.h"
#include "metrics/process.h"

#define MICROSECONDS 1e-6

enum { LAST_FINITE_BUCKET = METRICS_HISTOGRAM_BUCKETS - 2 };

static double bound_s(size_t bucket)
{
    return (double)(UINT64_C(1) << bucket) * MICROSECONDS;
}

double exposition_text_quantile(const struct exposition_histogram *now,
                                const struct exposition_histogram *base, double quantile)
{
    uint64_t total = 0;
    for (size_t i = 0; i < METRICS_HISTOGRAM_BUCKETS; i++)
        total += now->buckets[i] - base->buckets[i];
    if (total == 0)
        return 0;
    double rank = quantile * (double)total;
    double below = 0;
    for (size_t i = 0; i <= LAST_FINITE_BUCKET; i++) {
        double count = (double)(now->buckets[i] - base->buckets[i]);
        if (count > 0 && below + count >= rank) {
            double from_s = i == 0 ? 0 : bound_s(i - 1);
            return from_s + (bound_s(i) - from_s) * (rank - below) / count;
        }
        below += count;
    }
    return bound_s(LAST_FINITE_BUCKET);
}

static void write_head(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_printf(out, "# HELP rollcall_%s %s\n# TYPE rollcall_%s %s\n", name, help, name, type);
}

static int64_t growth(const struct exposition_totals *now, const struct exposition_totals *base,
                      enum metric metric)
{
    return now->values[metric] - base->values[metric];
}

static double rate(const struct exposition_text *text, enum metric counter)
{
    int64_t elapsed_ms = text->now.taken_ms - text->rate_base.taken_ms;
    if (elapsed_ms <= 0)
        return 0;
    return (double)growth(&text->now, &text->rate_base, counter) * 1000 / (double)elapsed_ms;
}

/* Part and whole are not read at the same instant; a share above 1 would be nonsense all the same. */
static double share(int64_t part, int64_t whole)
{
    if (whole <= 0)
        return 0;
    return part < whole ? (double)part / (double)whole : 1;
}

static double computed(const struct exposition_text *text, const struct metric_row *row)
{
    int64_t part = growth(&text->now, &text->recent_base, row->source);
    int64_t other = growth(&text->now, &text->recent_base, row->other);
    switch (row->shown) {
    case METRIC_SHOWN_RATE:
        return rate(text, row->source);
    case METRIC_SHOWN_SHARE_OF:
        return share(part, other);
    case METRIC_SHOWN_SHARE_BESIDE:
        return share(part, part + other);
    default:
        return exposition_text_quantile(&text->now.latencies[row->latency],
                                        &text->recent_base.latencies[row->latency], 0.99);
    }
}

static void write_metric(const struct exposition_text *text, enum metric metric)
{
    const struct metric_row *row = &metric_rows[metric];
    int64_t value = text->now.values[metric];
    write_head(text->out, row->name, row->shown == METRIC_SHOWN_COUNTER ? "counter" : "gauge",
               row->help);
    buffer_printf(text->out, "rollcall_%s ", row->name);
    switch (row->shown) {
    case METRIC_SHOWN_COUNTER:
    case METRIC_SHOWN_SUM:
    case METRIC_SHOWN_LARGEST:
    case METRIC_SHOWN_SMALLEST:
        buffer_append_int(text->out, value);
        break;
    case METRIC_SHOWN_LARGEST_MILLE:
        buffer_printf(text->out, "%.9g", (double)value / 1000);
        break;
    default:
        buffer_printf(text->out, "%.9g", computed(text, row));
    }
    buffer_append_byte(text->out, '\n');
}

static void write_histogram(struct buffer *out, const struct metric_latency_row *row,
                            const struct exposition_histogram *histogram)
{
    uint64_t below = 0;
    write_head(out, row->name, "histogram", row->help);
    for (size_t i = 0; i <= LAST_FINITE_BUCKET; i++) {
        below += histogram->buckets[i];
        buffer_printf(out, "rollcall_%s_bucket{le=\"%.9g\"} %llu\n", row->name, bound_s(i),
                      (unsigned long long)below);
    }
    below += histogram->buckets[LAST_FINITE_BUCKET + 1];
    buffer_printf(out, "rollcall_%s_bucket{le=\"+Inf\"} %llu\n", row->name,
                  (unsigned long long)below);
    buffer_printf(out, "rollcall_%s_sum %.6f\nrollcall_%s_count %llu\n", row->name,
                  (double)histogram->sum_us * MICROSECONDS, row->name, (unsigned long long)below);
}

static void write_known(struct buffer *out, const char *name, const char *help, int64_t value)
{
    if (value < 0)
        return;
    write_head(out, name, "gauge", help);
    buffer_printf(out, "rollcall_%s %lld\n", name, (long long)value);
}

static void write_process(const struct exposition_text *text)
{
    struct buffer *out = text->out;
    write_head(out, "build_info", "gauge", "1, with the version as a label");
    buffer_printf(out, "rollcall_build_info{version=\"%s\"} 1\n", ROLLCALL_VERSION);
    write_head(out, "process_start_time_seconds", "gauge",
               "Unix time at which the process started");
    buffer_printf(out, "rollcall_process_start_time_seconds %.3f\n",
                  (double)text->start_wall_ms / 1000);
    write_known(out, "process_resident_memory_bytes", "Memory of the process in RAM",
                process_resident_bytes());
    write_known(out, "process_open_fds", "Open file descriptors", process_open_fds());
}

void exposition_text_write(const struct exposition_text *text)
{
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++)
        write_metric(text, metric);
    for (enum metrics_latency latency = 0; latency < LATENCY_COUNT; latency++)
        write_histogram(text->out, &metric_latency_rows[latency], &text->now.latencies[latency]);
    write_process(text);
}
