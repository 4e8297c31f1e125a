#include "redis/redis_pending.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PENDING_FIRST = 64 };

static bool grow_pending(struct redis_pending *pending)
{
    size_t cap = pending->cap ? pending->cap * 2 : PENDING_FIRST;
    if (cap > REDIS_PENDING_MAX)
        return false;
    struct redis_pending_command *ring = malloc(cap * sizeof(*ring));
    if (!ring)
        return false;
    size_t until_end = pending->cap - pending->oldest;
    if (pending->count > 0) {
        memcpy(ring, pending->ring + pending->oldest, until_end * sizeof(*ring));
        memcpy(ring + until_end, pending->ring, pending->oldest * sizeof(*ring));
    }
    free(pending->ring);
    pending->ring = ring;
    pending->cap = cap;
    pending->oldest = 0;
    return true;
}

bool redis_pending_push(struct redis_pending *pending, const struct redis_pending_command *entry)
{
    if (pending->count == pending->cap && !grow_pending(pending))
        return false;
    pending->ring[(pending->oldest + pending->count++) & (pending->cap - 1)] = *entry;
    return true;
}

struct redis_pending_command *redis_pending_oldest(const struct redis_pending *pending)
{
    return pending->count ? &pending->ring[pending->oldest] : NULL;
}

struct redis_pending_command redis_pending_pop(struct redis_pending *pending)
{
    assert(pending->count > 0);
    struct redis_pending_command entry = pending->ring[pending->oldest];
    pending->oldest = (pending->oldest + 1) & (pending->cap - 1);
    pending->count--;
    return entry;
}

void redis_pending_unpush(struct redis_pending *pending)
{
    assert(pending->count > 0);
    pending->count--;
}

void redis_pending_free(struct redis_pending *pending)
{
    free(pending->ring);
    *pending = (struct redis_pending){0};
}
