/*
 * Structured logging to stderr: one line per event, in `key=value` pairs (logfmt), with levels.
 * Each log statement (a *site*) is rate-limited, so that a storm of one event cannot flood the
 * journal; the next line of that site counts the suppressed ones (`suppressed=N`).
 *
 *     log_info("connection_closed", "conn=%s user=%s reason=%s", id, log_quote(user), reason);
 *
 * The first argument is the name of the event; the format gives the other pairs. Values from
 * clients go through log_quote(), sentences for people through log_sentence(). Never pass tokens,
 * secrets or message bodies to these functions. A line starts with `ts=… level=…`. Under systemd
 * (JOURNAL_STREAM is set) it starts with the syslog level (`<6>`) instead, since the journal
 * records the time.
 *
 * A line has at most LOG_LINE_MAX bytes with its newline: a longer one is cut at the end of its
 * pairs and gets `truncated=true`. Bytes that could end a line or control a terminal are never
 * written, quoted or not.
 *
 * Logging is at the edge of the program: it reads the system's clocks itself, and its level and the
 * counters of the sites are the only process-wide state. Any thread may log (set the level
 * before there are threads). A line is written with one write(2); errno is preserved.
 */
#ifndef ROLLCALL_LOG_LOG_H
#define ROLLCALL_LOG_LOG_H

#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

/* A site writes at most LOG_SITE_BURST lines in LOG_SITE_PERIOD_MS (a few more if threads race
 * at the end of a period). */
enum { LOG_SITE_BURST = 20, LOG_SITE_PERIOD_MS = 10000, LOG_LINE_MAX = 2048 };

/* log_quote() shows LOG_QUOTE_MAX bytes of a value; LOG_QUOTE_RING results are valid at a time.
 * log_sentence() shows LOG_SENTENCE_MAX bytes; a line has one sentence at most. */
enum { LOG_QUOTE_MAX = 64, LOG_QUOTE_RING = 4, LOG_SENTENCE_MAX = 512 };

/* A log statement in the source. Only LOG_AT makes one. */
struct log_site {
    const char *event;
    _Atomic int64_t period_start_ms;
    atomic_uint in_period;
    atomic_uint suppressed;
};

void log_init(enum log_level level, bool journal);

/* Parses "debug", "info", "warn" or "error". */
bool log_level_parse(struct slice name, enum log_level *level);

bool log_enabled(enum log_level level);

void log_write(struct log_site *site, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns a client's text as a safe logfmt value: quoted, escaped, cut to LOG_QUOTE_MAX bytes
 * ("..." marks a cut). The result is in a ring per thread, so one log line may use up to
 * LOG_QUOTE_RING. */
const char *log_quote(struct slice value);

/* The same for an explanation, which often begins with a file name and must not be cut before the
 * reason. One result is valid at a time, per thread. */
const char *log_sentence(struct slice text);

#define LOG_AT(level_, event_, ...)                                                                \
    do {                                                                                           \
        static struct log_site log_site_ = {.event = (event_)};                                    \
        if (log_enabled(level_))                                                                   \
            log_write(&log_site_, (level_), __VA_ARGS__);                                          \
    } while (0)

#define log_debug(event, ...) LOG_AT(LOG_LEVEL_DEBUG, event, __VA_ARGS__)
#define log_info(event, ...) LOG_AT(LOG_LEVEL_INFO, event, __VA_ARGS__)
#define log_warn(event, ...) LOG_AT(LOG_LEVEL_WARN, event, __VA_ARGS__)
#define log_error(event, ...) LOG_AT(LOG_LEVEL_ERROR, event, __VA_ARGS__)

#endif
