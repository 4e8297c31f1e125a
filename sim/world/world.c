#include "world/world.h"

#include "app/commands/check_command.h"
#include "base/container.h"
#include "disk/disk.h"
#include "kernel/file.h"
#include "network/link.h"
#include "processes/device_process.h"
#include "processes/settings_process.h"
#include "world/trace.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char REDIS_LISTEN[] = "10.0.0.240:6379";
static const char LEDGER_LISTEN[] = "10.0.0.241:7000";
static const char TOKEN_SECRET[] = "a secret of the simulation, known to all";

enum {
    BACKBONE = 10 << 24,
    BALANCER = BACKBONE + 250,
    REDIS = BACKBONE + 240,
    LEDGER = BACKBONE + 241,
    SETUP = BACKBONE + 242,
    CHECK = BACKBONE + 243,
    SETTINGS = BACKBONE + 244,
    BACKBONE_LATENCY_US = 100,
    BACKBONE_JITTER_US = 150,
    TICK_US = 1000 * 1000,
    ARRIVAL_US_MAX = 10 * 1000 * 1000,
    SETUP_US_MAX = 300 * 1000 * 1000,
};

static struct machine *make_server_machine(const char *name, uint32_t address)
{
    struct machine *machine = machine_make(name, address);
    machine->latency_us = BACKBONE_LATENCY_US;
    machine->jitter_us = BACKBONE_JITTER_US;
    file_write(machine, "/sim/secret", slice_of(TOKEN_SECRET));
    return machine;
}

/* ---- the fleet ---- */

static void make_server(struct world *world, struct server_node *node, const char *name,
                        struct machine *machine, const char *command)
{
    server_node_init(node, name, machine, command);
    node->world = world;
    node->on_ended = invariants_on_server_ended;
    server_node_add(node, "--data-dir=/sim/data");
    server_node_add(node, "--set=peer.secret=%s", TOKEN_SECRET);
    server_node_add(node, "--set=log.level=warn");
}

static void make_gateway(struct world *world, size_t at)
{
    struct server_node *node = &world->gateways[at];
    char name[KERNEL_NAME_BYTES];
    uint32_t address = BACKBONE + 1 + (uint32_t)at;
    snprintf(name, sizeof(name), "gw-%zu", at);
    world->gateway_machines[at] = make_server_machine(name, address);
    make_server(world, node, name, world->gateway_machines[at], "serve");
    server_node_add(node, "--node-id=%s", name);
    server_node_add(node, "--listen=10.0.0.%zu:%d", at + 1, WORLD_CLIENT_PORT);
    server_node_add(node, "--peer-listen=10.0.0.%zu:7100", at + 1);
    server_node_add(node, "--state=redis://%s", REDIS_LISTEN);
    server_node_add(node, "--ledger=remote://%s", LEDGER_LISTEN);
    server_node_add(node, "--workers=1");
    server_node_add(node, "--set=auth.hmac_secret_file=/sim/secret");
    server_node_add(node, "--set=gateway.io_uring=false");
    server_node_add(node, "--set=gateway.memory_limit_bytes=0");
    server_node_add(node, "--set=timing.profile=%s", world->options.profile);
    server_node_add(node, "--set=limits.contact_requests_per_hour=0");
    server_node_add(node, "--set=limits.chats_per_hour=0");
}

static void make_fleet(struct world *world)
{
    make_server(world, &world->ledger, "ledger", make_server_machine("ledger", LEDGER), "ledger");
    server_node_add(&world->ledger, "--peer-listen=%s", LEDGER_LISTEN);
    server_node_add(&world->ledger, "--ledger=sqlite:/sim/ledger.db");
    redis_server_init(&world->redis, make_server_machine("redis", REDIS), REDIS_LISTEN);
    for (size_t i = 0; i < world->options.gateways; i++)
        make_gateway(world, i);
    world->balancer = make_server_machine("balancer", BALANCER);
    world->balancer->balanced = world->gateway_machines;
    world->balancer->balanced_count = world->options.gateways;
    redis_server_start(&world->redis, true);
    server_node_start(&world->ledger);
    for (size_t i = 0; i < world->options.gateways; i++)
        server_node_start(&world->gateways[i]);
}

/* ---- people ---- */

static void on_world_set_up(struct process *process, void *arg)
{
    struct world *world = arg;
    struct population *population = &world->population;
    world->is_set_up = process->status == 0;
    trace_line("set up with status %d", process->status);
    for (size_t i = 0; i < population->device_count && world->is_set_up; i++)
        device_start_within(world, &population->devices[i], ARRIVAL_US_MAX);
    kernel_stop();
}

