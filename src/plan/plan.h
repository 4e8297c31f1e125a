/*
 * The capacity model behind `rollcall plan`: how many edges, aggregators and Redis nodes a load needs.
 *
 * A load gives rates (heartbeats, renewals, connects, messages, notices); measured costs (plan_costs.h) turn rates
 * into processor time, memory and bandwidth; the limits of one machine turn these into counts. The count of each
 * tier is the largest that any of its resources asks for, and that resource is the tier's bottleneck. The first
 * bottleneck of the fleet is the resource that is closest to its limit in the planned fleet.
 *
 *   users × devices ──► connections ──/ beat──► heartbeats
 *                                   ──/ ¾ window──► renewals ──► Redis
 *
 * Pure functions on plain data; any thread.
 */
#ifndef ROLLCALL_PLAN_H
#define ROLLCALL_PLAN_H

#include "plan/plan_costs.h"

/* Share of the window after which a lease is renewed. */
#define PLAN_RENEWAL_SHARE 0.75

/* One edge has this many workers unless the load says otherwise. */
#define PLAN_EDGE_CORES 8

struct plan_load {
    double users; /* online at once */
    double devices;
    const char *profile;
    double heartbeat_seconds;
    double window_seconds;
    double sessions_per_day; /* connects of a device */
    double contacts;         /* told of each change of presence: contacts online, or subscribers */
    double messages_per_second; /* of the whole fleet; negative: 40 a day and user */
    double recipients;          /* devices that a message reaches, on other edges */
    double users_known;         /* ever seen; 0: ten for each one online */

    double edge_connections_max;
    double edge_cores;
    double edge_memory_bytes;
    double edges; /* 0: as many as needed */
    double redis_memory_bytes;
    double redis_clients_max;
    double aggregator_cores;
    double core_share; /* of a core that is planned for; the rest is for storms and failures */
    double network_bits_per_second;
    double storm_seconds; /* over which the clients of a lost edge come back */
};

/* The load with which `rollcall plan` begins: seed values of every field but `users`. */
void plan_load_init(struct plan_load *load);

/* Sets profile, heartbeat and window; returns false if there is no such profile. */
bool plan_load_set_profile(struct plan_load *load, const char *name);

enum plan_resource {
    PLAN_EDGE_CONNECTIONS,
    PLAN_EDGE_PROCESSOR,
    PLAN_EDGE_MEMORY,
    PLAN_EDGE_NETWORK,
    PLAN_REDIS_PROCESSOR,
    PLAN_REDIS_MEMORY,
    PLAN_REDIS_CLIENTS,
    PLAN_REDIS_NETWORK,
    PLAN_REDIS_STORM,
    PLAN_AGGREGATOR_PROCESSOR,
    PLAN_RESOURCE_COUNT,
};

struct plan {
    double connections;
    double heartbeats_per_second;
    double renewals_per_second;
    double connects_per_second;
    double messages_per_second;
    double deliveries_per_second;
    double notices_per_second;

    double edges;
    double edge_workers; /* of each */
    double edge_cores_used;
    double edge_bytes_used; /* of the processes, without the kernel */
    double edge_kernel_bytes;
    double client_bytes_per_second;

    double aggregators; /* 0: not needed */
    double aggregator_cores_used;

    double redis_nodes;
    double redis_cores_used;
    double redis_bytes_used;
    double redis_bytes_per_second;
    double redis_clients_per_node;
    double storm_connects_per_second;

    double ledger_cores_used;

    double use[PLAN_RESOURCE_COUNT]; /* share of what the planned fleet has; 1: at its limit */
    enum plan_resource edge_reason;  /* which resource decides the count */
    enum plan_resource redis_reason;
    enum plan_resource bottleneck; /* has the highest use */
};

void plan_compute(struct plan *plan, const struct plan_load *load, const struct plan_costs *costs);

/* A name for people and, with underscores, for JSON. Static text. */
const char *plan_resource_text(enum plan_resource resource);
const char *plan_resource_name(enum plan_resource resource);

#endif
