/*
 * The graph store in memory: the embedded backend, shared by all workers of a process.
 *
 * Every user who appears in a cached graph, as its owner or as a contact, has one record with a dense number; a
 * bitmap says which numbers are online. A graph holds its contacts' numbers, so a lookup tests one bit per
 * contact (5,000 in a few microseconds) and then works only for those online.
 *
 *   user    table by id; refs = graphs that name the user, plus one while the user owns a graph; freed at 0
 *   graph   immutable once put; pins = lookups that read it; freed when unlinked and unpinned
 *
 * One lock guards all of it and is held for bit tests and list moves only. The ids of a pinned graph's contacts
 * are read without it, since a pinned graph keeps its users and an id never changes. Contacts are interned
 * (turned into numbers) in batches of MEMORY_GRAPH_BATCH, each under the lock by itself.
 *
 * A put misses no change of presence: it interns the contacts (from then on graph_set_online() finds them), then
 * reads the presence of those for whom it is not known yet, then installs the graph. Lock order: this lock is
 * never held during an operation of the state store.
 *
 * The contacts cached in total are bounded. Beyond the bound graphs are evicted: first those of offline users,
 * the longest offline first, then the least recently used.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_GRAPH_H
#define ROLLCALL_STORE_MEMORY_MEMORY_GRAPH_H

#include "base/clock.h"
#include "store/graph_store.h"

enum {
    MEMORY_GRAPH_CONTACTS_TOTAL_MAX = 8 * 1000 * 1000, /* four bytes each, and the users' records */
    MEMORY_GRAPH_OWNER_COST = 16, /* the cost of a graph besides its contacts, blocks and chats */
    MEMORY_GRAPH_BATCH = 256,
};

struct memory_graphs;

struct memory_graphs_options {
    size_t contacts_total_max; /* at least GRAPH_CONTACTS_MAX + MEMORY_GRAPH_OWNER_COST */
    uint64_t hash_seed;
};

/* Returns NULL when out of memory. */
struct memory_graphs *memory_graphs_make(const struct memory_graphs_options *options);

/* Call it after the last port is freed. */
void memory_graphs_free(struct memory_graphs **graphs);

/* Makes a worker's port, which borrows `state` and `clock` for its life. `state` is that worker's port of the
 * state store; its operations must complete before they return. Returns NULL when out of memory. */
struct graph_store *memory_graphs_store(struct memory_graphs *graphs, struct state_store *state,
                                        const struct clock *clock);

struct memory_graphs_counts {
    size_t graphs;
    size_t users;
    size_t cost; /* the bounded sum */
};

struct memory_graphs_counts memory_graphs_count(struct memory_graphs *graphs);

#endif
