#include "invariants/invariants.h"
#include "world/trace.h"
#include "world/world.h"

#include <string.h>

/* What was sent before a change of privacy was confirmed may arrive so much later, without faults. */
enum { IN_FLIGHT_US = 2 * 1000 * 1000 };

/* ---- who may not see ---- */

static void check_privacy(struct world *world, const struct device *device,
                          const struct rollcall_event *event)
{
    int64_t since_us;
    const struct user *user = population_find_user(&world->population, event->user_id);
    bool shows = strcmp(event->status, "unknown") != 0 || strstr(event->json, "\"last_seen\":\"") ||
                 strstr(event->json, "\"in_call\":true");
    if (!user || !shows || population_may_see(&world->population, device->user, user, &since_us))
        return;
    bool is_sure =
        since_us == 0 || (invariants_is_calm(world) && since_us != POPULATION_PENDING_US &&
                          kernel_now_us() - since_us > IN_FLIGHT_US);
    if (is_sure)
        invariants_violate(world, PRIVACY_ENFORCED, "%s was told %s", device->name, event->json);
}

/* ---- what is told ---- */

static void count_delay(struct world *world, const struct user *user, enum lie lie)
{
    struct delays *delays = &world->delays[lie];
    int64_t since_us =
        user->changed_us > world->faults.over_us ? user->changed_us : world->faults.over_us;
    int64_t delay_us = kernel_now_us() - since_us;
    size_t at = (size_t)(delay_us / 100000);
    delays->counts[at < INVARIANTS_SAMPLES ? at : INVARIANTS_SAMPLES - 1]++;
    delays->total++;
    if (delay_us > delays->worst_us)
        delays->worst_us = delay_us;
}

static struct told read_told(const struct told *before, const struct rollcall_event *event)
{
    bool is_push = strcmp(event->name, "presence_changed") == 0;
    return (struct told){.is_known = true,
                         .is_online = strcmp(event->status, "offline") != 0,
                         .is_away = strcmp(event->status, "away") == 0,
                         .in_call = strstr(event->json, "\"in_call\":true") != NULL,
                         .version = event->version,
                         .pushed_version = is_push ? event->version : before->pushed_version,
                         .at_us = kernel_now_us()};
}

static void check_version(struct world *world, const struct device *device,
                          const struct told *before, const struct told *told, const char *user)
{
    if (told->version < before->version)
        invariants_violate(world, VERSIONS_GO_FORWARD, "%s was told version %lld of %s after %lld",
                           device->name, (long long)told->version, user,
                           (long long)before->version);
}

/* A push with the version of the one before, of the same state. */
static void check_repetition(struct world *world, const struct device *device,
                             const struct told *before, const struct rollcall_event *event)
{
    struct told told = read_told(before, event);
    if (strcmp(event->name, "presence_changed") == 0 && told.version == before->pushed_version &&
        told.is_online == before->is_online && told.is_away == before->is_away &&
        told.in_call == before->in_call)
        invariants_violate(world, TRANSITION_IS_TOLD_ONCE, "%s was told version %lld of %s twice",
                           device->name, (long long)event->version, event->user_id);
}

static void keep_told(struct world *world, struct device *device, size_t at,
                      const struct rollcall_event *event)
{
    struct told before = device->told[at], told = read_told(&before, event);
    const struct user *user = &world->population.users[device->user->contacts[at]];
    bool is_news = before.is_known && told.is_online != before.is_online;
    if (before.is_known) {
        check_version(world, device, &before, &told, event->user_id);
        check_repetition(world, device, &before, event);
    }
    device->told[at] = told;
    if (is_news && told.is_online == (user->devices_connected > 0) && !world_has_fault(world))
        count_delay(world, user, told.is_online ? LIE_FALSE_OFFLINE : LIE_GHOST);
}

void invariants_on_presence(struct world *world, struct device *device,
                            const struct rollcall_event *event)
{
    int at = population_find_contact(&world->population, device->user, event->user_id);
    check_privacy(world, device, event);
    if (at < 0)
        return;
    world->counts.told++;
    trace_line("%s told %s %s %lld", device->name, event->user_id, event->status,
               (long long)event->version);
    if (strcmp(event->status, "unknown") == 0) {
        device->told[at] = (struct told){.at_us = kernel_now_us()};
        return;
    }
    keep_told(world, device, (size_t)at, event);
}

/* ---- whether it is true ---- */

static const char *name_told(const struct told *told)
{
    return !told->is_known ? "unknown" : told->is_online ? "online" : "offline";
}

static void check_contact(struct world *world, const struct device *viewer, size_t at)
{
    int64_t since_us;
    const struct user *user = &world->population.users[viewer->user->contacts[at]];
    const struct told *told = &viewer->told[at];
    bool is_online = user->devices_connected > 0;
    if (!population_may_see(&world->population, viewer->user, user, &since_us) ||
        !invariants_is_settled(world, since_us))
        return;
    bool is_wrong = told->is_known ? told->is_online != is_online : invariants_is_calm(world);
    if (is_wrong && invariants_is_settled(world, user->changed_us))
        invariants_violate(
            world, invariants_is_calm(world) ? PRESENCE_STALENESS_BOUNDED : ISOLATION_HOLDS,
            "%s believes since %.1f s that %s is %s, which is %s since %.1f s", viewer->name,
            (double)(kernel_now_us() - told->at_us) / 1e6, user->name, name_told(told),
            is_online ? "online" : "offline", (double)(kernel_now_us() - user->changed_us) / 1e6);
    if (told->in_call && user->devices_talking == 0 && invariants_is_calm(world) &&
        invariants_is_settled(world, user->talked_us) && invariants_is_settled(world, told->at_us))
        invariants_violate(world, CALLS_END, "%s believes that %s is in a call, which ended",
                           viewer->name, user->name);
}

/* Without the ledger what is told must be as true as ever; who comes anew may be told nothing. */
static bool is_presence_due(const struct world *world)
{
    return invariants_is_calm(world) ||
           (faults_are_of_ledger(&world->faults) &&
            invariants_is_settled(world, world->faults.presence_over_us));
}

void presence_invariants_check(struct world *world)
{
    const struct population *population = &world->population;
    if (!is_presence_due(world))
        return;
    for (size_t i = 0; i < population->device_count; i++) {
        const struct device *viewer = &population->devices[i];
        if (!viewer->is_connected || !invariants_is_settled(world, viewer->changed_us))
            continue;
        for (size_t at = 0; at < viewer->user->contact_count; at++)
            check_contact(world, viewer, at);
    }
}
