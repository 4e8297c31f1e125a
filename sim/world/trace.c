#include "world/trace.h"

#include "kernel/kernel.h"

#include <stdarg.h>
#include <string.h>
#include <xxhash.h>

static struct {
    FILE *shown;
    uint64_t hash;
    uint64_t count;
    char lines[TRACE_LINES_KEPT][TRACE_LINE_BYTES];
} trace;

void trace_open(FILE *shown)
{
    memset(&trace, 0, sizeof(trace));
    trace.shown = shown;
}

void trace_mix(uint64_t value)
{
    trace.hash = (trace.hash ^ value) * 0x9e3779b97f4a7c15;
    trace.hash ^= trace.hash >> 29;
}

void trace_mix_bytes(const void *data, size_t bytes)
{
    trace_mix((uint64_t)kernel_now_us());
    trace_mix(XXH3_64bits(data, bytes));
}

uint64_t trace_hash(void)
{
    return trace.hash;
}

static char *trace_next_line(void)
{
    return trace.lines[trace.count++ % TRACE_LINES_KEPT];
}

static int trace_write_time(char line[TRACE_LINE_BYTES])
{
    int64_t now_us = kernel_now_us();
    return snprintf(line, TRACE_LINE_BYTES, "%6lld.%06lld ", (long long)(now_us / 1000000),
                    (long long)(now_us % 1000000));
}

static void trace_show(const char *line)
{
    if (trace.shown)
        fprintf(trace.shown, "%s\n", line);
}

void trace_line(const char *format, ...)
{
    char *line = trace_next_line();
    int len = trace_write_time(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + len, (size_t)(TRACE_LINE_BYTES - len), format, args);
    va_end(args);
    trace_mix_bytes(line, strlen(line));
    trace_show(line);
}

void trace_log(const char *process, struct slice text)
{
    char *line = trace_next_line();
    int len = trace_write_time(line);
    if (text.len > 0 && text.data[text.len - 1] == '\n')
        text.len--;
    snprintf(line + len, (size_t)(TRACE_LINE_BYTES - len), "%s: %.*s", process, SLICE_FORMAT(text));
    trace_show(line);
}

void trace_print(FILE *out)
{
    uint64_t first = trace.count > TRACE_LINES_KEPT ? trace.count - TRACE_LINES_KEPT : 0;
    for (uint64_t i = first; i < trace.count; i++)
        fprintf(out, "%s\n", trace.lines[i % TRACE_LINES_KEPT]);
}
