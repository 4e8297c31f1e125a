#include "log/log.h"

#include "base/clock.h"
#include "text/time_text.h"
#include "text/utf8_character.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const struct {
    const char *name;
    char syslog; /* the digit of the level in syslog(3) */
} levels[] = {
    [LOG_LEVEL_DEBUG] = {"debug", '7'},
    [LOG_LEVEL_INFO] = {"info", '6'},
    [LOG_LEVEL_WARN] = {"warn", '4'},
    [LOG_LEVEL_ERROR] = {"error", '3'},
};

enum { LEVEL_COUNT = sizeof(levels) / sizeof(levels[0]) };

static struct {
    atomic_int level;
    atomic_bool journal;
} settings = {.level = LOG_LEVEL_INFO};

void log_init(enum log_level level, bool journal)
{
    atomic_store_explicit(&settings.level, (int)level, memory_order_relaxed);
    atomic_store_explicit(&settings.journal, journal, memory_order_relaxed);
}

bool log_level_parse(struct slice name, enum log_level *level)
{
    for (int i = 0; i < LEVEL_COUNT; i++) {
        if (slice_is(name, levels[i].name)) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

bool log_enabled(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&settings.level, memory_order_relaxed);
}

/* --- escaping --- */

/* Returns the length of the character at the start of `text` if it is printable, else 0. Control
 * characters (ASCII and C1, U+0080 to U+009F), line and paragraph separators and changes of the
 * writing direction (U+2028 to U+202E, U+2066 to U+2069) are not. */
static size_t log_printable_len(struct slice text)
{
    const unsigned char *at = (const unsigned char *)text.data;
    size_t len = utf8_character_len(text.data, text.len);
    if (len == 1 && (at[0] < ' ' || at[0] == 0x7f))
        return 0;
    if (len == 2 && at[0] == 0xc2 && at[1] < 0xa0)
        return 0;
    if (len == 3 && at[0] == 0xe2 && at[1] == 0x80 && at[2] >= 0xa8 && at[2] <= 0xae)
        return 0;
    if (len == 3 && at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9)
        return 0;
    return len;
}

static size_t log_quote_character(char *to, struct slice text, size_t *taken)
{
    static const char hex[] = "0123456789abcdef";
    char first = text.data[0];
    *taken = log_printable_len(text);
    if (*taken == 0) {
        *taken = 1;
        memcpy(to, (char[]){'\\', 'x', hex[first >> 4 & 15], hex[first & 15]}, 4);
        return 4;
    }
    if (first == '"' || first == '\\') {
        memcpy(to, (char[]){'\\', first}, 2);
        return 2;
    }
    memcpy(to, text.data, *taken);
    return *taken;
}

/* A byte becomes four bytes at most; quotes, dots and terminator are extra. */
enum { QUOTED_BYTE_MAX = 4, QUOTED_EXTRA = sizeof("\"...\"") };

/* Quotes `bytes_max` bytes of the value into `text`, which is large enough. */
static const char *log_quote_value(char *text, size_t bytes_max, struct slice value)
{
    char *to = text;
    struct slice rest = value;
    size_t taken = 0;
    *to++ = '"';
    for (size_t shown = 0; rest.len > 0; shown += taken) {
        size_t len = log_printable_len(rest);
        if (shown + (len ? len : 1) > bytes_max)
            break;
        to += log_quote_character(to, rest, &taken);
        rest = slice_after(rest, taken);
    }
    if (rest.len > 0)
        to = stpcpy(to, "...");
    stpcpy(to, "\"");
    return text;
}

const char *log_quote(struct slice value)
{
    static _Thread_local char ring[LOG_QUOTE_RING][LOG_QUOTE_MAX * QUOTED_BYTE_MAX + QUOTED_EXTRA];
    static _Thread_local unsigned next;
    return log_quote_value(ring[next++ % LOG_QUOTE_RING], LOG_QUOTE_MAX, value);
}

const char *log_sentence(struct slice text)
{
    static _Thread_local char quoted[LOG_SENTENCE_MAX * QUOTED_BYTE_MAX + QUOTED_EXTRA];
    return log_quote_value(quoted, LOG_SENTENCE_MAX, text);
}

/* --- rate limit --- */

/* Returns whether the site may write a line now, and how many lines it suppressed before. */
static bool admit_log_line(struct log_site *site, int64_t now_ms, unsigned *suppressed)
{
    int64_t start_ms = atomic_load_explicit(&site->period_start_ms, memory_order_relaxed);
    if (now_ms - start_ms >= LOG_SITE_PERIOD_MS &&
        atomic_compare_exchange_strong_explicit(&site->period_start_ms, &start_ms, now_ms,
                                                memory_order_relaxed, memory_order_relaxed))
        atomic_store_explicit(&site->in_period, 0, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&site->in_period, 1, memory_order_relaxed) >= LOG_SITE_BURST) {
        atomic_fetch_add_explicit(&site->suppressed, 1, memory_order_relaxed);
        return false;
    }
    *suppressed = atomic_exchange_explicit(&site->suppressed, 0, memory_order_relaxed);
    return true;
}

