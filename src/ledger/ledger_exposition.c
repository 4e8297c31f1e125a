#include "ledger/ledger_exposition.h"

#include "ledger/ledger_metrics.h"
#include "metrics/metric_text.h"

#include <ctype.h>

#define MICROSECONDS 1e-6

static void write_ledger_gauge(struct buffer *out, const char *name, const char *help,
                               int64_t value)
{
    metric_text_value(out, name, "gauge", help, value);
}

static void write_ledger_counter(struct buffer *out, const char *name, const char *help,
                                 uint64_t value)
{
    metric_text_value(out, name, "counter", help, (int64_t)value);
}

/* ---- the service ---- */

/* Shows OK for every operation, and a failure only once it has happened. */
static void write_ledger_requests(struct buffer *out, const struct ledger_service_counts *counts)
{
    metric_text_head(out, "ledger_requests", "counter", "Requests answered");
    for (enum ledger_operation operation = 0; operation < LEDGER_OPERATION_COUNT; operation++)
        for (enum ledger_status status = 0; status < LEDGER_STATUS_COUNT; status++) {
            uint64_t count = counts->answers[operation][status];
            if (status != LEDGER_OK && !count)
                continue;
            buffer_append_text(out, "rollcall_ledger_requests{operation=\"");
            for (const char *name = ledger_request_operation_name(operation); *name; name++)
                buffer_append_byte(out, (char)tolower(*name));
            buffer_printf(out, "\",outcome=\"%s\"} %llu\n", ledger_status_name(status),
                          (unsigned long long)count);
        }
}

void ledger_exposition_write_service(struct buffer *out, const struct ledger_service_counts *counts)
{
    write_ledger_gauge(out, "ledger_links", "Links of gateways that have authenticated",
                       (int64_t)counts->links);
    write_ledger_gauge(out, "ledger_strangers", "Links that have not authenticated yet",
                       (int64_t)counts->pending);
    write_ledger_counter(out, "ledger_links_opened", "Links that authenticated",
                         counts->links_opened);
    write_ledger_counter(out, "ledger_links_refused", "Links that ended before they authenticated",
                         counts->links_refused);
    write_ledger_counter(out, "ledger_strangers_displaced",
                         "Links refused to make way for newer ones", counts->pending_displaced);
    write_ledger_counter(out, "ledger_frames_refused",
                         "Links closed because they sent something that is no request",
                         counts->frames_refused);
    write_ledger_gauge(out, "ledger_requests_unanswered", "Requests taken and not answered yet",
                       (int64_t)counts->unanswered);
    write_ledger_requests(out, counts);
}

/* ---- the ledger ---- */

/* A bucket holds the integers below its bound, so its largest value is one less. */
static void write_ledger_histogram(struct buffer *out, const char *name, const char *help,
                                   const struct ledger_histogram *histogram, double unit)
{
    uint64_t buckets[LEDGER_HISTOGRAM_BUCKETS];
    double bounds[LEDGER_HISTOGRAM_BUCKETS - 1];
    for (size_t i = 0; i < LEDGER_HISTOGRAM_BUCKETS; i++)
        buckets[i] = atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
    for (size_t i = 0; i < LEDGER_HISTOGRAM_BUCKETS - 1; i++)
        bounds[i] = (double)((UINT64_C(1) << i) - 1) * unit;
    metric_text_histogram(
        out, name, help,
        &(struct metric_text_histogram){
            .buckets = buckets,
            .bounds = bounds,
            .count = LEDGER_HISTOGRAM_BUCKETS,
            .sum = (double)atomic_load_explicit(&histogram->sum, memory_order_relaxed) * unit});
}

void ledger_exposition_write_ledger(struct buffer *out, const struct ledger_metrics *metrics)
{
    write_ledger_gauge(out, "ledger_available", "1 unless the last transaction failed",
                       metrics->available);
    write_ledger_gauge(out, "ledger_writes_waiting", "Writes in the queue",
                       metrics->writes_waiting);
    write_ledger_gauge(out, "ledger_reads_waiting", "Reads in the queue", metrics->reads_waiting);
    write_ledger_counter(out, "ledger_over_share",
                         "Requests refused because their user had too much waiting",
                         metrics->over_share);
    write_ledger_counter(out, "ledger_commits", "Transactions committed", metrics->commits);
    write_ledger_counter(out, "ledger_commit_failures", "Transactions that failed",
                         metrics->commit_failures);
    write_ledger_counter(out, "ledger_checkpoints", "Checkpoints of the write-ahead log",
                         metrics->checkpoints);
    write_ledger_counter(out, "ledger_reopens", "Times the file was reopened after a failure",
                         metrics->reopens);
    write_ledger_counter(out, "ledger_appends", "Messages stored", metrics->appends);
    write_ledger_counter(out, "ledger_duplicates", "Messages that had been stored before",
                         metrics->duplicates);
    write_ledger_counter(out, "ledger_halted_appends",
                         "Messages refused because the chat's counter is corrupt (SEV-1)",
                         metrics->halted_appends);
    write_ledger_counter(out, "ledger_duplicate_sequences",
                         "Messages refused because another one has their sequence (SEV-1)",
                         metrics->duplicate_sequences);
    write_ledger_histogram(out, "ledger_write_seconds", "From a write's arrival to its commit",
                           &metrics->write_us, MICROSECONDS);
    write_ledger_histogram(out, "ledger_read_seconds", "From a read's arrival to its answer",
                           &metrics->read_us, MICROSECONDS);
    write_ledger_histogram(out, "ledger_commit_seconds", "One commit", &metrics->commit_us,
                           MICROSECONDS);
    write_ledger_histogram(out, "ledger_group_requests", "Writes in one transaction",
                           &metrics->group_requests, 1);
}
