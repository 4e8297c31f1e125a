/*
 * The life of a graph in memory: made, linked to its owner, pinned while a lookup reads it, unlinked, released.
 * memory_graph.c implements the port on top of this; its header has the overview.
 *
 *   made ──link──► LINKED ──unlink (replaced, dropped, expired, evicted)──► unlinked
 *                    │ pin, unpin                                               │ last pin gone
 *                    ▼                                                          ▼
 *                  lookups                                                    DEAD ── released
 *
 * The caller holds `lock` unless a function says otherwise. memory_graphs_unlock() releases the lock and then
 * the graphs that died while it was held.
 */
#ifndef ROLLCALL_STORE_MEMORY_MEMORY_GRAPH_CACHE_H
#define ROLLCALL_STORE_MEMORY_MEMORY_GRAPH_CACHE_H

#include "base/list.h"
#include "store/memory/memory_graph.h"
#include "store/memory/memory_graph_users.h"

#include <pthread.h>

/* Drops are counted per hash slot; a collision only voids a valid ticket. */
enum { MEMORY_GRAPH_DROP_SLOTS = 4096 };

/* Every online user has one, so it is one small allocation: the contacts' numbers follow the struct, then the
 * slices of blocked users and their bytes, then those of users who blocked the owner, then those of chats. */
struct memory_graph {
    struct list by_use; /* on `online`, `offline` or `dead` */
    struct memory_graph_user *owner;
    int64_t offline_at_ms; /* while on `offline`: when the owner went offline, monotonic */
    uint32_t pins;
    uint32_t contact_count; /* interned so far */
    uint32_t blocked_at;    /* byte offset of their slices from the start of the struct */
    uint32_t blocked_count;
    uint32_t blocked_by_at;
    uint32_t blocked_by_count;
    uint32_t chats_at;
    uint32_t chat_count;
    uint32_t cost;
    bool linked; /* to its owner */
    uint8_t presence_visibility;
    uint8_t last_seen_visibility;
    uint32_t contacts[];
};

struct memory_graphs {
    pthread_mutex_t lock;
    struct memory_graph_users users;
    struct list online;  /* graphs of online users, the least recently used first */
    struct list offline; /* graphs of offline users, the longest offline first */
    struct list dead;    /* unlinked and unpinned, to be released */
    size_t graph_count;
    size_t cost; /* of all graphs that are not freed, and of those being put */
    size_t cost_max;
    uint64_t hash_seed;
    uint64_t drops[MEMORY_GRAPH_DROP_SLOTS];
};

/* Returns a copy of the graph without its contacts, which the caller interns; NULL when out of memory. Call it
 * without the lock. */
struct memory_graph *memory_graph_make(const struct social_graph *graph);

/* Returns the graph as it was put, without its contacts. Needs no lock while the graph is pinned. */
struct social_graph memory_graph_borrow(const struct memory_graph *graph);

/* Returns how many of its contacts are kept. */
size_t memory_graph_contacts(const struct social_graph *graph);

/* Whether its owner has been offline for so long that the graph counts as missing. */
bool memory_graph_is_expired(const struct memory_graph *graph, int64_t now_ms);

/* Links the graph to its owner and unlinks the previous one. */
void memory_graph_link(struct memory_graphs *graphs, struct memory_graph *graph, int64_t now_ms);
void memory_graph_unlink(struct memory_graphs *graphs, struct memory_graph *graph);

/* Moves a linked graph to the end of `online` or `offline`, as its owner's presence is. */
void memory_graph_place(struct memory_graphs *graphs, struct memory_graph *graph, int64_t now_ms);

/* Removes one pin. */
void memory_graph_unpin(struct memory_graphs *graphs, struct memory_graph *graph);

/* Frees a graph that nobody else can reach, with its references. Call it without the lock, which it takes for one
 * batch at a time. */
void memory_graph_release(struct memory_graphs *graphs, struct memory_graph *graph);

/* Reserves a cost and evicts other graphs for it. Returns false if it does not fit. Call it without the lock. */
bool memory_graphs_reserve(struct memory_graphs *graphs, size_t cost, int64_t now_ms);

/* Returns the drop counter of the user's hash slot, whose value is the ticket. */
uint64_t *memory_graphs_drops(struct memory_graphs *graphs, struct slice user_id);

void memory_graphs_lock(struct memory_graphs *graphs);
void memory_graphs_unlock(struct memory_graphs *graphs);

#endif
