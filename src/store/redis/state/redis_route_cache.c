#include "store/redis/state/redis_route_cache.h"

#include "base/container.h"

#include <stdlib.h>
#include <string.h>

static struct slice cached_route_user(const struct redis_cached_route *route)
{
    return (struct slice){route->user, route->user_len};
}

static bool cached_route_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(cached_route_user(CONTAINER_OF(node, struct redis_cached_route, node)), key);
}

bool redis_route_cache_init(struct redis_route_cache *cache, uint64_t seed, size_t max)
{
    *cache = (struct redis_route_cache){.max = max};
    list_init(&cache->places);
    return table_init(&cache->users, seed, cached_route_matches);
}

static void cached_route_free(struct redis_route_cache *cache, struct redis_cached_route *route)
{
    table_remove(&cache->users, &route->node);
    list_remove(&route->place);
    free(route->gateways);
    free(route);
}

void redis_route_cache_clear(struct redis_route_cache *cache)
{
    while (!list_empty(&cache->places))
        cached_route_free(cache,
                          CONTAINER_OF(cache->places.next, struct redis_cached_route, place));
}

void redis_route_cache_free(struct redis_route_cache *cache)
{
    if (!cache->places.next)
        return;
    redis_route_cache_clear(cache);
    table_free(&cache->users);
}

static struct redis_cached_route *find_cached_route(struct redis_route_cache *cache,
                                                    struct slice user)
{
    struct table_node *node = table_find(&cache->users, user);
    return node ? CONTAINER_OF(node, struct redis_cached_route, node) : NULL;
}

const struct redis_cached_route *redis_route_cache_find(struct redis_route_cache *cache,
                                                        struct slice user)
{
    struct redis_cached_route *route = find_cached_route(cache, user);
    if (!route || route->reading)
        return NULL;
    route->is_used = true;
    return route;
}

/* Passes by each used entry once at most. */
static void evict_cached_route(struct redis_route_cache *cache)
{
    for (;;) {
        struct redis_cached_route *route =
            CONTAINER_OF(cache->places.next, struct redis_cached_route, place);
        if (!route->is_used) {
            cached_route_free(cache, route);
            return;
        }
        route->is_used = false;
        list_remove(&route->place);
        list_append(&cache->places, &route->place);
    }
}

static struct redis_cached_route *make_cached_route(struct redis_route_cache *cache,
                                                    struct slice user)
{
    struct redis_cached_route *route = calloc(1, sizeof(*route) + user.len);
    if (!route)
        return NULL;
    if (cache->users.size >= cache->max)
        evict_cached_route(cache);
    route->user_len = user.len;
    memcpy(route->user, user.data, user.len);
    list_append(&cache->places, &route->place);
    table_insert(&cache->users, &route->node, user);
    return route;
}

static void forget_cached_gateways(struct redis_cached_route *route)
{
    free(route->gateways);
    route->gateways = NULL;
    route->gateways_len = 0;
}

uint64_t redis_route_cache_begin(struct redis_route_cache *cache, struct slice user,
                                 uint64_t tracking, uint16_t slot)
{
    struct redis_cached_route *route = find_cached_route(cache, user);
    if (route && route->reading && route->tracking == tracking)
        return 0;
    if (!route)
        route = make_cached_route(cache, user);
    if (!route)
        return 0;
    forget_cached_gateways(route);
    route->tracking = tracking;
    route->slot = slot;
    route->reading = ++cache->readings;
    return route->reading;
}

bool redis_route_cache_end(struct redis_route_cache *cache, struct slice user, uint64_t reading,
                           const struct redis_route_answer *answer)
{
    struct redis_cached_route *route = reading ? find_cached_route(cache, user) : NULL;
    if (!route || route->reading != reading)
        return reading == 0;
    char *gateways = answer && answer->gateways.len ? malloc(answer->gateways.len) : NULL;
    if (!answer || (answer->gateways.len && !gateways)) {
        cached_route_free(cache, route);
        return true;
    }
    if (gateways)
        memcpy(gateways, answer->gateways.data, answer->gateways.len);
    route->gateways = gateways;
    route->gateways_len = answer->gateways.len;
    route->devices = answer->devices;
    route->is_parked = answer->is_parked;
    route->reading = 0;
    return true;
}

void redis_route_cache_drop(struct redis_route_cache *cache, struct slice user)
{
    struct redis_cached_route *route = find_cached_route(cache, user);
    if (route)
        cached_route_free(cache, route);
}
