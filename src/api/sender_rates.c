#include "api/sender_rates.h"

#include <xxhash.h>

struct rate_limit *sender_rates_of(struct sender_rates *rates, struct slice user, uint64_t seed)
{
    uint64_t hash = XXH3_64bits_withSeed(user.data, user.len, seed);
    size_t place = hash % SENDER_RATES_PLACES;
    if (rates->places[place].user != hash) {
        rates->places[place].user = hash;
        rates->places[place].limit = (struct rate_limit){0};
    }
    return &rates->places[place].limit;
}
