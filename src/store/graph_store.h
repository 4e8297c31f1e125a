/*
 * The graph store: a cache of social graphs, made for one query: which contacts of this user are online, so
 * that a change must be published to them?
 *
 * A graph is a copy of the ledger's data about one user: settings, contacts, blocked users, chats. The store
 * keeps a graph while its user is online and for a day after, and it keeps track of who is online. So
 * graph_lookup() returns only the contacts who are online, and the cost of a change grows with their number,
 * not with the number of contacts. A missing graph is a miss: the caller loads it from the ledger and puts it.
 *
 *   miss (with a ticket) ──caller reads the ledger──► graph_put(ticket) ──► hit
 *   contacts, blocks, chats or settings change: commit, then graph_drop() ──► miss
 *
 * A drop voids every earlier ticket of that user, so a graph that was read before a change is never put after
 * it. A backend in which a drop can get lost (its sender died) reports a graph as aged after a while: the
 * caller may use it, and then reads and puts it again. Presence is as safe: graph_set_online() carries the
 * version of the change, an older version never undoes a newer one, and a put reads its contacts' presence
 * only after it has made sure that later changes reach it.
 *
 * Contract of every operation: as in store/state_store.h; operations of one port take effect in the order in
 * which they were started. Any graph may be missing at any time, which costs time and nothing else. The suite
 * in tests/conformance/graph_store_suite.c tests this for every backend.
 */
#ifndef ROLLCALL_STORE_GRAPH_STORE_H
#define ROLLCALL_STORE_GRAPH_STORE_H

#include "base/id_list.h"
#include "base/slice.h"
#include "store/state_store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GRAPH_CONTACTS_MAX = 10000, /* of one user; contacts beyond are left out */
    GRAPH_OFFLINE_TTL_MS =
        24 * 60 * 60 * 1000, /* how long a graph is kept after its user went offline */
};

struct social_graph {
    uint8_t presence_visibility; /* enum ledger_visibility; the store does not interpret it */
    uint8_t last_seen_visibility;
    struct id_list contacts;
    struct id_list blocked;    /* by this user */
    struct id_list blocked_by; /* the users who blocked this user */
    struct id_list chats;
};

struct graph_lookup {
    bool known;      /* false: a miss, and only `ticket` is set */
    bool aged;       /* old enough that a drop may have been lost: read it again and put it */
    uint64_t ticket; /* for graph_put(), after a miss or for an aged graph */
    /* As it was put, but with only those contacts who are online, in no order. */
    struct social_graph graph;
};

struct graph_store;

typedef void (*graph_lookup_done)(void *arg, enum state_status status,
                                  const struct graph_lookup *lookup);

struct graph_store_operations {
    void (*lookup)(struct graph_store *store, struct slice user_id, graph_lookup_done done,
                   void *arg);
    void (*put)(struct graph_store *store, struct slice user_id, uint64_t ticket,
                const struct social_graph *graph);
    void (*drop)(struct graph_store *store, struct slice user_id);
    void (*set_online)(struct graph_store *store, struct slice user_id, bool online,
                       int64_t version);
    void (*free)(struct graph_store *store);
};

struct graph_store {
    const struct graph_store_operations *operations;
};

/* Returns the user's graph with the contacts who are online. */
static inline void graph_lookup(struct graph_store *store, struct slice user_id,
                                graph_lookup_done done, void *arg)
{
    store->operations->lookup(store, user_id, done, arg);
}

/* Keeps a graph that the caller read from the ledger after the lookup that gave the ticket. Keeps nothing if the
 * ticket is void or memory is short. */
static inline void graph_put(struct graph_store *store, struct slice user_id, uint64_t ticket,
                             const struct social_graph *graph)
{
    store->operations->put(store, user_id, ticket, graph);
}

/* Drops the user's graph, because the ledger's data changed. */
static inline void graph_drop(struct graph_store *store, struct slice user_id)
{
    store->operations->drop(store, user_id);
}

/* Records that the user came online or went offline. `version` is that of the presence; a change older than
 * the known one is ignored. */
static inline void graph_set_online(struct graph_store *store, struct slice user_id, bool online,
                                    int64_t version)
{
    store->operations->set_online(store, user_id, online, version);
}

static inline void graph_store_free(struct graph_store **store)
{
    struct graph_store *freed = *store;
    *store = NULL;
    if (freed)
        freed->operations->free(freed);
}

#endif
