#include "api/service/import_report.h"

#include "log/log.h"
#include "text/json.h"

enum { MS_PER_SECOND = 1000 };

void import_report_error(struct import_report *report, uint64_t line, const char *message)
{
    size_t kept =
        report->error_count < IMPORT_ERRORS_MAX ? (size_t)report->error_count : IMPORT_ERRORS_MAX;
    size_t at = kept;
    report->error_count++;
    while (at > 0 && report->errors[at - 1].line > line)
        at--;
    if (at == IMPORT_ERRORS_MAX)
        return;
    if (kept == IMPORT_ERRORS_MAX)
        kept--;
    for (size_t i = kept; i > at; i--)
        report->errors[i] = report->errors[i - 1];
    report->errors[at] = (struct import_error){line, message};
}

static uint64_t count_reported_lines(const struct import_report *report)
{
    uint64_t lines = report->error_count;
    for (unsigned i = 0; i < IMPORT_KINDS; i++)
        lines += report->counts[i];
    return lines;
}

void import_report_log(struct import_report *report, int64_t now_ms, bool is_last)
{
    uint64_t lines = count_reported_lines(report);
    int64_t elapsed_ms = now_ms > report->started_ms ? now_ms - report->started_ms : 1;
    if (!is_last && lines - report->logged < IMPORT_PROGRESS_LINES)
        return;
    report->logged = lines;
    log_info(
        "import_progress",
        "ended=%s lines=%llu contacts=%llu blocks=%llu users=%llu chats=%llu errors=%llu seconds=%.1f "
        "lines_per_second=%llu",
        is_last ? "true" : "false", (unsigned long long)lines,
        (unsigned long long)report->counts[IMPORT_CONTACT],
        (unsigned long long)report->counts[IMPORT_BLOCK],
        (unsigned long long)report->counts[IMPORT_USER],
        (unsigned long long)report->counts[IMPORT_CHAT], (unsigned long long)report->error_count,
        (double)elapsed_ms / MS_PER_SECOND,
        (unsigned long long)(lines * MS_PER_SECOND / (uint64_t)elapsed_ms));
}

void import_report_write(const struct import_report *report, struct buffer *json)
{
    static const char *const names[IMPORT_KINDS] = {"contacts", "blocks", "users", "chats"};
    json_write_object(json);
    for (unsigned i = 0; i < IMPORT_KINDS; i++)
        json_write_key_int(json, slice_of(names[i]), (int64_t)report->counts[i]);
    json_write_key(json, SLICE("errors"));
    json_write_array(json);
    for (uint64_t i = 0; i < report->error_count && i < IMPORT_ERRORS_MAX; i++) {
        json_write_object(json);
        json_write_key_int(json, SLICE("line"), (int64_t)report->errors[i].line);
        json_write_key_string(json, SLICE("message"), slice_of(report->errors[i].message));
        json_write_object_end(json);
    }
    json_write_array_end(json);
    json_write_object_end(json);
}