/* --- lines --- */

/* Reserved behind the pairs, so that the end of a line is never cut. */
enum { LINE_END_MAX = sizeof("\" truncated=true suppressed=4294967295\n") - 1 };

struct log_line {
    char text[LOG_LINE_MAX];
    size_t len;
    bool quoted;  /* inside a quoted value */
    bool escaped; /* after a backslash in a quoted value */
};

static void log_line_add(struct log_line *line, const char *text, size_t len)
{
    assert(len <= sizeof(line->text) - line->len);
    memcpy(line->text + line->len, text, len);
    line->len += len;
}

static void log_line_start(struct log_line *line, const struct log_site *site, enum log_level level,
                           int64_t wall_ms)
{
    char time[TIME_TEXT_LEN];
    int len;
    if (atomic_load_explicit(&settings.journal, memory_order_relaxed)) {
        len = snprintf(line->text, sizeof(line->text) / 2, "<%c>event=%s", levels[level].syslog,
                       site->event);
    } else {
        time_text_write(time, wall_ms);
        len = snprintf(line->text, sizeof(line->text) / 2, "ts=%.*s level=%s event=%s",
                       TIME_TEXT_LEN, time, levels[level].name, site->event);
    }
    assert(len > 0 && (size_t)len < sizeof(line->text) / 2);
    line->len = (size_t)len;
    line->quoted = line->escaped = false;
}

/* Adds as much of the pairs as fits, and tracks whether a cut would be inside a quoted value. Returns
 * true if all of it fits. */
static bool log_line_add_pairs(struct log_line *line, struct slice pairs)
{
    while (pairs.len > 0) {
        size_t len = log_printable_len(pairs);
        struct slice shown = len ? slice_first(pairs, len) : SLICE("?");
        if (shown.len > sizeof(line->text) - line->len - LINE_END_MAX)
            return false;
        if (line->escaped)
            line->escaped = false;
        else if (shown.data[0] == '"')
            line->quoted = !line->quoted;
        else
            line->escaped = line->quoted && shown.data[0] == '\\';
        log_line_add(line, shown.data, shown.len);
        pairs = slice_after(pairs, len ? len : 1);
    }
    return true;
}

/* First closes a quoted value that was cut, or the pairs that follow would be part of it. */
static void log_line_finish(struct log_line *line, bool whole, unsigned suppressed)
{
    char count[32];
    if (line->escaped)
        line->len--;
    if (line->quoted)
        log_line_add(line, "\"", 1);
    if (!whole)
        log_line_add(line, " truncated=true", strlen(" truncated=true"));
    if (suppressed) {
        int len = snprintf(count, sizeof(count), " suppressed=%u", suppressed);
        log_line_add(line, count, (size_t)len);
    }
    log_line_add(line, "\n", 1);
}

void log_write(struct log_site *site, enum log_level level, const char *format, ...)
{
    int errno_before = errno;
    struct clock clock;
    clock_advance(&clock);
    unsigned suppressed;
    if (!admit_log_line(site, clock.now_ms, &suppressed))
        goto out;

    char pairs[LOG_LINE_MAX] = " ";
    va_list args;
    va_start(args, format);
    int len = vsnprintf(pairs + 1, sizeof(pairs) - 1, format, args);
    va_end(args);
    bool whole = len < (int)sizeof(pairs) - 1;

    struct log_line line;
    log_line_start(&line, site, level, clock.wall_ms);
    if (len > 0)
        whole = log_line_add_pairs(&line, slice_of(pairs)) && whole;
    log_line_finish(&line, whole, suppressed);
    while (write(STDERR_FILENO, line.text, line.len) < 0 && errno == EINTR)
        ;
out:
    errno = errno_before;
}
