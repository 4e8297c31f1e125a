/* ULIDs: 48 bits of time in milliseconds and 80 random bits. Their text (26 characters of
 * Crockford's base 32) sorts by time. In memory a ULID is 16 bytes, big-endian. */
#ifndef ROLLCALL_BASE_ULID_H
#define ROLLCALL_BASE_ULID_H

#include "base/random.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { ULID_TEXT_LEN = 26 };

struct ulid {
    uint8_t bytes[16];
};

/* Makes a ULID; a time before 1970 or beyond 48 bits is clamped. */
struct ulid ulid_make(int64_t wall_ms, struct random *random);
void ulid_write(char out[ULID_TEXT_LEN], const struct ulid *ulid); /* not terminated */

/* Accepts upper and lower case, but not the letters I, L and O for digits: apart from case a ULID
 * has one spelling. Returns false for anything but exactly one ULID; *out is then undefined. */
bool ulid_parse(struct slice text, struct ulid *out);

/* Returns the time it was made at, in Unix milliseconds. */
static inline int64_t ulid_time_ms(const struct ulid *ulid)
{
    int64_t time_ms = 0;
    for (int i = 0; i < 6; i++)
        time_ms = time_ms << 8 | ulid->bytes[i];
    return time_ms;
}

static inline bool ulid_equal(const struct ulid *a, const struct ulid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

#endif
