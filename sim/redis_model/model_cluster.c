#include "redis_model/model_cluster.h"

#include "base/container.h"

#include <stdio.h>
#include <stdlib.h>

enum { PORT_TEXT_BYTES = 8 };

/* ---- servers ---- */

void model_cluster_init(struct model_cluster *cluster)
{
    *cluster = (struct model_cluster){0};
    memset(cluster->owner, MODEL_CLUSTER_NOBODY, sizeof(cluster->owner));
    memset(cluster->migrating_to, MODEL_CLUSTER_NOBODY, sizeof(cluster->migrating_to));
    memset(cluster->importing_at, MODEL_CLUSTER_NOBODY, sizeof(cluster->importing_at));
}

size_t model_cluster_add(struct model_cluster *cluster, struct redis_model *model, const char *id,
                         const char *host, uint16_t port)
{
    size_t place = cluster->count++;
    struct model_node *node = &cluster->nodes[place];
    node->model = model;
    node->master = place;
    node->port = port;
    snprintf(node->host, sizeof(node->host), "%s", host);
    if (id)
        snprintf(node->id, sizeof(node->id), "%s", id);
    else
        snprintf(node->id, sizeof(node->id), "%040zx", place + 1);
    model->cluster = cluster;
    model->place = place;
    return place;
}

static size_t find_node(const struct model_cluster *cluster, struct slice id)
{
    size_t place = 0;
    while (place < cluster->count && !slice_is(id, cluster->nodes[place].id))
        place++;
    return place;
}

static size_t find_node_at(const struct model_cluster *cluster, struct slice host, int64_t port)
{
    size_t place = 0;
    while (place < cluster->count &&
           !(slice_is(host, cluster->nodes[place].host) && cluster->nodes[place].port == port))
        place++;
    return place;
}

struct redis_model *model_cluster_find(const struct model_cluster *cluster, struct slice key)
{
    size_t owner = cluster->owner[redis_slot(key)];
    return owner == MODEL_CLUSTER_NOBODY ? NULL : cluster->nodes[owner].model;
}

/* ---- slots ---- */

/* A client hears that its subscription has ended, and finds the server that has the slot now. */
static void drop_slot_channels(struct redis_session *session, unsigned slot)
{
    struct model_call call = {.out = &session->out, .resp = session->resp};
    struct model_value *channels = session->shard_channels;
    for (size_t i = channels->count; i-- > 0;) {
        struct buffer name = BUFFER_INIT;
        if (redis_slot(channels->members[i]->name) != slot)
            continue;
        buffer_append_slice(&name, channels->members[i]->name);
        model_member_remove(channels, channels->members[i]);
        buffer_append_text(call.out, call.resp == 3 ? ">3\r\n" : "*3\r\n");
        model_reply_bulk(&call, SLICE("sunsubscribe"));
        model_reply_bulk(&call, buffer_slice(&name));
        model_reply_int(&call, (int64_t)channels->count);
        buffer_free(&name);
    }
}

static void set_slot_owner(struct model_cluster *cluster, unsigned slot, size_t place)
{
    size_t before = cluster->owner[slot];
    cluster->migrating_to[slot] = cluster->importing_at[slot] = MODEL_CLUSTER_NOBODY;
    if (before == place)
        return;
    cluster->owner[slot] = (uint8_t)place;
    if (before == MODEL_CLUSTER_NOBODY)
        return;
    struct list *sessions = &cluster->nodes[before].model->sessions;
    for (struct list *at = sessions->next; at != sessions; at = at->next)
        drop_slot_channels(CONTAINER_OF(at, struct redis_session, place), slot);
}

void model_cluster_assign(struct model_cluster *cluster, unsigned first, unsigned last,
                          size_t place)
{
    for (unsigned slot = first; slot <= last; slot++)
        set_slot_owner(cluster, slot, place);
}

