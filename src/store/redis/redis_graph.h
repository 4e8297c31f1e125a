/*
 * The graph store on Redis: one cache for a fleet.
 *
 *   user:<user>:friends          SET     the contacts; 24 h from the last use
 *   user:<user>:circle           HASH    both settings, and how many of each list there are
 *   user:<user>:blocked, :chats  LIST    these, and the hash, live as long as the contacts
 *   presence_visibility:<user>   STRING  everyone | contacts_only | nobody; 300 s
 *   user:<user>:circle:ticket    STRING  what a put must show; 60 s
 *
 * All are one user's, so of one slot on a cluster, and every operation is one script (store/redis/lua/graph.lua).
 * A drop removes them all, tickets included, whichever gateway gave those: what was read before it is
 * refused everywhere. One that Redis does not take is tried again, REDIS_GRAPH_RETRY_MS later, until it does;
 * REDIS_GRAPH_UNDROPPED_MAX wait at most. Should that not help either (a gateway dies between the commit and the drop, a failover loses
 * it), a graph is aged once its visibility has run out, and who uses an aged one reads the ledger anew.
 *
 * Who is online is never copied here: the state store keeps the sets of those (redis_state.h), and changes
 * need no further word (set_online does nothing). A single server intersects the contacts with that set in
 * the script: it looks at each contact and sends those online. On a cluster the set is in shards elsewhere, so
 * the contacts come to the gateway, which asks each shard for its part of them at once: two journeys, and
 * bytes that grow with the contacts, but at most REDIS_STATE_SHARDS commands. The shards follow a transition
 * a moment later, and one that cannot be reached counts all its contacts as online: being told without being
 * there does no harm.
 *
 * One per worker, on its thread. Foreign or corrupt values are removed and count as a miss.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_GRAPH_H
#define ROLLCALL_STORE_REDIS_REDIS_GRAPH_H

#include "base/random.h"
#include "net/loop.h"
#include "redis/redis_client.h"
#include "store/graph_store.h"

#define REDIS_GRAPH_ONLINE "presence:online"

enum {
    REDIS_GRAPH_UNDROPPED_MAX = 10000,
    REDIS_GRAPH_RETRY_MS = 500,
};

struct redis_graph_options {
    struct redis_client *client; /* all borrowed for the store's life */
    struct random *random;
    struct loop *loop;
};

/* A worker's port. NULL when memory is short. May be freed while answers are owed; they come when the client
 * gives them. */
struct graph_store *redis_graph_make(const struct redis_graph_options *options);

#endif
