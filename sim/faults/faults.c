#include "faults/faults.h"

#include "base/container.h"
#include "disk/disk.h"
#include "network/link.h"
#include "network/socket.h"
#include "processes/device_process.h"
#include "world/trace.h"
#include "world/world.h"

#include <sqlite3.h>
#include <string.h>

enum {
    LASTS_US_MIN = 300 * 1000,
    LASTS_US_MAX = 40 * 1000 * 1000,
    CALM_US_MAX = 60 * 1000 * 1000,
    PAIRS_PERCENT = 50,
    CLOCK_STEP_US_MAX = 120 * 1000 * 1000,
    DRIFT_PPM_MAX = 2000,
    DEVICES_HIT_MAX = 20,
    EVICTED_PERCENT_MAX = 30,
    BEHIND_US_MAX = 2 * 1000 * 1000,
};

static struct server_node *fault_gateway(const struct fault *fault)
{
    return &fault->faults->world->gateways[fault->target];
}

/* One of the masters of a cluster, or the only server; the same from the beginning to the end. */
static struct redis_server *fault_redis(const struct fault *fault)
{
    return fault->redis;
}

static void fault_count_crashes(const struct fault *fault, uint64_t count)
{
    fault->faults->world->counts.crashes += count;
}

/* ---- gateways ---- */

static void begin_gateway_kill(struct fault *fault)
{
    fault_count_crashes(fault, 1);
    server_node_crash(fault_gateway(fault), false);
}

static void begin_gateway_power(struct fault *fault)
{
    fault_count_crashes(fault, 1);
    server_node_crash(fault_gateway(fault), true);
}

static void begin_gateway_drain(struct fault *fault)
{
    server_node_drain(fault_gateway(fault));
}

static void end_gateway_drain(struct fault *fault)
{
    server_node_crash(fault_gateway(fault), false); /* if it still drains */
    server_node_start(fault_gateway(fault));
}

static void end_gateway_crash(struct fault *fault)
{
    if (!fault_gateway(fault)->process)
        server_node_start(fault_gateway(fault));
}

static void begin_gateway_pause(struct fault *fault)
{
    struct server_node *node = fault_gateway(fault);
    if (node->process)
        node->process->paused_until_us = fault->ends.at_us;
}

/* ---- Redis ---- */

static void begin_redis_crash(struct fault *fault)
{
    fault_count_crashes(fault, 1);
    redis_server_crash(fault_redis(fault));
}

static void end_redis_empty(struct fault *fault)
{
    if (!fault_redis(fault)->process)
        redis_server_start(fault_redis(fault), true);
}

static void end_redis_restart(struct fault *fault)
{
    if (!fault_redis(fault)->process)
        redis_server_start(fault_redis(fault), false);
}

static void begin_redis_pause(struct fault *fault)
{
    struct process *process = fault_redis(fault)->process;
    if (process)
        process->paused_until_us = fault->ends.at_us;
}

static void begin_redis_unreachable(struct fault *fault)
{
    link_cut(fault_redis(fault)->machine, NULL, fault->ends.at_us);
    if (fault->chance % 2)
        link_cut(NULL, fault_redis(fault)->machine, fault->ends.at_us);
}

static void begin_redis_cut(struct fault *fault)
{
    struct process *process = fault_redis(fault)->process;
    if (process)
        socket_cut_all(process, fault->chance % 2 ? fault_gateway(fault)->machine : NULL);
}

/* Writes that need memory are refused. */
static void begin_redis_full(struct fault *fault)
{
    fault_redis(fault)->model.is_full = true;
}

static void end_redis_full(struct fault *fault)
{
    fault_redis(fault)->model.is_full = false;
}

/* It is there again, and reads its data for a while. */
static void begin_redis_loading(struct fault *fault)
{
    struct redis_server *redis = fault_redis(fault);
    begin_redis_crash(fault);
    if (!redis->process)
        redis_server_start(redis, false);
    redis->model.is_loading = true;
}

static void end_redis_loading(struct fault *fault)
{
    fault_redis(fault)->model.is_loading = false;
}

/* Some of the keys that have a lifetime go at once, as under memory pressure. */
static void begin_redis_evicts(struct fault *fault)
{
    redis_model_evict(&fault_redis(fault)->model, 1 + fault->chance % EVICTED_PERCENT_MAX);
}

