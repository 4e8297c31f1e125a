/*
 * The users who appear in cached graphs, as dense numbers, with one bit for each that says whether the user is
 * online. No locks: memory_graph.c holds its lock around every function, except where it reads a user's id,
 * which never changes while a graph holds a reference.
 *
 * The arrays have their final size from the start: untouched pages cost nothing, and nothing is ever copied
 * under the lock to grow them.
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
    struct memory_graph *graph; /* the user's own graph, or NULL */
    int64_t version; /* of the presence that the online bit shows; INT64_MIN: none known */
    uint32_t number;
    uint32_t refs;
    uint8_t id_len;
    char id[];
};

struct memory_graph_users {
    struct table by_id;
    struct memory_graph_user **by_number;
    uint64_t *online; /* one bit per number */
    uint32_t *free_numbers;
    size_t free_count;
    size_t used; /* every number below was given out at least once */
    size_t max;
};

bool memory_graph_users_init(struct memory_graph_users *users, size_t max, uint64_t hash_seed);
void memory_graph_users_free(struct memory_graph_users *users);

static inline struct slice memory_graph_user_id(const struct memory_graph_user *user)
{
    return (struct slice){user->id, user->id_len};
}

/* Returns NULL if no graph refers to this user. */
struct memory_graph_user *memory_graph_users_find(const struct memory_graph_users *users,
                                                  struct slice user_id);

/* Takes a reference to the user, who is added if new. Returns NULL when out of memory or numbers. */
struct memory_graph_user *memory_graph_users_retain(struct memory_graph_users *users,
                                                    struct slice user_id);
void memory_graph_users_release(struct memory_graph_users *users, struct memory_graph_user *user);

static inline bool memory_graph_users_is_online(const struct memory_graph_users *users,
                                                uint32_t number)
{
    return users->online[number / 64] >> (number % 64) & 1;
}

/* Sets the online bit unless the known version is as new or newer. Returns whether the bit changed. */
bool memory_graph_users_set_online(struct memory_graph_users *users, struct memory_graph_user *user,
                                   bool online, int64_t version);

#endif
