/*
 * How fast users send over REST, where there is no connection to count for: a small table without
 * memory management, indexed by the user's hash. Two users who meet in a place push each other out,
 * which forgets what the other had sent: generous, and bounded. One thread.
 */
#ifndef ROLLCALL_API_SENDER_RATES_H
#define ROLLCALL_API_SENDER_RATES_H

#include "base/slice.h"
#include "connection/rate_limit.h"

#include <stdbool.h>
#include <stdint.h>

enum { SENDER_RATES_PLACES = 1024 };

struct sender_rates {
    struct {
        uint64_t user; /* hash */
        struct rate_limit limit;
    } places[SENDER_RATES_PLACES];
};

/* The limit of a user. */
struct rate_limit *sender_rates_of(struct sender_rates *rates, struct slice user, uint64_t seed);

#endif
