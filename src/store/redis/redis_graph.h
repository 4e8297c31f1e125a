/*
 * The graph store on Redis: one cache of social graphs for a fleet.
 *
 *   user:<user>:friends          SET     the contacts; 24 h from the last use
 *   user:<user>:circle           HASH    both settings, and the length of each list
 *   user:<user>:blocked, :chats  LIST    live as long as the contacts, like the hash
 *   presence_visibility:<user>   STRING  everyone | contacts_only | nobody; 300 s
 *   user:<user>:circle:ticket    STRING  the ticket that a put must present; 60 s
 *
 * All keys of one user are in one slot on a cluster, and every operation is one script (store/redis/lua/graph.lua).
 *
 * A drop removes all of them, the ticket included, whichever gateway gave the ticket out. So a graph that any gateway
 * read from the ledger before the drop is refused after it. A drop that Redis does not accept is sent again after
 * REDIS_GRAPH_RETRY_MS until it does; at most REDIS_GRAPH_FAILED_DROPS_MAX wait for that. A drop can still be lost: a
 * gateway dies between its commit and the drop, or a failover loses it. Therefore a graph counts as aged once its
 * presence_visibility has expired, and a gateway that uses an aged graph reads the ledger again.
 *
 * Who is online is never copied here. The state store keeps the online set (redis_state.h), so set_online() does
 * nothing. A single server intersects the contacts with that set in the script: it checks every contact and returns those
 * who are online. On a cluster the set is in shards in other slots. There the script returns all contacts, and the
 * gateway queries each shard for its part of them, all shards at once: two round trips and bytes that grow with the
 * contacts, but at most REDIS_STATE_SHARDS commands. A shard follows a transition after a moment. When a shard is out of
 * reach, all its contacts count as online: an event for a user who is offline does no harm.
 *
 * One store per worker, on its thread. Foreign or corrupt values are removed and count as a miss.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_GRAPH_H
#define ROLLCALL_STORE_REDIS_REDIS_GRAPH_H

#include "base/random.h"
#include "net/loop.h"
#include "redis/redis_client.h"
#include "store/graph_store.h"

#define REDIS_GRAPH_ONLINE "presence:online"

enum {
    REDIS_GRAPH_FAILED_DROPS_MAX = 10000,
    REDIS_GRAPH_RETRY_MS = 500,
};

struct redis_graph_options {
    struct redis_client *client; /* all borrowed for the store's life */
    struct random *random;
    struct loop *loop;
};

/* Creates one worker's store. Returns NULL when out of memory. It may be freed while lookups are pending; they complete
 * when the client answers them. */
struct graph_store *redis_graph_make(const struct redis_graph_options *options);

#endif
