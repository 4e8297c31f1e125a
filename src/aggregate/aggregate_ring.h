/*
 * Which aggregator serves a slot: consistent hashing with virtual nodes.
 *
 * A slot is one of Redis Cluster's 16384 (redis_slot.h), that of a user's id, so that what an aggregator serves is spread
 * evenly and independent of who asks. Each aggregator has AGGREGATE_RING_POINTS points on a ring of hashes; a slot
 * belongs to the first point at or after its own hash whose aggregator is usable. So when one goes away only its slots
 * move, spread over all others, and they come back when it does.
 *
 * The points depend on the addresses alone, not on their order, so all gateways with the same setting agree. Nothing
 * breaks while they do not (one has lost its link, or an older setting): a transition is one script in Redis, whoever
 * runs it.
 */
#ifndef ROLLCALL_AGGREGATE_AGGREGATE_RING_H
#define ROLLCALL_AGGREGATE_AGGREGATE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    AGGREGATORS_MAX = 256,
    AGGREGATE_SLOTS = 16384,
    AGGREGATE_RING_POINTS = 64,
    AGGREGATE_NONE = AGGREGATORS_MAX, /* no aggregator is usable */
};

struct aggregate_point {
    uint64_t at;
    uint16_t aggregator;
};

struct aggregate_ring {
    struct aggregate_point *points; /* sorted */
    size_t count;
    uint16_t *firsts; /* of each slot: the index of the first point at or after its hash */
};

/* `addresses` are at most AGGREGATORS_MAX. Returns false when out of memory. */
bool aggregate_ring_init(struct aggregate_ring *ring, const char *const *addresses, size_t count);
void aggregate_ring_free(struct aggregate_ring *ring);

/* Returns the index of the slot's aggregator among the usable ones; AGGREGATE_NONE: none is. */
size_t aggregate_ring_find(const struct aggregate_ring *ring, uint16_t slot, const bool *usable);

#endif
