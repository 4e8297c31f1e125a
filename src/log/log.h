/*
 * Structured logging to stderr: one line an event, `key=value` pairs (logfmt), levelled and
 * rate-limited per call site, so that a storm of one event cannot flood the journal; what was held
 * back is counted in the next line of that site (`suppressed=N`).
 *
 *     log_info("connection_closed", "conn=%s user=%s reason=%s", id, log_quote(user), reason);
 *
 * The first argument is the event's name; the format gives the other pairs. Peer-supplied values go
 * through log_quote(), sentences for people through log_sentence(). Tokens, secrets and message bodies
 * are never arguments of these functions.
 * Without the journal a line starts with `ts=… level=…`; under systemd (JOURNAL_STREAM is set) it
 * starts with the syslog level (`<6>`) instead, as the journal keeps the time itself.
 *
 * A line is at most LOG_LINE_MAX bytes with its newline: a longer one loses the end of its pairs
 * and gains `truncated=true`. Bytes that could end a line or steer a terminal never get through,
 * quoted or not.
 *
 * Logging stands at the edge of the program: it reads the system's clocks itself, and its level and
 * the sites' counters are the one process-wide state there is. Safe from any thread (set the level
 * before there are threads); a line is written with one write(2); errno is left as it was.
 */
#ifndef ROLLCALL_LOG_LOG_H
#define ROLLCALL_LOG_LOG_H

#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

/* At most LOG_SITE_BURST lines of one call site in LOG_SITE_WINDOW_MS (a few more when threads meet
 * at the turn of a window). */
enum { LOG_SITE_BURST = 20, LOG_SITE_WINDOW_MS = 10000, LOG_LINE_MAX = 2048 };

/* Of one value, log_quote() shows LOG_QUOTE_MAX bytes; LOG_QUOTE_RING results live at a time. Of a sentence,
 * of which there is one in a line, log_sentence() shows LOG_SENTENCE_MAX. */
enum { LOG_QUOTE_MAX = 64, LOG_QUOTE_RING = 4, LOG_SENTENCE_MAX = 512 };

/* A place in the source that logs. LOG_AT makes one; nobody else needs to. */
struct log_site {
    const char *event;
    _Atomic int64_t window_start_ms;
    atomic_uint in_window;
    atomic_uint suppressed;
};

void log_init(enum log_level level, bool journal);

/* Reads "debug", "info", "warn" or "error". */
bool log_level_parse(struct slice name, enum log_level *level);

bool log_enabled(enum log_level level);

void log_write(struct log_site *site, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A peer's text as a safe logfmt value: quoted, escaped, cut to LOG_QUOTE_MAX bytes (a cut shows as
 * "..."). The result lives in a per-thread ring, so up to LOG_QUOTE_RING may stand in one call. */
const char *log_quote(struct slice value);

/* The same for what explains something to people: why, often with the name of a file, which must not be cut off
 * where the reason begins. One result lives at a time, per thread. */
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
