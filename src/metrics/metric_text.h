/*
 * Single metrics as Prometheus reads them: a help line, a type line, the value. Names stand without
 * `rollcall_`, which all of them begin with. No state.
 */
#ifndef ROLLCALL_METRICS_METRIC_TEXT_H
#define ROLLCALL_METRICS_METRIC_TEXT_H

#include "base/buffer.h"

#include <stddef.h>
#include <stdint.h>

/* The lines above the values; `type` is "counter", "gauge" or "histogram". */
void metric_text_head(struct buffer *out, const char *name, const char *type, const char *help);

/* One that has no labels. */
void metric_text_value(struct buffer *out, const char *name, const char *type, const char *help,
                       int64_t value);

/* A histogram of `count` buckets, counted each for itself: what is at most bounds[i], and in the last, which has no
 * bound, what is more. */
struct metric_text_histogram {
    const uint64_t *buckets;
    const double *bounds; /* one less than there are buckets */
    size_t count;
    double sum;
};

void metric_text_histogram(struct buffer *out, const char *name, const char *help,
                           const struct metric_text_histogram *histogram);

/* What the system says about this process. */
void metric_text_process(struct buffer *out, int64_t start_wall_ms);

#endif
