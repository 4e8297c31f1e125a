/*
 * Where users are connected, as Redis said when it was last asked: a table without I/O.
 *
 * An entry is READING from the moment its commands are sent (redis_route_cache_begin()) until they are answered
 * (redis_route_cache_end()), and READY from then on. Redis tracks the keys that were read (redis_client.h) and reports
 * each change, which drops the entry, whichever state it is in: so a change between the commands of one reading leaves
 * no entry behind. A READY entry is right at a reply of the connection with its tracking number; redis_state_routes.c asks for
 * one each time. A user without any gateway has an entry too: most of what is asked is about users who are offline.
 *
 * Bounded by `max` users. Beyond that, one that was not used lately gives way. One per store, on its thread.
 */
#ifndef ROLLCALL_STORE_REDIS_STATE_REDIS_ROUTE_CACHE_H
#define ROLLCALL_STORE_REDIS_STATE_REDIS_ROUTE_CACHE_H

#include "base/list.h"
#include "base/table.h"

/* Users of one worker, about 120 bytes each. */
enum { REDIS_ROUTE_CACHE_USERS_MAX = 1 << 16, REDIS_ROUTE_DEVICES_UNKNOWN = -1 };

struct redis_cached_route {
    struct table_node node;
    struct list place;
    uint64_t tracking; /* of the connection on which it was read */
    uint64_t reading;  /* the number of the reading; 0: READY */
    char *
        gateways; /* owned; for each gateway one byte with the length of its id, and the id. NULL: none */
    size_t gateways_len;
    int64_t devices; /* or REDIS_ROUTE_DEVICES_UNKNOWN */
    uint16_t slot;
    bool is_parked;
    bool is_used; /* since the last eviction passed by */
    size_t user_len;
    char user[];
};

struct redis_route_cache {
    struct table users;
    struct list places; /* the order in which entries give way */
    size_t max;
    uint64_t readings;
};

/* What was read about one user. */
struct redis_route_answer {
    struct slice gateways; /* as in struct redis_cached_route */
    int64_t devices;
    bool is_parked;
};

/* Returns false when out of memory. */
bool redis_route_cache_init(struct redis_route_cache *cache, uint64_t seed, size_t max);
void redis_route_cache_free(struct redis_route_cache *cache);

/* Returns the READY entry of a user, or NULL. */
const struct redis_cached_route *redis_route_cache_find(struct redis_route_cache *cache,
                                                        struct slice user);

/* The user is being read on the connection with this tracking number. Replaces a READY entry. Returns the reading's
 * number; 0: there is another reading of this user, or no memory, and this one is not kept. */
uint64_t redis_route_cache_begin(struct redis_route_cache *cache, struct slice user,
                                 uint64_t tracking, uint16_t slot);

/* Makes the entry READY if the reading's entry is still there. An answer of NULL removes it: the reading failed. Returns
 * whether it was still there: if not, something has changed meanwhile. A reading of number 0 was not changed. */
bool redis_route_cache_end(struct redis_route_cache *cache, struct slice user, uint64_t reading,
                           const struct redis_route_answer *answer);

/* The user's routes may have changed; those of all users. */
void redis_route_cache_drop(struct redis_route_cache *cache, struct slice user);
void redis_route_cache_clear(struct redis_route_cache *cache);

#endif