void model_cluster_promote(struct model_cluster *cluster, size_t master, size_t replica)
{
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++) {
        if (cluster->owner[slot] == master)
            cluster->owner[slot] = (uint8_t)replica;
        if (cluster->migrating_to[slot] == master)
            cluster->migrating_to[slot] = (uint8_t)replica;
        if (cluster->importing_at[slot] == master)
            cluster->importing_at[slot] = (uint8_t)replica;
    }
    cluster->nodes[replica].master = replica;
    cluster->nodes[master].master = replica;
}

/* ---- keys of a slot ---- */

/* Calls the function for each key of the slot, up to `max`. */
struct slot_search {
    unsigned slot;
    size_t count;
    size_t max;
    const struct model_key **found;
};

static void visit_slot_key(struct table_node *node, void *arg)
{
    struct slot_search *search = arg;
    const struct model_key *key = CONTAINER_OF(node, const struct model_key, node);
    if (search->count == search->max || redis_slot(key->name) != search->slot)
        return;
    if (search->found)
        search->found[search->count] = key;
    search->count++;
}

static int compare_keys(const void *left, const void *right)
{
    const struct slice a = (*(const struct model_key *const *)left)->name;
    const struct slice b = (*(const struct model_key *const *)right)->name;
    int order = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Returns how many of the slot's keys are in `found`, in the order of their names. */
static size_t find_slot_keys(struct redis_model *model, unsigned slot,
                             const struct model_key **found, size_t max)
{
    struct slot_search search = {.slot = slot, .max = max, .found = found};
    table_each(&model->keys, visit_slot_key, &search);
    if (found)
        qsort((void *)found, search.count, sizeof(struct model_key *), compare_keys);
    return search.count;
}

static void move_key(struct redis_model *from, struct redis_model *to, struct model_key *key)
{
    struct model_key *there = model_key_find(to, key->name);
    if (there)
        model_key_remove(to, there);
    there = model_key_make(to, key->name, key->value->type);
    model_value_copy(there->value, key->value);
    there->expires_us = key->expires_us;
    model_key_remove(from, key);
}

void model_cluster_fix(struct model_cluster *cluster)
{
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++) {
        size_t to = cluster->importing_at[slot], owner = cluster->owner[slot];
        const struct model_key *key;
        if (to == MODEL_CLUSTER_NOBODY && cluster->migrating_to[slot] == MODEL_CLUSTER_NOBODY)
            continue;
        while (to != MODEL_CLUSTER_NOBODY && to != owner &&
               find_slot_keys(cluster->nodes[owner].model, slot, &key, 1) > 0)
            move_key(cluster->nodes[owner].model, cluster->nodes[to].model,
                     (struct model_key *)key);
        set_slot_owner(cluster, slot, to == MODEL_CLUSTER_NOBODY ? owner : to);
    }
}

/* ---- what a server answers for keys ---- */

struct slot_keys {
    unsigned slot;
    size_t missing;
    size_t existing;
    bool are_several; /* different ones */
    bool are_crossed; /* of different slots */
};

static struct slot_keys look_at_keys(const struct model_call *call, struct model_keys keys)
{
    struct slot_keys found = {.slot = redis_slot(call->args[keys.first])};
    for (size_t i = keys.first; i < keys.first + keys.count; i++) {
        found.are_crossed |= redis_slot(call->args[i]) != found.slot;
        found.are_several |= !slice_equal(call->args[i], call->args[keys.first]);
        if (model_key_find(call->model, call->args[i]))
            found.existing++;
        else
            found.missing++;
    }
    return found;
}

static const char *redirect(const struct model_cluster *cluster, const char *word, unsigned slot,
                            size_t place, char text[MODEL_CLUSTER_ERROR_BYTES])
{
    const struct model_node *node = &cluster->nodes[place];
    snprintf(text, MODEL_CLUSTER_ERROR_BYTES, "%s %u %s:%u", word, slot, node->host, node->port);
    return text;
}

