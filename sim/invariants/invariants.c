#include "invariants/invariants.h"

#include "world/trace.h"
#include "world/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const struct {
    const char *name;
    const char *sentence;
} INVARIANTS[INVARIANT_COUNT] = {
    [PRESENCE_NEVER_LIES_FOR_GOOD] =
        {"presence_never_lies_for_good",
         "Every viewer who was told something is told the truth at most one window plus "
         "5 s after the fault is over (decision 17)."},
    [VERSIONS_GO_FORWARD] =
        {"versions_go_forward",
         "What a device is told about a user never has an older version than before (decision "
         "17)."},
    [ACKNOWLEDGED_IS_KEPT] =
        {"acknowledged_is_kept",
         "A message that was acknowledged reaches every member, with the sequence that was "
         "acknowledged (F: failfast_persistence, reconnect_heals)."},
    [SEQUENCE_IS_DENSE] = {"sequence_is_dense",
                           "A chat has no gap and no duplicate for any device that follows it."},
    [SEQUENCE_IS_UNIQUE] = {"sequence_is_unique",
                            "Two messages of a chat never have the same sequence."},
    [QUIET_FLEET_IS_CONNECTED] =
        {"quiet_fleet_is_connected",
         "After the quiet period every device that runs is connected (F: reconnect_heals)."},
    [EVERYTHING_IS_ANSWERED] =
        {"everything_is_answered",
         "After the quiet period no message waits for its acknowledgement (F: "
         "no_silent_message_loss)."},
    [REDIS_IS_CONSISTENT] =
        {"redis_is_consistent",
         "`rollcall check` finds nothing: routing_ttl_bounded, zombie_prevention, conn_id_uniqueness, "
         "routing_denormalization_consistent, presence_derives_from_connections (R)."},
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

/* ---- messages ---- */

static void chat_reserve(struct chat *chat, int64_t sequence)
{
    if ((size_t)sequence < chat->capacity)
        return;
    size_t capacity = 2 * (size_t)sequence + 64;
    chat->ids = realloc(chat->ids, capacity * sizeof(chat->ids[0]));
    chat->acknowledged = realloc(chat->acknowledged, capacity * sizeof(chat->acknowledged[0]));
    for (size_t i = chat->capacity; i < capacity; i++) {
        chat->ids[i] = 0;
        chat->acknowledged[i] = false;
    }
    chat->capacity = capacity;
}

/* Every sight of a sequence must be of the same message. */
static void check_sequence(struct world *world, const struct device *device, struct chat *chat,
                           int64_t sequence, const char *body)
{
    uint64_t id = XXH3_64bits(body, strlen(body)) | 1;
    chat_reserve(chat, sequence);
    if (chat->ids[sequence - 1] == 0)
        chat->ids[sequence - 1] = id;
    else if (chat->ids[sequence - 1] != id)
        invariants_violate(world, SEQUENCE_IS_UNIQUE, "%s got %s as %s:%lld, which was another",
                           device->name, body, chat->id, (long long)sequence);
    if (sequence > chat->last_sequence)
        chat->last_sequence = sequence;
}

void invariants_on_acknowledged(struct world *world, struct device *device,
                                const struct rollcall_event *event)
{
    struct chat *chat = device->user->chat;
    check_sequence(world, device, chat, event->sequence, event->client_message_id);
    chat->acknowledged[event->sequence - 1] = true;
    world->counts.acknowledged++;
    trace_line("%s sent %s as %lld", device->name, event->client_message_id,
               (long long)event->sequence);
}

void invariants_on_message(struct world *world, struct device *device,
                           const struct rollcall_event *event)
{
    check_sequence(world, device, device->user->chat, event->sequence, event->body);
    world->counts.delivered++;
    if (event->sequence != device->last_sequence + 1)
        invariants_violate(world, SEQUENCE_IS_DENSE, "%s got %lld after %lld of %s", device->name,
                           (long long)event->sequence, (long long)device->last_sequence,
                           event->chat_id);
    device->last_sequence = event->sequence;
}

/* ---- presence ---- */

static void count_delay(struct world *world, const struct user *user)
{
    struct delays *delays = &world->delays;
    int64_t since_us =
        user->changed_us > world->faults.over_us ? user->changed_us : world->faults.over_us;
    int64_t delay_us = kernel_now_us() - since_us;
    size_t at = (size_t)(delay_us / 100000);
    delays->counts[at < INVARIANTS_SAMPLES ? at : INVARIANTS_SAMPLES - 1]++;
    delays->total++;
    if (delay_us > delays->worst_us)
        delays->worst_us = delay_us;
}

void invariants_on_presence(struct world *world, struct device *device,
                            const struct rollcall_event *event)
{
    int at = population_find_contact(&world->population, device->user, event->user_id);
    if (at < 0)
        return;
    struct told *told = &device->told[at];
    const struct user *user = &world->population.users[device->user->contacts[at]];
    bool is_online = strcmp(event->status, "online") == 0 || strcmp(event->status, "away") == 0;
    bool is_first = !told->is_known;
    if (told->is_known && event->version < told->version)
        invariants_violate(world, VERSIONS_GO_FORWARD, "%s was told version %lld of %s after %lld",
                           device->name, (long long)event->version, event->user_id,
                           (long long)told->version);
    bool is_news = !is_first && is_online != told->is_online;
    *told = (struct told){true, is_online, event->version, kernel_now_us()};
    world->counts.told++;
    trace_line("%s told %s %s %lld", device->name, event->user_id, event->status,
               (long long)event->version);
    if (is_news && is_online == (user->devices_connected > 0) && !world_has_fault(world))
        count_delay(world, user);
}

static bool is_settled(const struct world *world, int64_t since_us)
{
    return kernel_now_us() - since_us >= world->bound_us;
}

static void check_viewer(struct world *world, const struct device *viewer)
{
    for (size_t i = 0; i < viewer->user->contact_count; i++) {
        const struct user *user = &world->population.users[viewer->user->contacts[i]];
        const struct told *told = &viewer->told[i];
        bool is_online = user->devices_connected > 0;
        if (!is_settled(world, user->changed_us) ||
            (told->is_known && told->is_online == is_online))
            continue;
        invariants_violate(world, PRESENCE_NEVER_LIES_FOR_GOOD,
                           "%s believes since %.1f s that %s is %s, which is %s since %.1f s",
                           viewer->name, (double)(kernel_now_us() - told->at_us) / 1e6, user->name,
                           !told->is_known   ? "unknown"
                           : told->is_online ? "online"
                                             : "offline",
                           is_online ? "online" : "offline",
                           (double)(kernel_now_us() - user->changed_us) / 1e6);
    }
}

void invariants_check(struct world *world)
{
    const struct population *population = &world->population;
    if (world_has_fault(world) || !is_settled(world, world->faults.over_us))
        return;
    for (size_t i = 0; i < population->device_count; i++) {
        const struct device *viewer = &population->devices[i];
        if (viewer->is_connected && is_settled(world, viewer->changed_us))
            check_viewer(world, viewer);
    }
}

/* ---- the end ---- */

void invariants_on_exit(struct world *world, const struct process *process)
{
    if (process->memory.bytes > 0)
        invariants_violate(world, NO_MEMORY_IS_LEFT, "%s left %zu bytes", process->name,
                           process->memory.bytes);
}

void invariants_on_server_ended(struct server_node *node, const struct process *process)
{
    bool may_fail =
        world_has_fault(node->world) || !is_settled(node->world, node->world->faults.over_us);
    if (process->status != 0 && may_fail)
        return;
    if (!node->is_draining || process->status != 0)
        invariants_violate(node->world, PROCESSES_KEEP_RUNNING, "%s ended with status %d",
                           node->name, process->status);
    else
        invariants_on_exit(node->world, process);
}

static void check_chat_end(struct world *world, const struct chat *chat)
{
    for (int64_t i = 0; i < chat->last_sequence; i++)
        if (chat->ids[i] == 0)
            invariants_violate(world, ACKNOWLEDGED_IS_KEPT, "nobody has %s:%lld", chat->id,
                               (long long)i + 1);
}

void invariants_check_end(struct world *world)
{
    const struct population *population = &world->population;
    invariants_check(world);
    for (size_t i = 0; i < population->chat_count; i++)
        check_chat_end(world, &population->chats[i]);
    for (size_t i = 0; i < population->device_count; i++) {
        const struct device *device = &population->devices[i];
        if (!device->process)
            continue;
        if (!device->is_connected)
            invariants_violate(world, QUIET_FLEET_IS_CONNECTED, "%s is not connected",
                               device->name);
        else if (device->unanswered_count > 0)
            invariants_violate(world, EVERYTHING_IS_ANSWERED, "%u messages of %s wait",
                               device->unanswered_count, device->name);
        else if (device->last_sequence < device->user->chat->last_sequence)
            invariants_violate(world, ACKNOWLEDGED_IS_KEPT, "%s has %s up to %lld of %lld",
                               device->name, device->user->chat->id,
                               (long long)device->last_sequence,
                               (long long)device->user->chat->last_sequence);
    }
}
