/* What Redis holds about connections, compared with itself and with the devices that are connected. */
#include "base/container.h"
#include "invariants/invariants.h"
#include "redis_model/model_call.h"
#include "world/world.h"

#include <string.h>

enum { KEY_BYTES = 128 };

/* A key's name under way. On a cluster the user's id is in braces (store/redis/redis_keys.h). */
struct key_text {
    char data[KEY_BYTES];
    size_t len;
};

static void key_add(struct key_text *key, struct slice text)
{
    size_t left = KEY_BYTES - key->len;
    memcpy(key->data + key->len, text.data, text.len < left ? text.len : left);
    key->len += text.len < left ? text.len : left;
}

static void key_add_user(const struct world *world, struct key_text *key, const struct user *user)
{
    bool is_cluster = redis_group_is_cluster(&world->redis);
    key_add(key, is_cluster ? SLICE("{") : SLICE(""));
    key_add(key, (struct slice){user->name, strlen(user->name)});
    key_add(key, is_cluster ? SLICE("}") : SLICE(""));
}

static const struct model_value *find_value(struct world *world, const struct key_text *key)
{
    struct slice name = {key->data, key->len};
    struct redis_model *model = redis_group_find(&world->redis, name);
    struct model_key *found = model ? model_key_find(model, name) : NULL;
    return found ? found->value : NULL;
}

static const struct model_value *find_user_value(struct world *world, struct slice prefix,
                                                 const struct user *user)
{
    struct key_text key = {.len = 0};
    key_add(&key, prefix);
    key_add_user(world, &key, user);
    return find_value(world, &key);
}

static struct slice find_field(const struct model_value *value, struct slice field)
{
    const struct model_member *member =
        value && value->type == MODEL_HASH ? model_member_find(value, field) : NULL;
    return member ? member->text : SLICE_NONE;
}

/* On a cluster a connection's record is beside its user's keys. */
static struct slice find_connection_field(struct world *world, const struct user *user,
                                          struct slice id, struct slice field)
{
    struct key_text key = {.len = 0};
    key_add(&key, SLICE("connection:"));
    if (redis_group_is_cluster(&world->redis)) {
        key_add_user(world, &key, user);
        key_add(&key, SLICE(":"));
    }
    key_add(&key, id);
    return find_field(find_value(world, &key), field);
}

/* ∀ key K ∈ {connection:*, user_connections:*, user_servers:*, server_connections:*}: TTL(K) ≤ EXPIRY_WINDOW */
struct ttl_check {
    struct world *world;
    int64_t now_us;
    int64_t most_us;
};

static void check_key_ttl(struct table_node *node, void *arg)
{
    static const struct slice PREFIXES[] = {SLICE("connection:"), SLICE("user_connections:"),
                                            SLICE("user_servers:"), SLICE("server_connections:")};
    const struct ttl_check *check = arg;
    const struct model_key *key = CONTAINER_OF(node, struct model_key, node);
    if (key->expires_us != 0 && key->expires_us <= check->most_us)
        return;
    for (size_t i = 0; i < sizeof(PREFIXES) / sizeof(PREFIXES[0]); i++)
        if (slice_starts_with(key->name, PREFIXES[i]))
            invariants_violate(check->world, ROUTING_TTL_BOUNDED, "%.*s expires in %.1f s",
                               SLICE_FORMAT(key->name),
                               (double)(key->expires_us - check->now_us) / 1e6);
}

/* A server's own time stands still for its model between commands. */
static void check_ttls(struct world *world, struct redis_server *redis)
{
    struct ttl_check check = {.world = world, .now_us = machine_wall_us(redis->machine)};
    check.most_us = check.now_us + world->bound_us - world->options.grace_us;
    redis->model.now_us = check.now_us;
    table_each(&redis->model.keys, check_key_ttl, &check);
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
    struct slice owner = find_connection_field(world, user, id, SLICE("user_id"));
    struct slice name = {user->name, strlen(user->name)};
    if (owner.data && !slice_equal(owner, name))
        invariants_violate(world, CONN_ID_UNIQUENESS, "%.*s of %.*s is a connection of %.*s",
                           SLICE_FORMAT(id), SLICE_FORMAT(name), SLICE_FORMAT(owner));
}

/* ∀ user U, server S: S ∈ user_servers:{U} ⟺ ∃ conn C: C ∈ user_connections:{U} ∧ connection:{C}.server_id = S */
static void check_servers(struct world *world, const struct user *user,
                          const struct model_value *connections)
{
    const struct model_value *servers = find_user_value(world, SLICE("user_servers:"), user);
    size_t found = 0;
    for (size_t s = 0; servers && s < servers->count; s++) {
        bool has_one = false;
        for (size_t i = 0; connections && i < connections->count; i++)
            has_one |= slice_equal(find_connection_field(world, user, connections->members[i]->name,
                                                         SLICE("server_id")),
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
    struct slice status =
        find_field(find_user_value(world, SLICE("user_presence:"), user), SLICE("status"));
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
        find_user_value(world, SLICE("user_connections:"), user);
    size_t count = connections ? connections->count : 0;
    for (size_t i = 0; i < count; i++)
        check_connection(world, user, connections->members[i]->name);
    check_zombies(world, user, count);
    check_servers(world, user, connections);
    check_presence(world, user, count);
}

void routing_invariants_check(struct world *world)
{
    const struct population *population = &world->population;
    if (!invariants_is_calm(world))
        return;
    for (size_t i = 0; i < world->redis.count; i++)
        if (redis_group_is_master(&world->redis, &world->redis.servers[i]))
            check_ttls(world, &world->redis.servers[i]);
    for (size_t i = 0; i < population->user_count; i++)
        if (invariants_is_settled(world, population->users[i].changed_us))
            check_user(world, &population->users[i]);
}