static const char *refuse_slot(const struct model_call *call, const struct slot_keys *keys,
                               bool is_asking, bool are_channels,
                               char text[MODEL_CLUSTER_ERROR_BYTES])
{
    static const char TRY_AGAIN[] = "TRYAGAIN Multiple keys request during rehashing of slot";
    const struct model_cluster *cluster = call->model->cluster;
    size_t place = call->model->place, owner = cluster->owner[keys->slot];
    size_t to = cluster->migrating_to[keys->slot];
    if (owner == MODEL_CLUSTER_NOBODY)
        return "CLUSTERDOWN Hash slot not served";
    if (keys->are_crossed)
        return "CROSSSLOT Keys in request don't hash to the same slot";
    if (cluster->is_down && !are_channels)
        return "CLUSTERDOWN The cluster is down";
    if (owner == place && to != MODEL_CLUSTER_NOBODY && !are_channels && keys->missing > 0)
        return keys->existing > 0 ? TRY_AGAIN : redirect(cluster, "ASK", keys->slot, to, text);
    if (owner == place)
        return NULL;
    if (cluster->importing_at[keys->slot] == place && is_asking)
        return keys->are_several && keys->missing > 0 && !are_channels ? TRY_AGAIN : NULL;
    return redirect(cluster, "MOVED", keys->slot, owner, text);
}

const char *model_cluster_refuse(const struct model_call *call, const struct model_command *command,
                                 char text[MODEL_CLUSTER_ERROR_BYTES])
{
    struct model_keys keys = model_call_keys(call, command);
    const struct redis_session *session =
        call->session ? call->session : call->model->script_session;
    if (!call->model->cluster || keys.count == 0 || command->flags & MODEL_MOVES_KEYS)
        return NULL;
    struct slot_keys found = look_at_keys(call, keys);
    const char *error = refuse_slot(call, &found, session && session->is_asking,
                                    command->flags & MODEL_SHARD_CHANNELS, text);
    return error && !call->session
               ? "ERR Script attempted to access a non local key in a cluster node"
               : error;
}

/* ---- CLUSTER SLOTS and SHARDS ---- */

/* Returns the last slot of the row of slots with the same owner that begins here. */
static unsigned find_range_end(const struct model_cluster *cluster, unsigned first)
{
    unsigned last = first;
    while (last + 1 < REDIS_SLOTS && cluster->owner[last + 1] == cluster->owner[first])
        last++;
    return last;
}

static size_t count_ranges(const struct model_cluster *cluster, size_t of)
{
    size_t count = 0;
    for (unsigned first = 0; first < REDIS_SLOTS; first = find_range_end(cluster, first) + 1)
        count += of == MODEL_CLUSTER_NOBODY ? cluster->owner[first] != MODEL_CLUSTER_NOBODY
                                            : cluster->owner[first] == of;
    return count;
}

static size_t count_replicas(const struct model_cluster *cluster, size_t master)
{
    size_t count = 0;
    for (size_t i = 0; i < cluster->count; i++)
        count += cluster->nodes[i].master == master && i != master && !cluster->nodes[i].is_away;
    return count;
}

static void reply_node(struct model_call *call, const struct model_node *node)
{
    model_reply_array(call, 4);
    model_reply_bulk(call, slice_of(node->host));
    model_reply_int(call, node->port);
    model_reply_bulk(call, slice_of(node->id));
    model_reply_array(call, 0);
}

static void reply_slots(struct model_call *call)
{
    const struct model_cluster *cluster = call->model->cluster;
    model_reply_array(call, count_ranges(cluster, MODEL_CLUSTER_NOBODY));
    for (unsigned first = 0, last; first < REDIS_SLOTS; first = last + 1) {
        size_t owner = cluster->owner[first];
        last = find_range_end(cluster, first);
        if (owner == MODEL_CLUSTER_NOBODY)
            continue;
        model_reply_array(call, 3 + count_replicas(cluster, owner));
        model_reply_int(call, first);
        model_reply_int(call, last);
        reply_node(call, &cluster->nodes[owner]);
        for (size_t i = 0; i < cluster->count; i++)
            if (cluster->nodes[i].master == owner && i != owner && !cluster->nodes[i].is_away)
                reply_node(call, &cluster->nodes[i]);
    }
}

