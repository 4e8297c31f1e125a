#include "aggregate/aggregate_ring.h"

#include "base/hash_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINT_NAME_MAX = 320 };

/* Every process must compute the same hashes, so the seed is a constant; nobody but the operator chooses addresses. */
enum { RING_SEED = 0 };

/* Equal hashes are ordered by aggregator, so that all agree. */
static int compare_points(const void *a, const void *b)
{
    const struct aggregate_point *left = a, *right = b;
    if (left->at != right->at)
        return left->at < right->at ? -1 : 1;
    return (left->aggregator > right->aggregator) - (left->aggregator < right->aggregator);
}

/* Returns the first point at or after the hash; `count` is the same as 0. */
static size_t find_point(const struct aggregate_ring *ring, uint64_t at)
{
    size_t low = 0, high = ring->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ring->points[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void place_points(struct aggregate_ring *ring, const char *const *addresses,
                         const struct hash_key *key)
{
    char name[POINT_NAME_MAX];
    for (size_t i = 0; i < ring->count; i++) {
        size_t aggregator = i / AGGREGATE_RING_POINTS;
        snprintf(name, sizeof(name), "%zu %s", i % AGGREGATE_RING_POINTS, addresses[aggregator]);
        ring->points[i] =
            (struct aggregate_point){hash_key_hash(key, slice_of(name)), (uint16_t)aggregator};
    }
    qsort(ring->points, ring->count, sizeof(*ring->points), compare_points);
}

static void place_slots(struct aggregate_ring *ring, const struct hash_key *key)
{
    char name[16];
    for (unsigned slot = 0; slot < AGGREGATE_SLOTS && ring->count; slot++) {
        snprintf(name, sizeof(name), "slot %u", slot);
        ring->firsts[slot] =
            (uint16_t)(find_point(ring, hash_key_hash(key, slice_of(name))) % ring->count);
    }
}

bool aggregate_ring_init(struct aggregate_ring *ring, const char *const *addresses, size_t count)
{
    struct hash_key key;
    hash_key_init(&key, RING_SEED);
    ring->count = count * AGGREGATE_RING_POINTS;
    ring->points = calloc(ring->count + 1, sizeof(*ring->points));
    ring->firsts = calloc(AGGREGATE_SLOTS, sizeof(*ring->firsts));
    if (!ring->points || !ring->firsts) {
        aggregate_ring_free(ring);
        return false;
    }
    place_points(ring, addresses, &key);
    place_slots(ring, &key);
    return true;
}

void aggregate_ring_free(struct aggregate_ring *ring)
{
    free(ring->points);
    free(ring->firsts);
    *ring = (struct aggregate_ring){0};
}

size_t aggregate_ring_find(const struct aggregate_ring *ring, uint16_t slot, const bool *usable)
{
    size_t first = ring->count ? ring->firsts[slot] : 0;
    for (size_t i = 0; i < ring->count; i++) {
        size_t aggregator = ring->points[(first + i) % ring->count].aggregator;
        if (usable[aggregator])
            return aggregator;
    }
    return AGGREGATE_NONE;
}
