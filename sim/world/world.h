/*
 * The simulated world: a fleet of gateways on one Redis and one ledger, the people who use it, the faults that happen to it,
 * and what it must keep (invariants/).
 *
 *   world_run() ──► the fleet starts ──► contacts and chats are made ──► devices come and go, faults happen
 *               ──► a quiet period without faults ──► everything must be right
 */
#ifndef ROLLCALL_SIM_WORLD_WORLD_H
#define ROLLCALL_SIM_WORLD_WORLD_H

#include "faults/faults.h"
#include "invariants/invariants.h"
#include "processes/redis_group.h"
#include "processes/server_process.h"
#include "processes/setup_process.h"
#include "world/population.h"

#define WORLD_BALANCER_HOST "10.0.0.250"

enum {
    WORLD_BACKBONE = 10 << 24, /* the network of the servers */
    WORLD_BALANCER = WORLD_BACKBONE + 250,
    WORLD_GATEWAYS_MAX = 16,
    WORLD_WORKERS_MAX = 8,
    WORLD_AGGREGATORS_MAX = 4,
    WORLD_CLIENT_PORT = 8080,
    WORLD_QUIET_US = 120 * 1000 * 1000,
    WORLD_VIOLATION_BYTES = 256,
};

/* What the fleet is made of, besides gateways. */
struct world_fleet {
    bool has_cluster;   /* of Redis */
    size_t workers;     /* of every second gateway; the others have one */
    size_t aggregators; /* 0: gateways talk to Redis themselves */
};

struct world_options {
    uint64_t seed;
    int64_t duration_us;
    size_t gateways;
    size_t users;
    struct world_fleet fleet;
    bool draws_fleet;      /* from the seed */
    const char *profile;   /* timing.profile */
    unsigned fault_kinds;  /* bits; see faults.h */
    bool draws_pairs;      /* two faults at once, half of the time */
    int64_t grace_us;      /* what the truth may take beyond the lease window */
    uint64_t skips_faults; /* bits: faults that do not happen, for minimising */
};

struct world_counts {
    uint64_t acknowledged;
    uint64_t delivered;
    uint64_t told;
    uint64_t answered; /* requests with an id */
    uint64_t calls;
    uint64_t settings; /* changes of privacy */
    uint64_t crashes;  /* of servers, Redis and devices, by faults */
};

struct world {
    struct world_options options;
    struct machine *balancer;
    struct machine *gateway_machines[WORLD_GATEWAYS_MAX];
    struct server_node gateways[WORLD_GATEWAYS_MAX];
    struct server_node ledger;
    struct server_node aggregators[WORLD_AGGREGATORS_MAX];
    struct redis_group redis;
    struct population population;
    struct setup setup;
    struct faults faults;
    struct event tick;
    int64_t bound_us; /* within which the truth is told */
    bool is_set_up;
    bool is_quiet;
    bool is_over; /* servers may end */
    bool is_violated;
    enum invariant violated;
    char violation[WORLD_VIOLATION_BYTES];
    struct delays delays[LIE_COUNT];
    uint64_t ticks;
    struct world_counts counts;
};

/* Returns whether all invariants held. The world is freed with world_free(). */
bool world_run(struct world *world, const struct world_options *options);
void world_free(struct world *world);

bool world_has_fault(const struct world *world);

#endif