/* A replica takes over: what was written since the fault began had not reached it. */
static void begin_redis_failover(struct fault *fault)
{
    redis_server_fall_behind(fault_redis(fault));
    if (fault->ends.at_us > kernel_now_us() + BEHIND_US_MAX)
        kernel_set_event(&fault->ends, BEHIND_US_MAX);
}

static void end_redis_failover(struct fault *fault)
{
    fault_count_crashes(fault, 1);
    redis_group_fail_over(&fault->faults->world->redis, fault_redis(fault));
}

static void begin_redis_resharding(struct fault *fault)
{
    redis_group_reshard(&fault->faults->world->redis, fault->chance, fault->ends.at_us);
}

static void end_redis_resharding(struct fault *fault)
{
    redis_group_end_resharding(&fault->faults->world->redis);
}

/* ---- aggregators ---- */

static struct server_node *fault_aggregator(const struct fault *fault)
{
    struct world *world = fault->faults->world;
    return &world->aggregators[fault->chance % world->options.fleet.aggregators];
}

static void begin_aggregator_kill(struct fault *fault)
{
    fault_count_crashes(fault, 1);
    server_node_crash(fault_aggregator(fault), fault->chance / 8 % 2);
}

static void end_aggregator_crash(struct fault *fault)
{
    if (!fault_aggregator(fault)->process)
        server_node_start(fault_aggregator(fault));
}

static void begin_aggregator_pause(struct fault *fault)
{
    struct server_node *node = fault_aggregator(fault);
    if (node->process)
        node->process->paused_until_us = fault->ends.at_us;
}

/* ---- ledger ---- */

static void begin_ledger_kill(struct fault *fault)
{
    fault_count_crashes(fault, 1);
    server_node_crash(&fault->faults->world->ledger, false);
}

static void begin_ledger_power(struct fault *fault)
{
    fault_count_crashes(fault, 1);
    server_node_crash(&fault->faults->world->ledger, true);
}

static void end_ledger_crash(struct fault *fault)
{
    if (!fault->faults->world->ledger.process)
        server_node_start(&fault->faults->world->ledger);
}

static void begin_ledger_disk(struct fault *fault)
{
    disk_fail(fault->chance % 2 ? SQLITE_FULL : SQLITE_IOERR_WRITE);
}

static void end_ledger_disk(struct fault *fault)
{
    (void)fault;
    disk_fail(0);
}

/* ---- links and clocks ---- */

static void begin_link_one_way(struct fault *fault)
{
    const struct world *world = fault->faults->world;
    const struct machine *machine = fault_gateway(fault)->machine;
    const struct machine *others[] = {fault_redis(fault)->machine, world->ledger.machine, NULL};
    const struct machine *other = others[fault->chance % 3];
    if (fault->chance / 3 % 2)
        link_cut(machine, other, fault->ends.at_us);
    else
        link_cut(other, machine, fault->ends.at_us);
}

static void begin_links_cut(struct fault *fault)
{
    const struct machine *machine = fault_gateway(fault)->machine;
    link_cut(machine, NULL, fault->ends.at_us);
    link_cut(NULL, machine, fault->ends.at_us);
}

static struct machine *fault_clock(const struct fault *fault)
{
    return fault->chance % 3 ? fault_gateway(fault)->machine : fault_redis(fault)->machine;
}

static void begin_clock_step(struct fault *fault)
{
    int64_t by_us = (int64_t)(fault->chance / 3 % (2 * CLOCK_STEP_US_MAX)) - CLOCK_STEP_US_MAX;
    machine_step_wall(fault_clock(fault), by_us);
}

static void begin_clock_drift(struct fault *fault)
{
    machine_set_drift(fault_clock(fault),
                      (int64_t)(fault->chance / 3 % (2 * DRIFT_PPM_MAX)) - DRIFT_PPM_MAX);
}

static void end_clock_drift(struct fault *fault)
{
    machine_set_drift(fault_clock(fault), 0);
}

/* ---- devices ---- */

static struct device *fault_device(const struct fault *fault, size_t number)
{
    const struct population *population = &fault->faults->world->population;
    return &population->devices[(fault->chance + number * 7) % population->device_count];
}

