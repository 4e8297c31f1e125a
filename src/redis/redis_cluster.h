/*
 * The servers of one client and who of them serves which slot. A single server is a cluster of one that
 * serves all slots and is never asked for its table.
 *
 * A real cluster's table is fetched from any server that answers: the seeds at first, later those that
 * are known, replicas included when no master can be reached. It is fetched again every
 * REDIS_REFRESH_MS, and every REDIS_REFRESH_HURRY_MS while something is wrong with it: a server that
 * left, a redirection, slots nobody serves. Fetching blocks nothing; commands go by the last table.
 * There is a link to every master and, but for fetching the table, to nobody else: replicas are never
 * written to.
 *
 * It counts as available when servers that are fine serve more than half of the slots, and the cluster
 * does not call itself down: a part that failed is for the commands that meet it to tell.
 *
 * Embedded in the client. One thread. Callbacks must not free the client.
 */
#ifndef ROLLCALL_REDIS_REDIS_CLUSTER_H
#define ROLLCALL_REDIS_REDIS_CLUSTER_H

#include "redis/protocol/redis_topology.h"
#include "redis/redis_connection.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    REDIS_REFRESH_MS = 10000,
    REDIS_REFRESH_HURRY_MS = 300,
    REDIS_AVAILABLE_SLOTS_MIN = REDIS_SLOTS / 2 + 1,
};

struct redis_node {
    struct redis_cluster *cluster;
    struct redis_connection *link;
    unsigned slots; /* it serves so many; 0: known for asking only */
};

struct redis_cluster {
    struct redis_connection_context links;
    const struct redis_url *url;
    struct redis_node *nodes[2 * REDIS_NODES_MAX];
    size_t node_count;
    struct redis_node *owner[REDIS_SLOTS]; /* NULL: nobody */
    struct redis_endpoint *replicas;       /* as last heard of */
    size_t replica_count;
    struct wheel_timer timer;
    size_t asked; /* nodes are asked in turn */
    struct redis_endpoint asked_at;
    bool refreshing; /* an answer is awaited */
    bool down;       /* by its own account */
    bool off;        /* the server is no cluster */
    bool available;
    bool moved; /* slots have other servers than before; who is told of it takes it back */
    void (*on_changed)(struct redis_cluster *cluster); /* availability, problems or the table */
};

/* The links, url and `changed` are set by the caller. False when memory is short. */
bool redis_cluster_open(struct redis_cluster *cluster);

/* Ends all links, and so answers what waits. Only while the loop makes no turn. */
void redis_cluster_close(struct redis_cluster *cluster);

/* The link to who serves the slot; NULL when nobody is known to. */
struct redis_connection *redis_cluster_connection(const struct redis_cluster *cluster,
                                                  uint16_t slot);

/* The link to any master, a fine one if there is one. */
struct redis_connection *redis_cluster_any_connection(struct redis_cluster *cluster);

/* The link to this server, which is made when there is none. NULL: too many, or no memory. */
struct redis_connection *redis_cluster_connection_to(struct redis_cluster *cluster,
                                                     const struct redis_endpoint *endpoint);

/* Hears that a slot is served there now: believes it, and fetches the table. */
struct redis_connection *redis_cluster_slot_moved(struct redis_cluster *cluster, uint16_t slot,
                                                  const struct redis_endpoint *endpoint);

/* Whether this server serves any slot. */
bool redis_cluster_serves(const struct redis_cluster *cluster,
                          const struct redis_endpoint *endpoint);

/* Fetches the table soon. */
void redis_cluster_refresh_soon(struct redis_cluster *cluster);

/* Hears CLUSTERDOWN. */
void redis_cluster_report_down(struct redis_cluster *cluster);

/* Why it is not available, or what else is wrong; REDIS_FINE when nothing is. */
enum redis_problem redis_cluster_problem(const struct redis_cluster *cluster);

#endif