static void reply_text_pair(struct model_call *call, const char *name, const char *value)
{
    model_reply_bulk(call, slice_of(name));
    model_reply_bulk(call, slice_of(value));
}

static void reply_shard_node(struct model_call *call, const struct model_node *node, bool is_master)
{
    model_reply_map(call, 7);
    reply_text_pair(call, "id", node->id);
    model_reply_bulk(call, SLICE("port"));
    model_reply_int(call, node->port);
    reply_text_pair(call, "ip", node->host);
    reply_text_pair(call, "endpoint", node->host);
    reply_text_pair(call, "role", is_master ? "master" : "replica");
    model_reply_bulk(call, SLICE("replication-offset"));
    model_reply_int(call, 0);
    reply_text_pair(call, "health", node->is_away ? "fail" : "online");
}

static void reply_shard(struct model_call *call, size_t master)
{
    const struct model_cluster *cluster = call->model->cluster;
    model_reply_map(call, 2);
    model_reply_bulk(call, SLICE("slots"));
    model_reply_array(call, 2 * count_ranges(cluster, master));
    for (unsigned first = 0, last; first < REDIS_SLOTS; first = last + 1) {
        last = find_range_end(cluster, first);
        if (cluster->owner[first] != master)
            continue;
        model_reply_int(call, first);
        model_reply_int(call, last);
    }
    model_reply_bulk(call, SLICE("nodes"));
    model_reply_array(call, 1 + count_replicas(cluster, master));
    reply_shard_node(call, &cluster->nodes[master], true);
    for (size_t i = 0; i < cluster->count; i++)
        if (cluster->nodes[i].master == master && i != master && !cluster->nodes[i].is_away)
            reply_shard_node(call, &cluster->nodes[i], false);
}

static void reply_shards(struct model_call *call)
{
    const struct model_cluster *cluster = call->model->cluster;
    size_t masters = 0;
    for (size_t i = 0; i < cluster->count; i++)
        masters += cluster->nodes[i].master == i;
    model_reply_array(call, masters);
    for (size_t i = 0; i < cluster->count; i++)
        if (cluster->nodes[i].master == i)
            reply_shard(call, i);
}

static void reply_cluster_info(struct model_call *call)
{
    const struct model_cluster *cluster = call->model->cluster;
    size_t assigned = 0;
    char text[160];
    for (size_t slot = 0; slot < REDIS_SLOTS; slot++)
        assigned += cluster->owner[slot] != MODEL_CLUSTER_NOBODY;
    snprintf(text, sizeof(text),
             "cluster_state:%s\r\ncluster_slots_assigned:%zu\r\ncluster_known_nodes:%zu\r\n",
             cluster->is_down || assigned < REDIS_SLOTS ? "fail" : "ok", assigned, cluster->count);
    model_reply_bulk(call, slice_of(text));
}

/* ---- moving slots ---- */

static bool read_slot(struct model_call *call, size_t argument, unsigned *slot)
{
    int64_t number;
    bool is_one =
        resp_parse_integer(call->args[argument], &number) && number >= 0 && number < REDIS_SLOTS;
    if (is_one)
        *slot = (unsigned)number;
    else
        model_reply_error(call, "ERR Invalid or out of range slot");
    return is_one;
}

/* CLUSTER SETSLOT slot MIGRATING|IMPORTING|NODE id, or STABLE. */
static void set_slot(struct model_call *call)
{
    struct model_cluster *cluster = call->model->cluster;
    size_t place = call->model->place;
    unsigned slot;
    if (!read_slot(call, 2, &slot))
        return;
    bool is_stable = model_slice_is_word(call->args[3], "STABLE");
    bool is_migrating = model_slice_is_word(call->args[3], "MIGRATING");
    bool is_importing = model_slice_is_word(call->args[3], "IMPORTING");
    size_t other = call->count > 4 ? find_node(cluster, call->args[4]) : cluster->count;
    if (!is_stable && other == cluster->count) {
        model_reply_error(call, "ERR I don't know about node");
    } else if (is_migrating == (cluster->owner[slot] != place) && (is_migrating || is_importing)) {
        model_reply_error(call, "ERR I'm not, or already, the owner of hash slot");
    } else {
        if (is_stable)
            cluster->migrating_to[slot] = cluster->importing_at[slot] = MODEL_CLUSTER_NOBODY;
        else if (is_migrating)
            cluster->migrating_to[slot] = (uint8_t)other;
        else if (is_importing)
            cluster->importing_at[slot] = (uint8_t)place;
        else
            set_slot_owner(cluster, slot, other);
        model_reply_ok(call);
    }
}

