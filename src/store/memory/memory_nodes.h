/*
 * Users as dense numbers: the part of the memory graph store that knows who is online. No locks here:
 * memory_graph.c holds its lock around every call, except where a node's id is read, which never
 * changes while somebody holds a reference.
 *
 * The arrays are sized for the bound at the start; pages nobody touched cost nothing, and no growth ever
 * copies them under the lock.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_NODES_H
#define ROLLCALL_STORE_MEMORY_MEMORY_NODES_H

#include "base/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_graph;

struct memory_node {
    struct table_node node;
    struct memory_graph *graph; /* the one it owns, or NULL */
    int64_t version;            /* of the presence its bit shows; INT64_MIN: none known */
    uint32_t number;
    uint32_t refs;
    uint8_t id_len;
    char id[];
};

struct memory_nodes {
    struct table by_id;
    struct memory_node **by_number;
    uint64_t *online; /* a bit a number */
    uint32_t *free_numbers;
    size_t free_count;
    size_t used; /* numbers below this were given out at least once */
    size_t max;
};

bool memory_nodes_init(struct memory_nodes *nodes, size_t max, uint64_t hash_seed);
void memory_nodes_free(struct memory_nodes *nodes);

static inline struct slice memory_node_id(const struct memory_node *node)
{
    return (struct slice){node->id, node->id_len};
}

/* NULL: nobody refers to this user. */
struct memory_node *memory_nodes_find(const struct memory_nodes *nodes, struct slice user_id);

/* A reference to the user's node, made if need be; NULL when memory or numbers are short. */
struct memory_node *memory_nodes_share(struct memory_nodes *nodes, struct slice user_id);
void memory_nodes_drop(struct memory_nodes *nodes, struct memory_node *node);

static inline bool memory_nodes_online(const struct memory_nodes *nodes, uint32_t number)
{
    return nodes->online[number / 64] >> (number % 64) & 1;
}

/* Sets the bit, unless what is known is as new as that or newer. True when it was set to another value. */
bool memory_nodes_set_online(struct memory_nodes *nodes, struct memory_node *node, bool online,
                             int64_t version);

#endif
