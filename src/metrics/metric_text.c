#include "metrics/metric_text.h"

#include "metrics/process.h"

void metric_text_head(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_printf(out, "# HELP rollcall_%s %s\n# TYPE rollcall_%s %s\n", name, help, name, type);
}

void metric_text_value(struct buffer *out, const char *name, const char *type, const char *help,
                       int64_t value)
{
    metric_text_head(out, name, type, help);
    buffer_printf(out, "rollcall_%s %lld\n", name, (long long)value);
}

void metric_text_histogram(struct buffer *out, const char *name, const char *help,
                           const struct metric_text_histogram *histogram)
{
    uint64_t below = 0;
    size_t last = histogram->count - 1;
    metric_text_head(out, name, "histogram", help);
    for (size_t i = 0; i < last; i++) {
        below += histogram->buckets[i];
        buffer_printf(out, "rollcall_%s_bucket{le=\"%.9g\"} %llu\n", name, histogram->bounds[i],
                      (unsigned long long)below);
    }
    below += histogram->buckets[last];
    buffer_printf(out, "rollcall_%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)below);
    buffer_printf(out, "rollcall_%s_sum %.6f\nrollcall_%s_count %llu\n", name, histogram->sum, name,
                  (unsigned long long)below);
}

static void write_metric_if_known(struct buffer *out, const char *name, const char *help,
                                  int64_t value)
{
    if (value >= 0)
        metric_text_value(out, name, "gauge", help, value);
}

void metric_text_process(struct buffer *out, int64_t start_wall_ms)
{
    metric_text_head(out, "build_info", "gauge", "1, labelled with the version");
    buffer_printf(out, "rollcall_build_info{version=\"%s\"} 1\n", ROLLCALL_VERSION);
    metric_text_head(out, "process_start_time_seconds", "gauge",
                     "Unix time at which the process started");
    buffer_printf(out, "rollcall_process_start_time_seconds %.3f\n", (double)start_wall_ms / 1000);
    write_metric_if_known(out, "process_resident_memory_bytes", "Resident memory of the process",
                          process_resident_bytes());
    write_metric_if_known(out, "process_open_fds", "Open file descriptors", process_open_fds());
}
