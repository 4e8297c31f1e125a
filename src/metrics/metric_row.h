/* The table of metrics.h as constant data, which the exposition iterates over. */
#ifndef ROLLCALL_METRICS_METRIC_ROW_H
#define ROLLCALL_METRICS_METRIC_ROW_H

#include "metrics/metrics.h"

enum metric_shown {
    METRIC_SHOWN_COUNTER,
    METRIC_SHOWN_LARGEST_COUNTER,
    METRIC_SHOWN_SUM,
    METRIC_SHOWN_LARGEST,
    METRIC_SHOWN_SMALLEST,
    METRIC_SHOWN_LARGEST_MILLE,
    METRIC_SHOWN_RATE,
    METRIC_SHOWN_SHARE_OF,
    METRIC_SHOWN_SHARE_BESIDE,
    METRIC_SHOWN_P99
};

struct metric_row {
    const char *name;
    const char *help;
    enum metric_shown shown;
    enum metric source; /* of a rate: the counter; of a share: the part */
    enum metric other;  /* of a share: the whole, or the rest */
    enum metrics_latency latency;
};

struct metric_latency_row {
    const char *name;
    const char *help;
};

extern const struct metric_row metric_rows[METRIC_COUNT];
extern const struct metric_latency_row metric_latency_rows[LATENCY_COUNT];

#endif
