#include "redis/redis_pending.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_FIRST = 64 };

static bool grow(struct redis_pending *calls)
{
    size_t cap = calls->cap ? calls->cap * 2 : CALLS_FIRST;
    if (cap > REDIS_PENDING_MAX)
        return false;
    struct redis_pending_command *ring = malloc(cap * sizeof(*ring));
    if (!ring)
        return false;
    size_t until_end = calls->cap - calls->oldest;
    if (calls->count > 0) {
        memcpy(ring, calls->ring + calls->oldest, until_end * sizeof(*ring));
        memcpy(ring + until_end, calls->ring, calls->oldest * sizeof(*ring));
    }
    free(calls->ring);
    calls->ring = ring;
    calls->cap = cap;
    calls->oldest = 0;
    return true;
}

bool redis_pending_push(struct redis_pending *calls, const struct redis_pending_command *call)
{
    if (calls->count == calls->cap && !grow(calls))
        return false;
    calls->ring[(calls->oldest + calls->count++) & (calls->cap - 1)] = *call;
    return true;
}

struct redis_pending_command *redis_pending_oldest(const struct redis_pending *calls)
{
    return calls->count ? &calls->ring[calls->oldest] : NULL;
}

struct redis_pending_command redis_pending_pop(struct redis_pending *calls)
{
    assert(calls->count > 0);
    struct redis_pending_command call = calls->ring[calls->oldest];
    calls->oldest = (calls->oldest + 1) & (calls->cap - 1);
    calls->count--;
    return call;
}

void redis_pending_unpush(struct redis_pending *calls)
{
    assert(calls->count > 0);
    calls->count--;
}

void redis_pending_free(struct redis_pending *calls)
{
    free(calls->ring);
    *calls = (struct redis_pending){0};
}
