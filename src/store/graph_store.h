/*
 * The graph store: a cache of who is around a user, and the one question it is for: who must hear of
 * this user's change, now?
 *
 * A graph is what the ledger knows of one user: settings, contacts, the users they have blocked, their
 * chats. The store keeps graphs as long as their users are here and for a day after, and it knows who
 * is online; so graph_lookup() answers with the contacts that are online, and what a change costs
 * grows with those, not with the contacts. A graph that is not there is a miss: the caller loads it
 * from the ledger and puts it.
 *
 *   miss (with a ticket) ──caller reads the ledger──► graph_put(ticket) ──► hit
 *   contacts, blocks, chats or settings change: commit, then graph_drop() ──► miss
 *
 * A drop makes every earlier ticket of that user void, so that what was read before a change is never
 * put after it. A backend in which a drop can go astray (its sender died) calls a graph aged after a while;
 * it may still be used, and is then to be put again. Presence has no such gap either: graph_set_online()
 * carries the version of the change and an older one never undoes a newer, and a put takes its contacts'
 * presence after it has made sure that later changes reach it.
 *
 * Contract of every call: as in store/state_store.h; calls of one port take effect in the order they
 * were made. What a cache forgets is only slower: any graph may be missing at any time. The suite in
 * tests/conformance/graph_store_suite.c says this in code, for every backend.
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
    GRAPH_CONTACTS_MAX = 10000,                 /* of one user; more are cut */
    GRAPH_OFFLINE_TTL_MS = 24 * 60 * 60 * 1000, /* kept so long after its user left */
};

struct social_graph {
    uint8_t presence_visibility; /* enum ledger_visibility, which the store does not look at */
    uint8_t last_seen_visibility;
    struct id_list contacts;
    struct id_list blocked; /* by this user */
    struct id_list chats;
};

struct graph_lookup {
    bool known; /* false: a miss, and only `ticket` means something */
    bool
        aged; /* known, but for so long that a drop may have gone astray: read it anew and put it */
    uint64_t ticket; /* for graph_put(); of a miss, and of what is aged */
    /* As it was put, but of the contacts only those who are online, in no order. */
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

/* The user's graph with the contacts that are online. */
static inline void graph_lookup(struct graph_store *store, struct slice user_id,
                                graph_lookup_done done, void *arg)
{
    store->operations->lookup(store, user_id, done, arg);
}

/* Keeps a graph that was read from the ledger after the answer which gave the ticket. With a void ticket,
 * or without memory, nothing is kept. */
static inline void graph_put(struct graph_store *store, struct slice user_id, uint64_t ticket,
                             const struct social_graph *graph)
{
    store->operations->put(store, user_id, ticket, graph);
}

/* What is cached of this user is no longer true. */
static inline void graph_drop(struct graph_store *store, struct slice user_id)
{
    store->operations->drop(store, user_id);
}

/* The user came, or left. `version` is that of the presence; a change older than one known is nothing. */
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
