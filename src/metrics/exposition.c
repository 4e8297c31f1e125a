#include "metrics/exposition.h"

#include "metrics/exposition_text.h"
#include "metrics/metric_row.h"

#include <assert.h>
#include <string.h>

void exposition_init(struct exposition *exposition, int64_t now_ms, int64_t start_wall_ms)
{
    memset(exposition, 0, sizeof *exposition);
    pthread_mutex_init(&exposition->mutex, NULL);
    exposition->start_wall_ms = start_wall_ms;
    exposition->samples[0].taken_ms = now_ms;
    exposition->sample_count = 1;
}

void exposition_free(struct exposition *exposition)
{
    pthread_mutex_destroy(&exposition->mutex);
}

void exposition_add(struct exposition *exposition, struct metrics *metrics)
{
    assert(exposition->worker_count < METRICS_WORKERS_MAX);
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++)
        if (metric_rows[metric].shown == METRIC_SHOWN_SMALLEST)
            metrics_set(metrics, metric, 1);
    exposition->workers[exposition->worker_count++] = metrics;
}

static int64_t combine_exposition_values(enum metric_shown shown, int64_t a, int64_t b)
{
    switch (shown) {
    case METRIC_SHOWN_LARGEST:
    case METRIC_SHOWN_LARGEST_COUNTER:
    case METRIC_SHOWN_LARGEST_MILLE:
        return a > b ? a : b;
    case METRIC_SHOWN_SMALLEST:
        return a < b ? a : b;
    default:
        return a + b;
    }
}

static void sum_exposition_workers(struct exposition_totals *totals,
                                   const struct exposition *exposition, int64_t now_ms)
{
    *totals = (struct exposition_totals){.taken_ms = now_ms};
    for (size_t w = 0; w < exposition->worker_count; w++) {
        struct metrics *worker = exposition->workers[w];
        for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
            int64_t value = atomic_load_explicit(&worker->values[metric], memory_order_relaxed);
            totals->values[metric] = w == 0
                                         ? value
                                         : combine_exposition_values(metric_rows[metric].shown,
                                                                     totals->values[metric], value);
        }
        for (enum metrics_latency latency = 0; latency < LATENCY_COUNT; latency++) {
            struct exposition_histogram *total = &totals->latencies[latency];
            struct metrics_histogram *counted = &worker->latencies[latency];
            for (size_t i = 0; i < METRICS_HISTOGRAM_BUCKETS; i++)
                total->buckets[i] +=
                    atomic_load_explicit(&counted->buckets[i], memory_order_relaxed);
            total->sum_us += atomic_load_explicit(&counted->sum_us, memory_order_relaxed);
        }
    }
}

void exposition_sample(struct exposition *exposition, int64_t now_ms)
{
    struct exposition_totals totals;
    sum_exposition_workers(&totals, exposition, now_ms);
    pthread_mutex_lock(&exposition->mutex);
    exposition->samples[exposition->sample_count++ % EXPOSITION_SAMPLES] = totals;
    pthread_mutex_unlock(&exposition->mutex);
}

/* Returns the youngest sample that is at least `period_s` old, else the oldest. The caller holds
 * the mutex. */
static const struct exposition_totals *find_exposition_sample(const struct exposition *exposition,
                                                              int64_t now_ms, int period_s)
{
    const struct exposition_totals *sample = NULL;
    for (size_t back = 1; back <= EXPOSITION_SAMPLES && back <= exposition->sample_count; back++) {
        sample = &exposition->samples[(exposition->sample_count - back) % EXPOSITION_SAMPLES];
        if (now_ms - sample->taken_ms >= (int64_t)period_s * 1000)
            break;
    }
    return sample;
}

void exposition_write(struct buffer *out, struct exposition *exposition, int64_t now_ms)
{
    struct exposition_text text = {.out = out, .start_wall_ms = exposition->start_wall_ms};
    pthread_mutex_lock(&exposition->mutex);
    text.rate_base = *find_exposition_sample(exposition, now_ms, METRICS_RATE_PERIOD_S);
    text.recent_base = *find_exposition_sample(exposition, now_ms, METRICS_RECENT_PERIOD_S);
    pthread_mutex_unlock(&exposition->mutex);
    sum_exposition_workers(&text.now, exposition, now_ms);
    exposition_text_write(&text);
}