static void begin_devices_vanish(struct fault *fault)
{
    fault_count_crashes(fault, 1 + fault->chance % DEVICES_HIT_MAX);
    for (size_t i = 0; i < 1 + fault->chance % DEVICES_HIT_MAX; i++)
        device_crash(fault_device(fault, i), fault->chance / 64 % 2);
}

static void begin_devices_stall(struct fault *fault)
{
    for (size_t i = 0; i < 1 + fault->chance % DEVICES_HIT_MAX; i++)
        if (fault_device(fault, i)->process)
            fault_device(fault, i)->process->paused_until_us = fault->ends.at_us;
}

/* ---- the table ---- */

static const struct fault_row {
    const char *name;
    void (*begin)(struct fault *fault);
    void (*end)(struct fault *fault); /* NULL: it ends by itself */
} FAULTS[FAULT_KIND_COUNT] = {
    [FAULT_GATEWAY_KILLED] = {"gateway_killed", begin_gateway_kill, end_gateway_crash},
    [FAULT_GATEWAY_POWER] = {"gateway_power", begin_gateway_power, end_gateway_crash},
    [FAULT_GATEWAY_DRAINED] = {"gateway_drained", begin_gateway_drain, end_gateway_drain},
    [FAULT_GATEWAY_PAUSED] = {"gateway_paused", begin_gateway_pause, NULL},
    [FAULT_REDIS_EMPTY] = {"redis_empty", begin_redis_crash, end_redis_empty},
    [FAULT_REDIS_RESTARTED] = {"redis_restarted", begin_redis_crash, end_redis_restart},
    [FAULT_REDIS_PAUSED] = {"redis_paused", begin_redis_pause, NULL},
    [FAULT_REDIS_UNREACHABLE] = {"redis_unreachable", begin_redis_unreachable, NULL},
    [FAULT_REDIS_CUT] = {"redis_cut", begin_redis_cut, NULL},
    [FAULT_REDIS_FULL] = {"redis_full", begin_redis_full, end_redis_full},
    [FAULT_REDIS_LOADING] = {"redis_loading", begin_redis_loading, end_redis_loading},
    [FAULT_REDIS_EVICTS] = {"redis_evicts", begin_redis_evicts, NULL},
    [FAULT_REDIS_FAILOVER] = {"redis_failover", begin_redis_failover, end_redis_failover},
    [FAULT_REDIS_RESHARDED] = {"redis_resharded", begin_redis_resharding, end_redis_resharding},
    [FAULT_AGGREGATOR_KILLED] = {"aggregator_killed", begin_aggregator_kill, end_aggregator_crash},
    [FAULT_AGGREGATOR_PAUSED] = {"aggregator_paused", begin_aggregator_pause, NULL},
    [FAULT_LEDGER_KILLED] = {"ledger_killed", begin_ledger_kill, end_ledger_crash},
    [FAULT_LEDGER_POWER] = {"ledger_power", begin_ledger_power, end_ledger_crash},
    [FAULT_LEDGER_DISK] = {"ledger_disk", begin_ledger_disk, end_ledger_disk},
    [FAULT_LINK_ONE_WAY] = {"link_one_way", begin_link_one_way, NULL},
    [FAULT_LINKS_CUT] = {"links_cut", begin_links_cut, NULL},
    [FAULT_CLOCK_STEP] = {"clock_step", begin_clock_step, NULL},
    [FAULT_CLOCK_DRIFT] = {"clock_drift", begin_clock_drift, end_clock_drift},
    [FAULT_DEVICES_VANISH] = {"devices_vanish", begin_devices_vanish, NULL},
    [FAULT_DEVICES_STALL] = {"devices_stall", begin_devices_stall, NULL},
};

const char *fault_name(enum fault_kind kind)
{
    return FAULTS[kind].name;
}

enum fault_kind fault_find(const char *name)
{
    enum fault_kind kind = 0;
    while (kind < FAULT_KIND_COUNT && strcmp(FAULTS[kind].name, name) != 0)
        kind++;
    return kind;
}

/* ---- when ---- */

static bool is_ledger_fault(enum fault_kind kind)
{
    return kind == FAULT_LEDGER_KILLED || kind == FAULT_LEDGER_POWER || kind == FAULT_LEDGER_DISK;
}

