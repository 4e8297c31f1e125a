/*
 * Writes single metrics in the format of Prometheus: a help line, a type line, the value. Names are
 * passed without the prefix `rollcall_`. No state.
 */
#ifndef ROLLCALL_METRICS_METRIC_TEXT_H
#define ROLLCALL_METRICS_METRIC_TEXT_H

#include "base/buffer.h"

#include <stddef.h>
#include <stdint.h>

/* Writes the help and type lines; `type` is "counter", "gauge" or "histogram". */
void metric_text_head(struct buffer *out, const char *name, const char *type, const char *help);

/* Writes a whole metric without labels. */
void metric_text_value(struct buffer *out, const char *name, const char *type, const char *help,
                       int64_t value);

/* A histogram of `count` buckets that are not cumulative: bucket i counts values above bounds[i -
 * 1] and at most bounds[i]; the last one has no bound. */
struct metric_text_histogram {
    const uint64_t *buckets;
    const double *bounds; /* count - 1 of them */
    size_t count;
    double sum;
};

void metric_text_histogram(struct buffer *out, const char *name, const char *help,
                           const struct metric_text_histogram *histogram);

/* Writes version, start time, memory and descriptors of this process. */
void metric_text_process(struct buffer *out, int64_t start_wall_ms);

#endif
