/* What Redis holds about connections, compared with itself and with the devices that are connected. */
#include "base/container.h"
#include "invariants/invariants.h"
#include "redis_model/model_call.h"
#include "world/world.h"

#include <stdio.h>

enum { KEY_BYTES = 128 };

static struct model_value *find_value(struct world *world, const char *prefix, struct slice name)
{
    char key[KEY_BYTES];
    int len = snprintf(key, sizeof(key), "%s%.*s", prefix, SLICE_FORMAT(name));
    struct model_key *found = model_key_find(&world->redis.model, (struct slice){key, (size_t)len});
    return found ? found->value : NULL;
}

static struct slice find_field(struct world *world, const char *prefix, struct slice name,
                               const char *field)
{
    const struct model_value *value = find_value(world, prefix, name);
    const struct model_member *member =
        value && value->type == MODEL_HASH ? model_member_find(value, slice_of(field)) : NULL;
    return member ? member->text : SLICE_NONE;
}

/* ∀ key K ∈ {connection:*, user_connections:*, user_servers:*, server_connections:*}: TTL(K) ≤ EXPIRY_WINDOW */
static void check_ttl(struct world *world, const struct model_key *key)
{
    static const char *const PREFIXES[] = {
        "connection:", "user_connections:", "user_servers:", "server_connections:"};
    int64_t most_us = world->redis.model.now_us + world->bound_us - world->options.grace_us;
    for (size_t i = 0; i < sizeof(PREFIXES) / sizeof(PREFIXES[0]); i++)
        if (slice_starts_with(key->name, slice_of(PREFIXES[i])) &&
            (key->expires_us == 0 || key->expires_us > most_us))
            invariants_violate(world, ROUTING_TTL_BOUNDED, "%.*s expires in %.1f s",
                               SLICE_FORMAT(key->name),
                               (double)(key->expires_us - world->redis.model.now_us) / 1e6);
}

static void check_key_ttl(struct table_node *node, void *arg)
{
    check_ttl(arg, CONTAINER_OF(node, struct model_key, node));
}

/* ∀ server S that crashes at time T: ∀ key K written by S: K.expires_at ≤ T + EXPIRY_WINDOW: what stands there of a user
 * whose devices are as they are for that long is of those devices. */
static void check_zombies(struct world *world, const struct user *user, size_t connections)
{
    if (connections > user->devices_connected)
        invariants_violate(world, ZOMBIE_PREVENTION, "%s has %zu connections in Redis, and %u",
                           user->name, connections, user->devices_connected);
}

/* ∀ conn_id C, time T: |{K : K = connection:{C} ∧ K.exists_at(T)}| ≤ 1: its record is of this user, as it is listed. */
static void check_connection(struct world *world, const struct user *user, struct slice id)
{
    struct slice owner = find_field(world, "connection:", id, "user_id");
    if (owner.data && !slice_is(owner, user->name))
        invariants_violate(world, CONN_ID_UNIQUENESS, "%.*s of %s is a connection of %.*s",
                           SLICE_FORMAT(id), user->name, SLICE_FORMAT(owner));
}

/* ∀ user U, server S: S ∈ user_servers:{U} ⟺ ∃ conn C: C ∈ user_connections:{U} ∧ connection:{C}.server_id = S */
static void check_servers(struct world *world, const struct user *user,
                          const struct model_value *connections)
{
    const struct model_value *servers = find_value(world, "user_servers:", slice_of(user->name));
    size_t found = 0;
    for (size_t s = 0; servers && s < servers->count; s++) {
        bool has_one = false;
        for (size_t i = 0; connections && i < connections->count; i++)
            has_one |= slice_equal(
                find_field(world, "connection:", connections->members[i]->name, "server_id"),
                servers->members[s]->name);
        found += has_one;
    }
    if (found != (servers ? servers->count : 0) || (connections && connections->count && !found))
        invariants_violate(world, ROUTING_DENORMALIZATION_CONSISTENT,
                           "user_servers:%s is not where the connections are", user->name);
}

/* ∀ user U: presence(U) = "online" ⟺ |user_connections:{U}| > 0 */
static void check_presence(struct world *world, const struct user *user, size_t connections)
{
    struct slice status = find_field(world, "user_presence:", slice_of(user->name), "status");
    bool is_online = status.data && !slice_is(status, "offline");
    if (is_online != (connections > 0))
        invariants_violate(world, PRESENCE_DERIVES_FROM_CONNECTIONS,
                           "user_presence:%s is %.*s with %zu connections", user->name,
                           SLICE_FORMAT(status), connections);
    if (is_online != (user->devices_connected > 0))
        invariants_violate(world, PRESENCE_DERIVES_FROM_CONNECTIONS,
                           "user_presence:%s is %.*s with %u devices", user->name,
                           SLICE_FORMAT(status), user->devices_connected);
}

static void check_user(struct world *world, const struct user *user)
{
    const struct model_value *connections =
        find_value(world, "user_connections:", slice_of(user->name));
    size_t count = connections ? connections->count : 0;
    for (size_t i = 0; i < count; i++)
        check_connection(world, user, connections->members[i]->name);
    check_zombies(world, user, count);
    check_servers(world, user, connections);
    check_presence(world, user, count);
}

/* Redis's own time stands still for the model between commands. */
void routing_invariants_check(struct world *world)
{
    const struct population *population = &world->population;
    if (!invariants_is_calm(world))
        return;
    world->redis.model.now_us = machine_wall_us(world->redis.machine);
    table_each(&world->redis.model.keys, check_key_ttl, world);
    for (size_t i = 0; i < population->user_count; i++)
        if (invariants_is_settled(world, population->users[i].changed_us))
            check_user(world, &population->users[i]);
}
