#include "invariants/invariants.h"

#include "world/trace.h"
#include "world/world.h"

#include <stdarg.h>
#include <stdio.h>

enum { ROUTING_EVERY = 5, GATEWAY_BYTES_MAX = 64 * 1024 * 1024 };

static const struct {
    const char *name;
    const char *sentence;
} INVARIANTS[INVARIANT_COUNT] = {
    [ROUTING_TTL_BOUNDED] = {"routing_ttl_bounded",
                             "All routing keys expire within EXPIRY_WINDOW (R)."},
    [ZOMBIE_PREVENTION] = {"zombie_prevention", "Zombie entries cleared within EXPIRY_WINDOW (R)."},
    [CONN_ID_UNIQUENESS] = {"conn_id_uniqueness",
                            "Each conn_id maps to at most one record at any time (R)."},
    [ROUTING_DENORMALIZATION_CONSISTENT] =
        {"routing_denormalization_consistent",
         "Denormalized routing table reflects connection state (R)."},
    [PRESENCE_DERIVES_FROM_CONNECTIONS] = {"presence_derives_from_connections",
                                           "Presence directly derived from connection state (R)."},
    [PRESENCE_STALENESS_BOUNDED] =
        {"presence_staleness_bounded",
         "Staleness bounded (R): every viewer who was told something is told the truth at most one "
         "window plus 5 s after the fault is over (decision 17)."},
    [PRIVACY_ENFORCED] = {"privacy_enforced",
                          "Privacy always enforced (R): nothing reaches a viewer who may not see "
                          "it, ever."},
    [MULTI_DEVICE_DELIVERY] =
        {"multi_device_delivery",
         "All devices receive delivery attempt (R): every device that follows a chat has all of it "
         "after the quiet period."},
    [NO_SILENT_MESSAGE_LOSS] = {"no_silent_message_loss",
                                "Every request gets explicit success or failure (F)."},
    [FAILFAST_PERSISTENCE] =
        {"failfast_persistence",
         "Never ack before commit (F): what was acknowledged is there, with that sequence, "
         "whatever crashed since."},
    [RECONNECT_HEALS] = {"reconnect_heals",
                         "Sync restores correct state (F): after the quiet period every "
                         "device that runs is connected."},
    [ISOLATION_HOLDS] = {"isolation_holds",
                         "Failures don't cross planes (F): without the ledger presence stays true, "
                         "and connections stay."},
    [BOUNDED_BUFFER] = {"bounded_buffer",
                        "No unbounded growth per connection (F): a gateway stays below 64 MiB."},
    [VERSIONS_GO_FORWARD] =
        {"versions_go_forward",
         "What a device is told about a user never has an older version than before (decision "
         "17)."},
    [TRANSITION_IS_TOLD_ONCE] = {"transition_is_told_once",
                                 "One transition is one event per connection."},
    [SEQUENCE_IS_DENSE] = {"sequence_is_dense",
                           "A chat has no gap and no duplicate for any device that follows it."},
    [SEQUENCE_IS_UNIQUE] = {"sequence_is_unique",
                            "Two messages of a chat never have the same sequence."},
    [MESSAGE_IS_STORED_ONCE] = {"message_is_stored_once",
                                "A message that is sent again has the sequence that it had."},
    [REQUEST_IS_ANSWERED_ONCE] =
        {"request_is_answered_once",
         "Every request gets exactly one answer while its connection lives."},
    [CALLS_END] = {"calls_end", "Each call ends for both sides; nobody stays in a call for good."},
    [REDIS_IS_CONSISTENT] = {"redis_is_consistent", "`rollcall check` finds nothing."},
    [NO_MEMORY_IS_LEFT] = {"no_memory_is_left",
                           "A process that ends in order has freed all its memory."},
    [PROCESSES_KEEP_RUNNING] =
        {"processes_keep_running",
         "No server ends unless it is told to, or a fault keeps it from starting."},
};

const char *invariant_name(enum invariant invariant)
{
    return INVARIANTS[invariant].name;
}

const char *invariant_sentence(enum invariant invariant)
{
    return INVARIANTS[invariant].sentence;
}

void invariants_violate(struct world *world, enum invariant invariant, const char *format, ...)
{
    va_list args;
    if (world->is_violated)
        return;
    world->is_violated = true;
    world->violated = invariant;
    va_start(args, format);
    vsnprintf(world->violation, sizeof(world->violation), format, args);
    va_end(args);
    trace_line("VIOLATED %s: %s", invariant_name(invariant), world->violation);
    kernel_stop();
}

/* ---- when ---- */

bool invariants_is_settled(const struct world *world, int64_t since_us)
{
    return since_us != POPULATION_PENDING_US && kernel_now_us() - since_us >= world->bound_us;
}

bool invariants_is_calm(const struct world *world)
{
    return !world_has_fault(world) && invariants_is_settled(world, world->faults.over_us);
}

void invariants_check(struct world *world)
{
    world->ticks++;
    memory_invariants_check(world);
    request_invariants_check(world);
    presence_invariants_check(world);
    if (world->ticks % ROUTING_EVERY == 0)
        routing_invariants_check(world);
}

void invariants_check_end(struct world *world)
{
    invariants_check(world);
    routing_invariants_check(world);
    message_invariants_check_end(world);
    call_invariants_check_end(world);
}

/* ---- processes ---- */

void memory_invariants_check(struct world *world)
{
    for (size_t i = 0; i < world->options.gateways; i++) {
        const struct process *process = world->gateways[i].process;
        if (process && process->memory.bytes > GATEWAY_BYTES_MAX)
            invariants_violate(world, BOUNDED_BUFFER, "%s has %zu bytes", process->name,
                               process->memory.bytes);
    }
}

void invariants_on_exit(struct world *world, const struct process *process)
{
    if (process->memory.bytes > 0)
        invariants_violate(world, NO_MEMORY_IS_LEFT, "%s left %zu bytes", process->name,
                           process->memory.bytes);
}

void invariants_on_server_ended(struct server_node *node, const struct process *process)
{
    bool may_fail = !invariants_is_calm(node->world);
    if (process->status != 0 && may_fail)
        return;
    if (!node->is_draining || process->status != 0)
        invariants_violate(node->world, PROCESSES_KEEP_RUNNING, "%s ended with status %d",
                           node->name, process->status);
    else
        invariants_on_exit(node->world, process);
}
