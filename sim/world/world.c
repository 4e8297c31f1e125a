#include "world/world.h"

#include "app/commands/check_command.h"
#include "base/container.h"
#include "disk/disk.h"
#include "network/link.h"
#include "processes/device_process.h"
#include "processes/settings_process.h"
#include "world/trace.h"
#include "world/world_fleet.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum {
    SETUP = WORLD_BACKBONE + 242,
    CHECK = WORLD_BACKBONE + 243,
    SETTINGS = WORLD_BACKBONE + 244,
    TICK_US = 1000 * 1000,
    ARRIVAL_US_MAX = 10 * 1000 * 1000,
    SETUP_US_MAX = 300 * 1000 * 1000,
};

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
    population_make(&world->population, world->options.users, slice_of(WORLD_TOKEN_SECRET));
    world->setup = (struct setup){&world->population, WORLD_BALANCER, WORLD_CLIENT_PORT};
    struct process *process =
        process_start(world_make_machine("setup", SETUP), "setup", setup_run, &world->setup);
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
    const struct world *world = arg;
    char command[] = "check", state[SERVER_ARGUMENT_BYTES], printed[TRACE_LINE_BYTES] = "";
    char *argv[] = {command, state, NULL};
    FILE *before = stdout;
    snprintf(state, sizeof(state), "--state=%s", world->redis.url);
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
        process_start(world_make_machine("check", CHECK), "check", run_world_check, world);
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
    for (size_t i = 0; i < world->options.fleet.aggregators; i++)
        server_node_drain(&world->aggregators[i]);
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
    world_fleet_make(world);
    make_people(world);
    kernel_run(SETUP_US_MAX);
    if (!world->is_set_up) {
        invariants_violate(world, PROCESSES_KEEP_RUNNING, "the fleet did not start");
        return false;
    }
    settings_process_start(world, world_make_machine("settings", SETTINGS));
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
    world_fleet_crash(world);
    kernel_close();
    redis_group_free(&world->redis);
    population_free(&world->population);
    disk_clear();
}
