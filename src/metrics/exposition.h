/*
 * The exposition shows the metrics of all workers in Prometheus' text format 0.0.4.
 *
 * There is one per process, shared by the workers. Each worker's `struct metrics` is added before
 * the threads start; afterwards that list does not change. One worker takes a sample of all totals
 * each second. Rates, shares and percentiles compare the present with the youngest sample that is
 * at least as old as their period, or with the oldest sample. A stalled sampler makes periods
 * longer, never wrong.
 *
 * A mutex guards the samples; it is held while a few kilobytes are copied. The workers' values are
 * read while they change: each value is right, but together they are not one instant.
 */
#ifndef ROLLCALL_METRICS_EXPOSITION_H
#define ROLLCALL_METRICS_EXPOSITION_H

#include "base/buffer.h"
#include "metrics/metrics.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* One more than the seconds of the longest period, so that a sample of that age exists. */
enum { EXPOSITION_SAMPLES = METRICS_RECENT_PERIOD_S + 1 };

struct exposition_histogram {
    uint64_t buckets[METRICS_HISTOGRAM_BUCKETS];
    uint64_t sum_us;
};

/* The values of all workers together, at one time. */
struct exposition_totals {
    int64_t taken_ms;
    int64_t values[METRIC_COUNT];
    struct exposition_histogram latencies[LATENCY_COUNT];
};

struct exposition {
    struct metrics *workers[METRICS_WORKERS_MAX]; /* borrowed */
    size_t worker_count;
    int64_t start_wall_ms;

    pthread_mutex_t mutex; /* guards the fields below */
    struct exposition_totals samples[EXPOSITION_SAMPLES];
    size_t sample_count; /* ever taken; modulo EXPOSITION_SAMPLES, the index of the next one */
};

/* Starts with an empty sample taken at `now_ms`. `start_wall_ms` is shown as the start of the
 * process. */
void exposition_init(struct exposition *exposition, int64_t now_ms, int64_t start_wall_ms);
void exposition_free(struct exposition *exposition);

/* Borrows a worker's zeroed values until exposition_free(). Call it before the threads start, at
 * most METRICS_WORKERS_MAX times. */
void exposition_add(struct exposition *exposition, struct metrics *metrics);

/* Call this once a second, from one thread. */
void exposition_sample(struct exposition *exposition, int64_t now_ms);

/* Appends the whole text. Any thread may call it. */
void exposition_write(struct buffer *out, struct exposition *exposition, int64_t now_ms);

#endif
