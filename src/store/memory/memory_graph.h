/*
 * The circle store in memory: the embedded backend, shared by all workers of a process.
 *
 * Every user who appears in a cached circle, as its owner or as a contact, has one node with a dense
 * number; a bitmap says which numbers are online. A circle holds its contacts' numbers, so an audience is
 * one bit test a contact (5,000 in a few microseconds) and then work for those online alone.
 *
 *   node     table by id; refs = circles that name it, plus one while it owns a circle; freed at 0
 *   circle   immutable once put; pins = audiences being answered; freed when unlinked and unpinned
 *
 * One lock around all of it, held for bit tests and list moves only: ids of a pinned circle's contacts
 * are read without it, since a pinned circle keeps its nodes and an id never changes. Interning goes in
 * batches of MEMORY_CIRCLE_BATCH, each with the lock of its own.
 *
 * How a put closes the gap to presence: intern (from here on circle_set_online() finds the node), then
 * read the state of nodes nobody has checked yet, then install the circle. Lock order: this lock is
 * never held while the state store is asked.
 *
 * Bounded by contacts cached in total. Beyond it circles go, those of users who left first, longest gone
 * first, then the least recently used.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_GRAPH_H
#define ROLLCALL_STORE_MEMORY_MEMORY_GRAPH_H

#include "base/clock.h"
#include "store/graph_store.h"

enum {
    MEMORY_CIRCLE_CONTACTS_TOTAL_MAX = 8 * 1000 * 1000, /* four bytes each, and their nodes */
    MEMORY_CIRCLE_OWNER_COST = 16, /* what a circle counts besides its contacts, blocks and chats */
    MEMORY_CIRCLE_BATCH = 256,
};

struct memory_circles;

struct memory_circles_options {
    size_t contacts_total_max; /* at least CIRCLE_CONTACTS_MAX + MEMORY_CIRCLE_OWNER_COST */
    uint64_t hash_seed;
};

/* NULL when memory is short. */
struct memory_circles *memory_circles_make(const struct memory_circles_options *options);

/* After the last port of it is gone. */
void memory_circles_free(struct memory_circles **circles);

/* A worker's port. `state` is that worker's port of the state store, whose calls must complete within
 * the call; both it and `clock` are borrowed for its life. NULL when memory is short. */
struct circle_store *memory_circles_store(struct memory_circles *circles, struct state_store *state,
                                          const struct clock *clock);

struct memory_circles_counts {
    size_t circles;
    size_t nodes;
    size_t cost; /* what the bound holds */
};

struct memory_circles_counts memory_circles_count(struct memory_circles *circles);

#endif
