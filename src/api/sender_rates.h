/*
 * Rate limits of users who send over REST, where there is no connection to limit: a fixed table indexed by the
 * user's hash. Two users with the same place replace each other, which resets the other's limit: generous, and
 * bounded. One thread.
 */
#ifndef ROLLCALL_API_SENDER_RATES_H
#define ROLLCALL_API_SENDER_RATES_H

#include "base/slice.h"
#include "connection/rate_limit.h"

#include <stdint.h>

enum { SENDER_RATES_PLACES = 1024 };

struct sender_rates {
    struct {
        uint64_t user; /* hash */
        struct rate_limit limit;
    } places[SENDER_RATES_PLACES];
};

/* The rate limit of a user; valid until the function is called again. */
struct rate_limit *sender_rates_of(struct sender_rates *rates, struct slice user, uint64_t seed);

#endif
