#include "metrics/metric_row.h"

#define COUNTER .shown = METRIC_SHOWN_COUNTER
#define LARGEST_COUNTER .shown = METRIC_SHOWN_LARGEST_COUNTER
#define SUM .shown = METRIC_SHOWN_SUM
#define LARGEST .shown = METRIC_SHOWN_LARGEST
#define SMALLEST .shown = METRIC_SHOWN_SMALLEST
#define LARGEST_MILLE .shown = METRIC_SHOWN_LARGEST_MILLE
#define RATE(counter) .shown = METRIC_SHOWN_RATE, .source = METRIC_##counter
#define SHARE_OF(part, whole)                                                                      \
    .shown = METRIC_SHOWN_SHARE_OF, .source = METRIC_##part, .other = METRIC_##whole
#define SHARE_BESIDE(part, rest)                                                                   \
    .shown = METRIC_SHOWN_SHARE_BESIDE, .source = METRIC_##part, .other = METRIC_##rest
#define P99(histogram) .shown = METRIC_SHOWN_P99, .latency = LATENCY_##histogram

#define METRIC_ROW(id, text, what, why) [METRIC_##id] = {.name = (text), .help = (why), what},
#define LATENCY_ROW(id, text, why) [LATENCY_##id] = {.name = (text), .help = (why)},

const struct metric_row metric_rows[METRIC_COUNT] = {METRICS_LIST(METRIC_ROW)};
const struct metric_latency_row metric_latency_rows[LATENCY_COUNT] = {
    METRICS_LATENCY_LIST(LATENCY_ROW)};
