/* Times as text: RFC 3339 in UTC with milliseconds, "2026-01-31T10:00:00.000Z". */
#ifndef ROLLCALL_TEXT_TIME_TEXT_H
#define ROLLCALL_TEXT_TIME_TEXT_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { TIME_TEXT_LEN = 24 };

/* Writes exactly TIME_TEXT_LEN bytes, not terminated. Years outside 0..9999 are clamped. */
void time_text_write(char out[TIME_TEXT_LEN], int64_t wall_ms);

/* Accepts what RFC 3339 allows: "Z" or an offset, any number of fraction digits (truncated to
 * milliseconds), a leap second (read as the second after it). Returns false for anything else, such
 * as a date that does not exist. */
bool time_text_parse(struct slice text, int64_t *wall_ms);

#endif
