/*
 * Writes the text of the exposition from the present totals and those of two earlier times. No
 * state, no locks: exposition.c gathers, this file writes.
 */
#ifndef ROLLCALL_METRICS_EXPOSITION_TEXT_H
#define ROLLCALL_METRICS_EXPOSITION_TEXT_H

#include "metrics/exposition.h"

struct exposition_text {
    struct buffer *out;
    int64_t start_wall_ms;
    struct exposition_totals now;
    struct exposition_totals rate_base;   /* start of the period of rates */
    struct exposition_totals recent_base; /* start of the period of shares and percentiles */
};

/* Appends all metrics, all histograms and the facts about the process to `text->out`. */
void exposition_text_write(const struct exposition_text *text);

/* Returns the duration in seconds that a share `quantile` of the durations between `base` and `now`
 * did not exceed. Durations inside a bucket count as evenly spread, as in Prometheus'
 * histogram_quantile(); durations beyond the last finite bound count as that bound. Returns 0 if
 * there are none. */
double exposition_text_quantile(const struct exposition_histogram *now,
                                const struct exposition_histogram *base, double quantile);

#endif
