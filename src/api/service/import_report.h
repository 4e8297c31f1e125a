/* What became of the lines of an import: how many hold, the first errors, and its progress in the log. */
#ifndef ROLLCALL_API_SERVICE_IMPORT_REPORT_H
#define ROLLCALL_API_SERVICE_IMPORT_REPORT_H

#include "api/service/import_line.h"

enum {
    IMPORT_ERRORS_MAX = 20, /* that are told: those with the lowest line numbers */
    IMPORT_PROGRESS_LINES = 100000,
};

struct import_error {
    uint64_t line;
    const char *message; /* static text */
};

struct import_report {
    uint64_t counts[IMPORT_KINDS];                 /* lines that hold, also if they held before */
    struct import_error errors[IMPORT_ERRORS_MAX]; /* by rising line */
    uint64_t error_count;                          /* all */
    uint64_t logged;                               /* lines, when progress was last logged */
    int64_t started_ms;
};

void import_report_error(struct import_report *report, uint64_t line, const char *message);

/* Logs the progress if IMPORT_PROGRESS_LINES were done since the last time, or if it `is_last`. */
void import_report_log(struct import_report *report, int64_t now_ms, bool is_last);

/* Writes the answer. */
void import_report_write(const struct import_report *report, struct buffer *json);

#endif
