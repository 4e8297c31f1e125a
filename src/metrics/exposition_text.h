/*
 * The text of the exposition, from totals of the present and of two earlier times. No state, no
 * locks: exposition.c gathers, this writes.
 */
#ifndef ROLLCALL_METRICS_EXPOSITION_TEXT_H
#define ROLLCALL_METRICS_EXPOSITION_TEXT_H

#include "metrics/exposition.h"

struct exposition_text {
    struct buffer *out;
    int64_t start_wall_ms;
    struct exposition_totals now;
    struct exposition_totals rate_base;   /* what rates are counted from */
    struct exposition_totals recent_base; /* what shares and percentiles are counted from */
};

/* Appends all metrics, histograms and what the system says about the process to `text->out`. */
void exposition_text_write(const struct exposition_text *text);

/* The duration in seconds that a share `quantile` of what came between the two did not exceed. Inside
 * a bucket durations are taken as evenly spread, as Prometheus' histogram_quantile() does; what is
 * beyond the last finite bound counts as that bound. 0 when nothing came. */
double exposition_text_quantile(const struct exposition_histogram *now,
                                const struct exposition_histogram *base, double quantile);

#endif
