/*
 * Structured logging to stderr: one line an event, `key=value` pairs (logfmt), levelled and
 * rate-limited per call site, so that a storm of one event cannot flood the journal; what was held
 * back is counted in the next line of that site (`suppressed=N`).
 *
 *     log_info("connection_closed", "conn=%s user=%.*s reason=%s", ...);
 *
 * The first argument is the event's name; the format gives the other pairs. Peer-supplied values go
 * through log_quote(). Tokens, secrets and message bodies are never arguments of these functions.
 * Under systemd (JOURNAL_STREAM is set) lines start with the syslog level and carry no time.
 * Safe from any thread; a line is written with one write(2).
 */
#ifndef ROLLCALL_BASE_LOG_H
#define ROLLCALL_BASE_LOG_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

/* At most LOG_SITE_BURST lines of one call site in LOG_SITE_WINDOW_MS. */
enum { LOG_SITE_BURST = 20, LOG_SITE_WINDOW_MS = 10000, LOG_LINE_MAX = 2048 };

struct log_site {
    const char *event;
    int64_t window_start_ms;
    unsigned in_window;
    unsigned suppressed;
};

void log_init(enum log_level level, bool journal);
bool log_level_parse(struct slice name, enum log_level *level);
bool log_enabled(enum log_level level);

void log_write(struct log_site *site, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A peer's text as a safe logfmt value: quoted, escaped, cut to 64 bytes. The result lives in a
 * per-thread ring of four, so up to four may stand in one call. */
const char *log_quote(struct slice value);

#define LOG_AT(level_, event_, ...)                                                                \
    do {                                                                                           \
        static struct log_site log_site_ = {.event = (event_)};                                   \
        if (log_enabled(level_))                                                                   \
            log_write(&log_site_, (level_), __VA_ARGS__);                                          \
    } while (0)

#define log_debug(event, ...) LOG_AT(LOG_LEVEL_DEBUG, event, __VA_ARGS__)
#define log_info(event, ...) LOG_AT(LOG_LEVEL_INFO, event, __VA_ARGS__)
#define log_warn(event, ...) LOG_AT(LOG_LEVEL_WARN, event, __VA_ARGS__)
#define log_error(event, ...) LOG_AT(LOG_LEVEL_ERROR, event, __VA_ARGS__)

#endif
