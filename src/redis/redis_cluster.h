/*
 * The servers of one client, and which of them serves which slot. A single server is a cluster of one that
 * serves all slots, and its slot table is never fetched. With Sentinel that server is the master that a sentinel
 * names (redis_sentinel.h), and no server is known before.
 *
 * A real cluster's table is fetched from any server that answers: at first the seeds, later the known
 * servers, and replicas when no master can be reached. It is fetched again every REDIS_REFRESH_MS, and every
 * REDIS_REFRESH_HURRY_MS while something is wrong with it: a server that left, a redirection, slots without
 * a server. Fetching blocks nothing; commands use the last table. There is a connection to every master and,
 * except for fetching the table, to no other server: replicas are never written to.
 *
 * The cluster is available when healthy servers serve more than half of the slots and it does not report
 * itself down. Commands for a part that failed fail on their own.
 *
 * Embedded in the client. One thread. Callbacks must not free the client.
 */
#ifndef ROLLCALL_REDIS_REDIS_CLUSTER_H
#define ROLLCALL_REDIS_REDIS_CLUSTER_H

#include "redis/protocol/redis_topology.h"
#include "redis/redis_connection.h"
#include "redis/redis_sentinel.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    REDIS_REFRESH_MS = 10000,
    REDIS_REFRESH_HURRY_MS = 300,
    REDIS_AVAILABLE_SLOTS_MIN = REDIS_SLOTS / 2 + 1,
};

struct redis_node {
    struct redis_cluster *cluster;
    struct redis_connection *connection;
    unsigned slots; /* how many it serves; 0: used only to fetch the table */
};

struct redis_cluster {
    struct redis_connection_context context;
    const struct redis_url *url;
    struct redis_node *nodes[2 * REDIS_NODES_MAX];
    size_t node_count;
    struct redis_node *owner[REDIS_SLOTS]; /* NULL: no server */
    struct redis_sentinel sentinel;        /* in use if the URL says so */
    struct redis_address *replicas;        /* from the last table */
    size_t replica_count;
    struct wheel_timer timer;
    size_t asked; /* index of the node asked last */
    struct redis_address asked_at;
    bool refreshing; /* a request for the table is pending */
    bool down;       /* as it reports itself */
    bool off;        /* the server does not run as a cluster */
    bool available;
    bool moved; /* some slots have other servers; the owner resets it */
    void (*on_changed)(struct redis_cluster *cluster); /* availability, a problem or the table */
    /* The connection to a server is fine again, or for the first time. */
    void (*on_server_returned)(struct redis_cluster *cluster);
    /* Tracked keys have changed: an array of them, or null for all of a server. */
    void (*on_invalidated)(struct redis_cluster *cluster, const struct resp_value *keys);
};

/* The caller sets `context`, `url` and the callbacks before. Returns false when out of memory. */
bool redis_cluster_open(struct redis_cluster *cluster);

/* Ends all connections, which answers pending commands. Only while the loop makes no turn. */
void redis_cluster_close(struct redis_cluster *cluster);

/* The connection to the server of the slot; NULL when none is known. */
struct redis_connection *redis_cluster_connection(const struct redis_cluster *cluster,
                                                  uint16_t slot);

/* The connection to any master, to a healthy one if possible. */
struct redis_connection *redis_cluster_any_connection(struct redis_cluster *cluster);

/* The connection to this server, made if there is none. Returns NULL when there are too many, or when out of
 * memory. */
struct redis_connection *redis_cluster_connection_to(struct redis_cluster *cluster,
                                                     const struct redis_address *address);

/* Assigns the slot to this server, and fetches the table. Returns the connection to the server. */
struct redis_connection *redis_cluster_slot_moved(struct redis_cluster *cluster, uint16_t slot,
                                                  const struct redis_address *address);

/* Whether this server serves any slot. */
bool redis_cluster_serves(const struct redis_cluster *cluster, const struct redis_address *address);

/* Fetches the table soon. */
void redis_cluster_refresh_soon(struct redis_cluster *cluster);

/* Reports a CLUSTERDOWN error. */
void redis_cluster_report_down(struct redis_cluster *cluster);

/* What is wrong, available or not; REDIS_FINE when nothing is. */
enum redis_problem redis_cluster_problem(const struct redis_cluster *cluster);

#endif
