#include "world/world_fleet.h"

#include "kernel/file.h"
#include "world/trace.h"

#include <stdio.h>

static const char LEDGER_LISTEN[] = "10.0.0.241:7000";

enum {
    AGGREGATORS = WORLD_BACKBONE + 220,
    REDIS = WORLD_BACKBONE + 230,
    LEDGER = WORLD_BACKBONE + 241,
    BACKBONE_LATENCY_US = 100,
    BACKBONE_JITTER_US = 150,
    DRAWN_WORKERS = 2,
    DRAWN_AGGREGATORS = 2,
};

struct machine *world_make_machine(const char *name, uint32_t address)
{
    struct machine *machine = machine_make(name, address);
    machine->latency_us = BACKBONE_LATENCY_US;
    machine->jitter_us = BACKBONE_JITTER_US;
    file_write(machine, "/sim/secret", slice_of(WORLD_TOKEN_SECRET));
    return machine;
}

static void make_server(struct world *world, struct server_node *node, const char *name,
                        struct machine *machine, const char *command)
{
    server_node_init(node, name, machine, command);
    node->world = world;
    node->on_ended = invariants_on_server_ended;
    server_node_add(node, "--set=peer.secret=%s", WORLD_TOKEN_SECRET);
    server_node_add(node, "--set=log.level=warn");
}

/* ---- gateways ---- */

static void add_gateway_state(const struct world *world, struct server_node *node)
{
    char list[SERVER_ARGUMENT_BYTES] = "";
    size_t len = 0;
    for (size_t i = 0; i < world->options.fleet.aggregators; i++)
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%s10.0.0.%zu:7500", i ? "," : "",
                                AGGREGATORS - WORLD_BACKBONE + i);
    if (len > 0)
        server_node_add(node, "--aggregators=%s", list);
    else
        server_node_add(node, "--state=%s", world->redis.url);
}

static void make_gateway(struct world *world, size_t at)
{
    struct server_node *node = &world->gateways[at];
    char name[KERNEL_NAME_BYTES];
    snprintf(name, sizeof(name), "gw-%zu", at);
    world->gateway_machines[at] = world_make_machine(name, WORLD_BACKBONE + 1 + (uint32_t)at);
    make_server(world, node, name, world->gateway_machines[at], "serve");
    server_node_add(node, "--data-dir=/sim/data");
    server_node_add(node, "--node-id=%s", name);
    server_node_add(node, "--listen=10.0.0.%zu:%d", at + 1, WORLD_CLIENT_PORT);
    server_node_add(node, "--peer-listen=10.0.0.%zu:7100", at + 1);
    add_gateway_state(world, node);
    server_node_add(node, "--ledger=remote://%s", LEDGER_LISTEN);
    server_node_add(node, "--workers=%zu", at % 2 == 0 ? world->options.fleet.workers : 1);
    server_node_add(node, "--set=auth.hmac_secret_file=/sim/secret");
    server_node_add(node, "--set=gateway.io_uring=false");
    server_node_add(node, "--set=gateway.memory_limit_bytes=0");
    server_node_add(node, "--set=timing.profile=%s", world->options.profile);
    server_node_add(node, "--set=limits.contact_requests_per_hour=0");
    server_node_add(node, "--set=limits.chats_per_hour=0");
}

/* ---- the others ---- */

static void make_aggregator(struct world *world, size_t at)
{
    struct server_node *node = &world->aggregators[at];
    char name[KERNEL_NAME_BYTES];
    snprintf(name, sizeof(name), "agg-%zu", at);
    make_server(world, node, name, world_make_machine(name, AGGREGATORS + (uint32_t)at),
                "aggregate");
    server_node_add(node, "--node-id=%s", name);
    server_node_add(node, "--peer-listen=10.0.0.%zu:7500", AGGREGATORS - WORLD_BACKBONE + at);
    server_node_add(node, "--state=%s", world->redis.url);
    server_node_add(node, "--set=timing.profile=%s", world->options.profile);
}

static void make_ledger(struct world *world)
{
    make_server(world, &world->ledger, "ledger", world_make_machine("ledger", LEDGER), "ledger");
    server_node_add(&world->ledger, "--data-dir=/sim/data");
    server_node_add(&world->ledger, "--peer-listen=%s", LEDGER_LISTEN);
    server_node_add(&world->ledger, "--ledger=sqlite:/sim/ledger.db");
}

/* Not aggregators on a cluster: those look at every slot for every gateway all the time, which a run hardly survives. */
static void draw_fleet(struct world_fleet *fleet)
{
    uint64_t drawn = random_below(kernel_random(), 3);
    fleet->has_cluster = drawn == 1;
    fleet->aggregators = drawn == 2 ? DRAWN_AGGREGATORS : 0;
    fleet->workers = random_below(kernel_random(), 2) ? DRAWN_WORKERS : 1;
}

unsigned world_fleet_faults(const struct world_fleet *fleet)
{
    unsigned kinds = (1U << FAULT_KIND_COUNT) - 1;
    if (!fleet->has_cluster)
        kinds &= ~(1U << FAULT_REDIS_RESHARDED);
    if (fleet->aggregators == 0)
        kinds &= ~(1U << FAULT_AGGREGATOR_KILLED | 1U << FAULT_AGGREGATOR_PAUSED);
    return kinds;
}

void world_fleet_make(struct world *world)
{
    struct world_fleet *fleet = &world->options.fleet;
    if (world->options.draws_fleet)
        draw_fleet(fleet);
    world->options.fault_kinds &= world_fleet_faults(fleet);
    trace_line("%s, %zu workers, %zu aggregators", fleet->has_cluster ? "a cluster" : "one Redis",
               fleet->workers, fleet->aggregators);
    make_ledger(world);
    redis_group_init(&world->redis, fleet->has_cluster, REDIS, world_make_machine);
    for (size_t i = 0; i < fleet->aggregators; i++)
        make_aggregator(world, i);
    for (size_t i = 0; i < world->options.gateways; i++)
        make_gateway(world, i);
    world->balancer = world_make_machine("balancer", WORLD_BALANCER);
    world->balancer->balanced = world->gateway_machines;
    world->balancer->balanced_count = world->options.gateways;
    redis_group_start(&world->redis);
    server_node_start(&world->ledger);
    for (size_t i = 0; i < fleet->aggregators; i++)
        server_node_start(&world->aggregators[i]);
    for (size_t i = 0; i < world->options.gateways; i++)
        server_node_start(&world->gateways[i]);
}

void world_fleet_crash(struct world *world)
{
    server_node_crash(&world->ledger, false);
    for (size_t i = 0; i < world->options.gateways; i++)
        server_node_crash(&world->gateways[i], false);
    for (size_t i = 0; i < world->options.fleet.aggregators; i++)
        server_node_crash(&world->aggregators[i], false);
    for (size_t i = 0; i < world->redis.count; i++)
        redis_server_crash(&world->redis.servers[i]);
}