static void reply_slot_keys(struct model_call *call)
{
    int64_t max;
    unsigned slot;
    if (!read_slot(call, 2, &slot) || !model_call_int(call, 3, &max))
        return;
    const struct model_key **found = calloc((size_t)max + 1, sizeof(const struct model_key *));
    if (!found)
        abort();
    size_t count = find_slot_keys(call->model, slot, found, (size_t)max);
    model_reply_array(call, count);
    for (size_t i = 0; i < count; i++)
        model_reply_bulk(call, found[i]->name);
    free((void *)found);
}

/* MIGRATE host port key database timeout [REPLACE]. */
static void run_migrate(struct model_call *call)
{
    const struct model_cluster *cluster = call->model->cluster;
    int64_t port;
    if (!cluster || !model_call_int(call, 2, &port))
        return;
    size_t to = find_node_at(cluster, call->args[1], port);
    struct model_key *key = model_key_find(call->model, call->args[3]);
    if (to == cluster->count || cluster->nodes[to].is_away) {
        model_reply_error(call, "IOERR error or timeout connecting to the client");
    } else if (!key) {
        model_reply_status(call, "NOKEY");
    } else if (call->count == 6 && model_key_find(cluster->nodes[to].model, call->args[3])) {
        model_reply_error(call, "ERR Target instance replied with error: BUSYKEY Target key name "
                                "already exists.");
    } else {
        move_key(call->model, cluster->nodes[to].model, key);
        model_reply_ok(call);
    }
}

static void run_cluster(struct model_call *call)
{
    struct slice word = call->args[1];
    unsigned slot;
    if (!call->model->cluster)
        model_reply_error(call, "ERR This instance has cluster support disabled");
    else if (model_slice_is_word(word, "SLOTS"))
        reply_slots(call);
    else if (model_slice_is_word(word, "SHARDS"))
        reply_shards(call);
    else if (model_slice_is_word(word, "INFO"))
        reply_cluster_info(call);
    else if (model_slice_is_word(word, "MYID"))
        model_reply_bulk(call, slice_of(call->model->cluster->nodes[call->model->place].id));
    else if (model_slice_is_word(word, "KEYSLOT") && call->count == 3)
        model_reply_int(call, redis_slot(call->args[2]));
    else if (model_slice_is_word(word, "COUNTKEYSINSLOT") && call->count == 3 &&
             read_slot(call, 2, &slot))
        model_reply_int(call, (int64_t)find_slot_keys(call->model, slot, NULL, SIZE_MAX));
    else if (model_slice_is_word(word, "GETKEYSINSLOT") && call->count == 4)
        reply_slot_keys(call);
    else if (model_slice_is_word(word, "SETSLOT") && call->count >= 4)
        set_slot(call);
    else
        model_reply_error(call, "ERR unknown subcommand or wrong number of arguments");
}

static void run_asking(struct model_call *call)
{
    if (!call->model->cluster) {
        model_reply_error(call, "ERR This instance has cluster support disabled");
        return;
    }
    call->session->is_asking = true;
    model_reply_ok(call);
}

const struct model_command model_cluster_commands[] = {
    {"CLUSTER", run_cluster, 2, 0, MODEL_NO_SCRIPT | MODEL_NO_KEYS | MODEL_WHILE_LOADING},
    {"ASKING", run_asking, 1, 1, MODEL_NO_SCRIPT | MODEL_NO_KEYS},
    {"MIGRATE", run_migrate, 6, 7, MODEL_WRITES | MODEL_NO_SCRIPT | MODEL_MOVES_KEYS},
    {0},
};
