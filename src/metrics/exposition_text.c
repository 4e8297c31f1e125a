#include "metrics/exposition_text.h"

#include "metrics/metric_row.h"
#include "metrics/metric_text.h"

#define MICROSECONDS 1e-6

enum { LAST_FINITE_BUCKET = METRICS_HISTOGRAM_BUCKETS - 2 };

static double exposition_bound_s(size_t bucket)
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
            double from_s = i == 0 ? 0 : exposition_bound_s(i - 1);
            return from_s + (exposition_bound_s(i) - from_s) * (rank - below) / count;
        }
        below += count;
    }
    return exposition_bound_s(LAST_FINITE_BUCKET);
}

static int64_t exposition_growth(const struct exposition_totals *now,
                                 const struct exposition_totals *base, enum metric metric)
{
    return now->values[metric] - base->values[metric];
}

/* Part and whole are not read at the same instant, so the quotient may exceed 1; cut it there. */
static double exposition_share(int64_t part, int64_t whole)
{
    if (whole <= 0)
        return 0;
    return part < whole ? (double)part / (double)whole : 1;
}

static double compute_exposition_value(const struct exposition_text *text,
                                       const struct metric_row *row)
{
    int64_t part = exposition_growth(&text->now, &text->recent_base, row->source);
    int64_t other = exposition_growth(&text->now, &text->recent_base, row->other);
    int64_t elapsed_ms = text->now.taken_ms - text->rate_base.taken_ms;
    switch (row->shown) {
    case METRIC_SHOWN_RATE:
        return elapsed_ms > 0
                   ? (double)exposition_growth(&text->now, &text->rate_base, row->source) * 1000 /
                         (double)elapsed_ms
                   : 0;
    case METRIC_SHOWN_SHARE_OF:
        return exposition_share(part, other);
    case METRIC_SHOWN_SHARE_BESIDE:
        return exposition_share(part, part + other);
    default:
        return exposition_text_quantile(&text->now.latencies[row->latency],
                                        &text->recent_base.latencies[row->latency], 0.99);
    }
}

static void write_exposition_metric(const struct exposition_text *text, enum metric metric)
{
    const struct metric_row *row = &metric_rows[metric];
    int64_t value = text->now.values[metric];
    bool is_counter =
        row->shown == METRIC_SHOWN_COUNTER || row->shown == METRIC_SHOWN_LARGEST_COUNTER;
    metric_text_head(text->out, row->name, is_counter ? "counter" : "gauge", row->help);
    buffer_printf(text->out, "rollcall_%s ", row->name);
    switch (row->shown) {
    case METRIC_SHOWN_COUNTER:
    case METRIC_SHOWN_LARGEST_COUNTER:
    case METRIC_SHOWN_SUM:
    case METRIC_SHOWN_LARGEST:
    case METRIC_SHOWN_SMALLEST:
        buffer_append_int(text->out, value);
        break;
    case METRIC_SHOWN_LARGEST_MILLE:
        buffer_printf(text->out, "%.9g", (double)value / 1000);
        break;
    default:
        buffer_printf(text->out, "%.9g", compute_exposition_value(text, row));
    }
    buffer_append_byte(text->out, '\n');
}

void exposition_text_write(const struct exposition_text *text)
{
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++)
        write_exposition_metric(text, metric);
    double bounds[LAST_FINITE_BUCKET + 1];
    for (size_t i = 0; i <= LAST_FINITE_BUCKET; i++)
        bounds[i] = exposition_bound_s(i);
    for (enum metrics_latency latency = 0; latency < LATENCY_COUNT; latency++) {
        const struct metric_latency_row *row = &metric_latency_rows[latency];
        const struct exposition_histogram *histogram = &text->now.latencies[latency];
        metric_text_histogram(
            text->out, row->name, row->help,
            &(struct metric_text_histogram){.buckets = histogram->buckets,
                                            .bounds = bounds,
                                            .count = METRICS_HISTOGRAM_BUCKETS,
                                            .sum = (double)histogram->sum_us * MICROSECONDS});
    }
    metric_text_process(text->out, text->start_wall_ms);
}
