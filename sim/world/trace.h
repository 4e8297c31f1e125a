/*
 * What happened: a hash over all of it, and the last lines as text for people. Two runs of one seed have the same hash.
 *
 * The log of processes is shown, and is not part of the hash: its lines are limited per real process.
 */
#ifndef ROLLCALL_SIM_WORLD_TRACE_H
#define ROLLCALL_SIM_WORLD_TRACE_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { TRACE_LINES_KEPT = 60, TRACE_LINE_BYTES = 240 };

/* `shown` gets every line at once; NULL: only the last ones are kept. */
void trace_open(FILE *shown);

void trace_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void trace_log(const char *process, struct slice line);

/* Adds a number to the hash. */
void trace_mix(uint64_t value);
void trace_mix_bytes(const void *data, size_t bytes);
uint64_t trace_hash(void);

/* Writes the last lines. */
void trace_print(FILE *out);

#endif
