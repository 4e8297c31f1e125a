/*
 * The graphs in memory and their lives: made, linked to their owner, pinned while an answer is read from
 * them, unlinked, released. What memory_graph.c, which implements the port, is built on; the picture is
 * in its header.
 *
 *   made ──link──► LINKED ──unlink (replaced, dropped, expired, evicted)──► unlinked
 *                    │ pin, unpin                                               │ last pin gone
 *                    ▼                                                          ▼
 *                  answers                                                    DEAD ── released
 *
 * Everything here is called with `lock` held, but for what says otherwise. The lock is given back with
 * memory_graphs_unlock(), which releases, outside of it, what died under it.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_GRAPH_CACHE_H
#define ROLLCALL_STORE_MEMORY_MEMORY_GRAPH_CACHE_H

#include "base/list.h"
#include "store/memory/memory_graph.h"
#include "store/memory/memory_graph_users.h"

#include <pthread.h>

/* Drops are counted per slot of a hash: a collision merely voids a ticket that was good. */
enum { MEMORY_GRAPH_DROP_SLOTS = 4096 };

/* One allocation, and every user who is online has one, so it is kept small: contacts' numbers follow,
 * then the slices of blocks and their bytes, then those of chats. */
struct memory_graph {
    struct list by_use; /* on `here`, `gone` or `dead` */
    struct memory_graph_user *owner;
    int64_t gone_at_ms; /* while on `gone`: when the owner left, monotonic */
    uint32_t pins;
    uint32_t contact_count; /* interned so far */
    uint32_t blocked_at;    /* where their slices begin, from the struct's start */
    uint32_t blocked_count;
    uint32_t chats_at;
    uint32_t chat_count;
    uint32_t cost;
    bool linked; /* the owner's */
    uint8_t presence_visibility;
    uint8_t last_seen_visibility;
    uint32_t contacts[];
};

struct memory_graphs {
    pthread_mutex_t lock;
    struct memory_graph_users nodes;
    struct list here; /* graphs of users who are online, least recently used first */
    struct list gone; /* of those who are not, longest gone first */
    struct list dead; /* unlinked and unpinned, to be released */
    size_t graph_count;
    size_t cost; /* of all that are not freed, and those being put */
    size_t cost_max;
    uint64_t hash_seed;
    uint64_t drops[MEMORY_GRAPH_DROP_SLOTS];
};

/* A copy of what was read, but for the contacts, who are the caller's to intern. Without the lock. NULL when
 * memory is short. */
struct memory_graph *memory_graph_make(const struct social_graph *graph);

/* As it was put, but for the contacts. Without the lock, while it is pinned. */
struct social_graph memory_graph_view(const struct memory_graph *graph);

/* Contacts of it that are kept. */
size_t memory_graph_contacts(const struct social_graph *graph);

/* Whether its owner has been gone for so long that it counts as forgotten. */
bool memory_graph_is_over(const struct memory_graph *graph, int64_t now_ms);

/* Makes it its owner's, in the place of one that was. */
void memory_graph_link(struct memory_graphs *graphs, struct memory_graph *graph, int64_t now_ms);
void memory_graph_unlink(struct memory_graphs *graphs, struct memory_graph *graph);

/* Puts a linked graph where its owner's presence says. */
void memory_graph_place(struct memory_graphs *graphs, struct memory_graph *graph, int64_t now_ms);

/* Takes one of its pins back. */
void memory_graph_unpin(struct memory_graphs *graphs, struct memory_graph *graph);

/* Gives back a graph that nobody else can reach, with its references, a batch under each lock. Without the
 * lock. */
void memory_graph_release(struct memory_graphs *graphs, struct memory_graph *graph);

/* Makes room for a cost, at the expense of others. False when that cannot be had. Without the lock. */
bool memory_graphs_reserve(struct memory_graphs *graphs, size_t cost, int64_t now_ms);

/* How often graphs of such users were dropped: a ticket. */
uint64_t *memory_graphs_drops(struct memory_graphs *graphs, struct slice user_id);

void memory_graphs_lock(struct memory_graphs *graphs);
void memory_graphs_unlock(struct memory_graphs *graphs);

#endif
