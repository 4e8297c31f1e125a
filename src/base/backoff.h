/* The wait before the next try. It doubles with each failure in a row. Half of it is random, so
 * that clients which lost the same server do not all return at once. Pure functions apart from the
 * random source passed in. */
#ifndef ROLLCALL_BASE_BACKOFF_H
#define ROLLCALL_BASE_BACKOFF_H

#include "base/random.h"

#include <stdint.h>

/* Returns `min_ms` doubled by each failure, at most `max_ms`. Use it where only one caller
 * retries, so that there is nothing to spread. */
int64_t backoff_without_jitter_ms(unsigned failures, int64_t min_ms, int64_t max_ms);

/* Returns a uniform value between half of backoff_without_jitter_ms() and all of it. */
int64_t backoff_ms(struct random *random, unsigned failures, int64_t min_ms, int64_t max_ms);

#endif