bool faults_are_of_ledger(const struct faults *faults)
{
    bool are = faults->active > 0;
    for (size_t i = 0; i < FAULTS_AT_ONCE_MAX; i++)
        are &= !faults->slots[i].is_active || is_ledger_fault(faults->slots[i].kind);
    return are;
}

static void on_fault_over(struct event *event)
{
    struct fault *fault = CONTAINER_OF(event, struct fault, ends);
    fault->is_active = false;
    fault->faults->active--;
    fault->faults->over_us = kernel_now_us();
    if (!is_ledger_fault(fault->kind))
        fault->faults->presence_over_us = kernel_now_us();
    trace_line("fault %s is over", fault_name(fault->kind));
    if (FAULTS[fault->kind].end)
        FAULTS[fault->kind].end(fault);
}

static enum fault_kind draw_fault_kind(unsigned allowed)
{
    enum fault_kind kind;
    do
        kind = (enum fault_kind)random_below(kernel_random(), FAULT_KIND_COUNT);
    while (!(allowed >> kind & 1));
    return kind;
}

/* Short ones are as likely as long ones. */
static int64_t draw_fault_duration_us(void)
{
    int64_t most_us = LASTS_US_MIN;
    while (most_us < LASTS_US_MAX && random_below(kernel_random(), 4) != 0)
        most_us *= 2;
    if (most_us > LASTS_US_MAX)
        most_us = LASTS_US_MAX;
    return LASTS_US_MIN + (int64_t)random_below(kernel_random(), (uint64_t)most_us);
}

/* What is drawn does not depend on whether the fault is skipped, so that a minimised run stays the same otherwise. */
static int64_t begin_fault(struct faults *faults, struct fault *fault)
{
    const struct world_options *options = &faults->world->options;
    fault->faults = faults;
    fault->kind = draw_fault_kind(options->fault_kinds);
    fault->target = (size_t)random_below(kernel_random(), options->gateways);
    fault->chance = random_u64(kernel_random()) >> 8;
    fault->redis = redis_group_master(&faults->world->redis, fault->chance / 16);
    fault->ends.run = on_fault_over;
    int64_t lasts_us = draw_fault_duration_us();
    unsigned number = faults->drawn++;
    bool is_skipped = number < 64 && options->skips_faults >> number & 1;
    if (is_skipped || fault->is_active)
        return lasts_us;
    kernel_set_event(&fault->ends, lasts_us);
    fault->is_active = true;
    faults->active++;
    faults->counts[fault->kind]++;
    trace_line("fault %u %s of %zu for %.1f s", number, fault_name(fault->kind), fault->target,
               (double)lasts_us / 1e6);
    FAULTS[fault->kind].begin(fault);
    return lasts_us;
}

static void on_fault_due(struct event *event)
{
    struct faults *faults = CONTAINER_OF(event, struct faults, begins);
    int64_t lasts_us = begin_fault(faults, &faults->slots[0]);
    if (faults->world->options.draws_pairs && random_below(kernel_random(), 100) < PAIRS_PERCENT) {
        int64_t second_us = begin_fault(faults, &faults->slots[1]);
        lasts_us = second_us > lasts_us ? second_us : lasts_us;
    }
    int64_t next_us =
        lasts_us + faults->world->bound_us + (int64_t)random_below(kernel_random(), CALM_US_MAX);
    if (kernel_now_us() + next_us < faults->last_us)
        kernel_set_event(event, next_us);
}

void faults_plan(struct faults *faults, struct world *world, int64_t last_us)
{
    *faults = (struct faults){.world = world, .begins.run = on_fault_due, .last_us = last_us};
    faults->over_us = kernel_now_us();
    if (world->options.fault_kinds)
        kernel_set_event(&faults->begins, world->bound_us);
}

void faults_end(struct faults *faults)
{
    event_cancel(kernel_events(), &faults->begins);
    for (size_t i = 0; i < FAULTS_AT_ONCE_MAX; i++) {
        struct event *event = &faults->slots[i].ends;
        if (!event_is_set(event))
            continue;
        event_cancel(kernel_events(), event);
        on_fault_over(event);
    }
    link_reset();
}
