/*
 * Users as dense numbers: the part of the memory graph store that knows who is online. No locks here:
 * memory_graph.c holds its lock around every call, except where a node's id is read, which never
 * changes while somebody holds a reference.
 *
 * The arrays are sized for the bound at the start; pages nobody touched cost nothing, and no growth ever
 * copies them under the lock.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_GRAPH_USERS_H
#define ROLLCALL_STORE_MEMORY_MEMORY_GRAPH_USERS_H

#include "base/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_graph;

struct memory_graph_user {
    struct table_node node;
    struct memory_graph *graph; /* the one it owns, or NULL */
    int64_t version;            /* of the presence its bit shows; INT64_MIN: none known */
    uint32_t number;
    uint32_t refs;
    uint8_t id_len;
    char id[];
};

struct memory_graph_users {
    struct table by_id;
    struct memory_graph_user **by_number;
    uint64_t *online; /* a bit a number */
    uint32_t *free_numbers;
    size_t free_count;
    size_t used; /* numbers below this were given out at least once */
    size_t max;
};

bool memory_graph_users_init(struct memory_graph_users *nodes, size_t max, uint64_t hash_seed);
void memory_graph_users_free(struct memory_graph_users *nodes);

static inline struct slice memory_graph_user_id(const struct memory_graph_user *node)
{
    return (struct slice){node->id, node->id_len};
}

/* NULL: nobody refers to this user. */
struct memory_graph_user *memory_graph_users_find(const struct memory_graph_users *nodes,
                                                  struct slice user_id);

/* A reference to the user's node, made if need be; NULL when memory or numbers are short. */
struct memory_graph_user *memory_graph_users_retain(struct memory_graph_users *nodes,
                                                    struct slice user_id);
void memory_graph_users_release(struct memory_graph_users *nodes, struct memory_graph_user *node);

static inline bool memory_graph_users_is_online(const struct memory_graph_users *nodes,
                                                uint32_t number)
{
    return nodes->online[number / 64] >> (number % 64) & 1;
}

/* Sets the bit, unless what is known is as new as that or newer. True when it was set to another value. */
bool memory_graph_users_set_online(struct memory_graph_users *nodes, struct memory_graph_user *node,
                                   bool online, int64_t version);

#endif
