/*
 * The graph store in memory: the embedded backend, shared by all workers of a process.
 *
 * Every user who appears in a cached graph, as its owner or as a contact, has one node with a dense
 * number; a bitmap says which numbers are online. A graph holds its contacts' numbers, so an audience is
 * one bit test a contact (5,000 in a few microseconds) and then work for those online alone.
 *
 *   node     table by id; refs = graphs that name it, plus one while it owns a graph; freed at 0
 *   graph   immutable once put; pins = audiences being answered; freed when unlinked and unpinned
 *
 * One lock around all of it, held for bit tests and list moves only: ids of a pinned graph's contacts
 * are read without it, since a pinned graph keeps its nodes and an id never changes. Interning goes in
 * batches of MEMORY_GRAPH_BATCH, each with the lock of its own.
 *
 * How a put closes the gap to presence: intern (from here on graph_set_online() finds the node), then
 * read the state of nodes nobody has checked yet, then install the graph. Lock order: this lock is
 * never held while the state store is asked.
 *
 * Bounded by contacts cached in total. Beyond it graphs go, those of users who left first, longest gone
 * first, then the least recently used.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_GRAPH_H
#define ROLLCALL_STORE_MEMORY_MEMORY_GRAPH_H

#include "base/clock.h"
#include "store/graph_store.h"

enum {
    MEMORY_GRAPH_CONTACTS_TOTAL_MAX = 8 * 1000 * 1000, /* four bytes each, and their nodes */
    MEMORY_GRAPH_OWNER_COST = 16, /* what a graph counts besides its contacts, blocks and chats */
    MEMORY_GRAPH_BATCH = 256,
};

struct memory_graphs;

struct memory_graphs_options {
    size_t contacts_total_max; /* at least GRAPH_CONTACTS_MAX + MEMORY_GRAPH_OWNER_COST */
    uint64_t hash_seed;
};

/* NULL when memory is short. */
struct memory_graphs *memory_graphs_make(const struct memory_graphs_options *options);

/* After the last port of it is gone. */
void memory_graphs_free(struct memory_graphs **graphs);

/* A worker's port. `state` is that worker's port of the state store, whose calls must complete within
 * the call; both it and `clock` are borrowed for its life. NULL when memory is short. */
struct graph_store *memory_graphs_store(struct memory_graphs *graphs, struct state_store *state,
                                        const struct clock *clock);

struct memory_graphs_counts {
    size_t graphs;
    size_t nodes;
    size_t cost; /* what the bound holds */
};

struct memory_graphs_counts memory_graphs_count(struct memory_graphs *graphs);

#endif
