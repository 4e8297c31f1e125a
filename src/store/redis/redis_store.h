/*
 * What all stores on Redis share: checked replies, and arguments for scripts.
 *
 * A store checks the shape of every reply before it uses it. A reply of another shape counts as no reply. So neither
 * foreign values under our keys nor a server of another kind can do more than make a store unavailable.
 *
 * Scripts use Redis's own time (TIME): one clock for all gateways, however wrong theirs are. Tests of time pass a
 * clock instead, which is then the time of every script. A key's time to live always runs on the server's clock; it
 * only bounds memory, and no answer depends on it.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_STORE_H
#define ROLLCALL_STORE_REDIS_REDIS_STORE_H

#include "base/clock.h"
#include "base/ulid.h"
#include "redis/protocol/resp.h"

#include <stdint.h>
#include <stdio.h>

/* The memory of a number that is passed to a script. */
struct redis_store_number {
    char text[24];
};

static inline struct slice redis_store_number(struct redis_store_number *number, int64_t value)
{
    int len = snprintf(number->text, sizeof(number->text), "%lld", (long long)value);
    return (struct slice){number->text, (size_t)len};
}

/* The time as a script's argument. Without a clock it is empty, which means the server's time. */
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

/* Whether the reply is an array of at least `count` items. */
static inline bool redis_store_is_array(const struct resp_value *reply, size_t count)
{
    return reply && reply->type == RESP_ARRAY && reply->count >= count;
}

static inline bool redis_store_is_integer(const struct resp_value *reply)
{
    return reply && reply->type == RESP_INTEGER;
}

/* The value of an integer or of a text in digits; 0 for anything else. */
static inline int64_t redis_store_integer(const struct resp_value *value)
{
    int64_t number = 0;
    if (value->type == RESP_INTEGER)
        return value->integer;
    return value->type == RESP_TEXT && resp_parse_integer(value->text, &number) ? number : 0;
}

#endif