static void make_people(struct world *world)
{
    population_make(&world->population, world->options.users, slice_of(TOKEN_SECRET));
    world->setup = (struct setup){&world->population, BALANCER, WORLD_CLIENT_PORT};
    struct process *process =
        process_start(make_server_machine("setup", SETUP), "setup", setup_run, &world->setup);
    process->on_end = on_world_set_up;
    process->on_end_arg = world;
}

/* ---- time ---- */

bool world_has_fault(const struct world *world)
{
    return world->faults.active > 0;
}

static void on_world_tick(struct event *event)
{
    struct world *world = CONTAINER_OF(event, struct world, tick);
    invariants_check(world);
    kernel_set_event(event, TICK_US);
}

/* ---- the end ---- */

/* What it prints becomes part of the trace. */
static int run_world_check(void *arg)
{
    char command[] = "check", state[64], printed[TRACE_LINE_BYTES] = "";
    char *argv[] = {command, state, NULL};
    FILE *before = stdout;
    (void)arg;
    snprintf(state, sizeof(state), "--state=redis://%s", REDIS_LISTEN);
    optind = 1;
    stdout = fmemopen(printed, sizeof(printed) - 1, "w");
    int status = check_command(2, argv);
    fclose(stdout);
    stdout = before;
    trace_line("rollcall check: %s", printed);
    return status;
}

static void on_world_checked(struct process *process, void *arg)
{
    if (process->status != 0)
        invariants_violate(arg, REDIS_IS_CONSISTENT, "rollcall check ended with status %d",
                           process->status);
    kernel_stop();
}

static void check_redis(struct world *world)
{
    struct process *process =
        process_start(make_server_machine("check", CHECK), "check", run_world_check, world);
    process->on_end = on_world_checked;
    process->on_end_arg = world;
    kernel_run(kernel_now_us() + WORLD_QUIET_US);
}

/* SIGTERM: every server drains and frees what it has. */
static void end_fleet(struct world *world)
{
    world->is_over = true;
    event_cancel(kernel_events(), &world->tick);
    for (size_t i = 0; i < world->population.device_count; i++) {
        world->population.devices[i].stays_away = true;
        event_cancel(kernel_events(), &world->population.devices[i].return_event);
    }
    for (size_t i = 0; i < world->options.gateways; i++)
        server_node_drain(&world->gateways[i]);
    kernel_run(kernel_now_us() + WORLD_QUIET_US);
    server_node_drain(&world->ledger);
    kernel_run(kernel_now_us() + WORLD_QUIET_US);
}

static int64_t world_window_us(const char *profile)
{
    return (strcmp(profile, "relaxed") == 0    ? 90
            : strcmp(profile, "standard") == 0 ? 45
                                               : 15) *
           INT64_C(1000000);
}

bool world_run(struct world *world, const struct world_options *options)
{
    *world = (struct world){.options = *options, .tick.run = on_world_tick};
    world->bound_us = world_window_us(options->profile) + options->grace_us;
    kernel_open(options->seed);
    link_reset();
    make_fleet(world);
    make_people(world);
    kernel_run(SETUP_US_MAX);
    if (!world->is_set_up) {
        invariants_violate(world, PROCESSES_KEEP_RUNNING, "the fleet did not start");
        return false;
    }
    settings_process_start(world, make_server_machine("settings", SETTINGS));
    int64_t end_us = kernel_now_us() + options->duration_us;
    kernel_set_event(&world->tick, TICK_US);
    faults_plan(&world->faults, world, end_us - WORLD_QUIET_US);
    kernel_run(end_us - WORLD_QUIET_US);
    faults_end(&world->faults);
    world->is_quiet = true;
    trace_line("quiet");
    if (!world->is_violated)
        kernel_run(end_us);
    if (!world->is_violated)
        invariants_check_end(world);
    if (!world->is_violated)
        check_redis(world);
    if (!world->is_violated)
        end_fleet(world);
    return !world->is_violated;
}

void world_free(struct world *world)
{
    server_node_crash(&world->ledger, false);
    for (size_t i = 0; i < world->options.gateways; i++)
        server_node_crash(&world->gateways[i], false);
    redis_server_crash(&world->redis);
    kernel_close();
    redis_server_free(&world->redis);
    population_free(&world->population);
    disk_clear();
}
