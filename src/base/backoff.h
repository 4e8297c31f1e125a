/* How long to wait before trying again: a while that doubles with each failure in a row, half of it chance, so
 * that those who lost the same thing do not come back for it all at once. Pure but for the chance given. */
#ifndef ROLLCALL_BASE_BACKOFF_H
#define ROLLCALL_BASE_BACKOFF_H

#include "base/random.h"

#include <stdint.h>

/* Between half of the while and all of it: `min_ms` after no failure, doubled by each, at most `max_ms`. */
int64_t backoff_ms(struct random *random, unsigned failures, int64_t min_ms, int64_t max_ms);

#endif
