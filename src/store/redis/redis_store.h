/*
 * What the stores on Redis have in common: replies that may be anything, and the time.
 *
 * Whatever a server says is looked at before it is used: a reply of another shape than expected counts as
 * none, so that neither foreign values under our keys nor a server of another kind can do more than make
 * a store unavailable.
 *
 * Time is Redis's own (TIME, inside the scripts): one clock for all gateways, however theirs go. Tests of
 * time give a clock instead, which is then the time of every script. Keys' own times to live are the
 * server's in any case; they are what bounds memory, never what an answer depends on.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_STORE_H
#define ROLLCALL_STORE_REDIS_REDIS_STORE_H

#include "base/clock.h"
#include "base/ulid.h"
#include "redis/protocol/resp.h"

#include <stdint.h>
#include <stdio.h>

/* A number as a script's argument. */
struct redis_store_number {
    char text[24];
};

static inline struct slice redis_store_number(struct redis_store_number *number, int64_t value)
{
    int len = snprintf(number->text, sizeof(number->text), "%lld", (long long)value);
    return (struct slice){number->text, (size_t)len};
}

/* The time as a script's argument: empty, for the server's own, unless there is a clock. */
static inline struct slice redis_store_time(struct redis_store_number *number,
                                            const struct clock *clock)
{
    return clock ? redis_store_number(number, clock->wall_ms) : SLICE("");
}

static inline struct slice redis_store_ulid(char text[ULID_TEXT_LEN], const struct ulid *ulid)
{
    ulid_write(text, ulid);
    return (struct slice){text, ULID_TEXT_LEN};
}

/* An array of at least so many items. */
static inline bool redis_store_is_array(const struct resp_value *reply, size_t count)
{
    return reply && reply->type == RESP_ARRAY && reply->count >= count;
}

static inline bool redis_store_is_integer(const struct resp_value *reply)
{
    return reply && reply->type == RESP_INTEGER;
}

/* What an integer or a text in digits says; 0 for anything else. */
static inline int64_t redis_store_integer(const struct resp_value *value)
{
    int64_t number = 0;
    if (value->type == RESP_INTEGER)
        return value->integer;
    return value->type == RESP_TEXT && resp_parse_integer(value->text, &number) ? number : 0;
}

#endif
