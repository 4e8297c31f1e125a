/*
 * The exposition shows what all workers counted, as Prometheus' text format 0.0.4.
 *
 * One per process, shared by the workers. Before the threads start, each worker's `struct metrics` is
 * added; from then on nothing in that list changes. One worker takes a sample of all totals each
 * second; rates, shares and percentiles compare the present with the youngest sample that is as old
 * as their window, or the oldest there is. A stalled sampler makes windows longer, never wrong.
 *
 * Samples are behind a mutex that is held for a copy of a few kilobytes. The workers' values are read
 * while they are counted: each is right, together they are not one instant.
 */
#ifndef ROLLCALL_METRICS_EXPOSITION_H
#define ROLLCALL_METRICS_EXPOSITION_H

#include "base/buffer.h"
#include "metrics/metrics.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* One more than the widest window has seconds, so that a sample of its age exists. */
enum { EXPOSITION_SAMPLES = METRICS_RECENT_WINDOW_S + 1 };

struct exposition_histogram {
    uint64_t buckets[METRICS_HISTOGRAM_BUCKETS];
    uint64_t sum_us;
};

/* All workers together, at one time. */
struct exposition_totals {
    int64_t taken_ms;
    int64_t values[METRIC_COUNT];
    struct exposition_histogram latencies[LATENCY_COUNT];
};

struct exposition {
    struct metrics *workers[METRICS_WORKERS_MAX]; /* borrowed */
    size_t worker_count;
    int64_t start_wall_ms;

    pthread_mutex_t mutex; /* guards what follows */
    struct exposition_totals samples[EXPOSITION_SAMPLES];
    size_t sample_count; /* ever taken; the place of the next is this modulo the ring's size */
};

/* Starts with a sample of nothing at `now_ms`. `start_wall_ms` is shown as the process's start. */
void exposition_init(struct exposition *exposition, int64_t now_ms, int64_t start_wall_ms);
void exposition_free(struct exposition *exposition);

/* Borrows a worker's zeroed values until exposition_free(). Before the threads start; at most
 * METRICS_WORKERS_MAX times. */
void exposition_add(struct exposition *exposition, struct metrics *metrics);

/* To be called once a second, by one thread. */
void exposition_sample(struct exposition *exposition, int64_t now_ms);

/* Appends the whole text. Any thread. */
void exposition_write(struct buffer *out, struct exposition *exposition, int64_t now_ms);

#endif
