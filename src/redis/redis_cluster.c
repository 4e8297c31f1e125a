#include "redis/redis_cluster.h"

#include "base/container.h"
#include "log/log.h"

#include <stdlib.h>

static void schedule_cluster_refresh(struct redis_cluster *cluster, int64_t delay_ms)
{
    int64_t now_ms = cluster->context.loop->clock.now_ms;
    loop_set_timer(cluster->context.loop, &cluster->timer, now_ms + delay_ms);
}

/* ---- nodes ---- */

static unsigned count_cluster_served_slots(const struct redis_cluster *cluster)
{
    unsigned served = 0;
    for (size_t i = 0; i < cluster->node_count; i++)
        if (redis_connection_problem(cluster->nodes[i]->connection) == REDIS_FINE)
            served += cluster->nodes[i]->slots;
    return served;
}

static void update_cluster_availability(struct redis_cluster *cluster)
{
    cluster->available =
        count_cluster_served_slots(cluster) >= REDIS_AVAILABLE_SLOTS_MIN && !cluster->down;
    cluster->on_changed(cluster);
}

/* Without a table, fetch it at once; with one, wait a moment for further changes. */
static void on_cluster_node_problem_changed(struct redis_connection *connection, void *arg)
{
    struct redis_cluster *cluster = ((struct redis_node *)arg)->cluster;
    bool fine = redis_connection_problem(connection) == REDIS_FINE;
    if (cluster->url->cluster && fine && count_cluster_served_slots(cluster) == 0 &&
        !cluster->refreshing)
        schedule_cluster_refresh(cluster, 0);
    else
        redis_cluster_refresh_soon(cluster);
    if (cluster->url->sentinel)
        redis_sentinel_hurry(&cluster->sentinel, !fine);
    update_cluster_availability(cluster);
    if (fine)
        cluster->on_server_returned(cluster);
}

static void on_cluster_node_push(struct redis_connection *connection, void *arg,
                                 const struct resp_value *push)
{
    struct redis_cluster *cluster = ((struct redis_node *)arg)->cluster;
    (void)connection;
    if (push->count == 2 && slice_is(push->items[0].text, "invalidate"))
        cluster->on_invalidated(cluster, &push->items[1]);
}

static const struct redis_connection_owner NODE_CONNECTION_OWNER = {
    .on_problem_changed = on_cluster_node_problem_changed,
    .on_push = on_cluster_node_push,
    .tracks = true};

static struct redis_node *find_cluster_node(const struct redis_cluster *cluster,
                                            const struct redis_address *address)
{
    for (size_t i = 0; i < cluster->node_count; i++)
        if (redis_address_equal(redis_connection_address(cluster->nodes[i]->connection), address))
            return cluster->nodes[i];
    return NULL;
}

/* Finds the node or makes it. Returns NULL when there are too many, or when out of memory. */
static struct redis_node *ensure_cluster_node(struct redis_cluster *cluster,
                                              const struct redis_address *address)
{
    struct redis_node *node = find_cluster_node(cluster, address);
    if (node || cluster->node_count == sizeof(cluster->nodes) / sizeof(cluster->nodes[0]))
        return node;
    node = calloc(1, sizeof(*node));
    if (!node)
        return NULL;
    node->cluster = cluster;
    node->connection =
        redis_connection_make(&cluster->context, address, &NODE_CONNECTION_OWNER, node);
    if (!node->connection) {
        free(node);
        return NULL;
    }
    redis_connection_set_quiet(node->connection, true);
    cluster->nodes[cluster->node_count++] = node;
    return node;
}

static void remove_cluster_node(struct redis_cluster *cluster, size_t index)
{
    struct redis_node *node = cluster->nodes[index];
    cluster->nodes[index] = cluster->nodes[--cluster->node_count];
    redis_connection_end(&node->connection);
    free(node);
}

static void set_cluster_slot_owner(struct redis_cluster *cluster, uint16_t slot,
                                   struct redis_node *node)
{
    cluster->moved |= cluster->owner[slot] != node;
    if (cluster->owner[slot])
        cluster->owner[slot]->slots--;
    cluster->owner[slot] = node;
    if (node)
        node->slots++;
}

/* ---- the table ---- */

static void apply_cluster_topology(struct redis_cluster *cluster,
                                   const struct redis_topology *topology)
{
    struct redis_node *masters[REDIS_NODES_MAX];
    for (size_t i = 0; i < topology->master_count; i++)
        masters[i] = ensure_cluster_node(cluster, &topology->masters[i]);
    for (size_t slot = 0; slot < REDIS_SLOTS; slot++) {
        uint16_t owner = topology->owner[slot];
        set_cluster_slot_owner(cluster, (uint16_t)slot,
                               owner == REDIS_NO_OWNER ? NULL : masters[owner]);
    }
    size_t bytes = topology->replica_count * sizeof(*cluster->replicas);
    free(cluster->replicas);
    cluster->replicas = bytes ? malloc(bytes) : NULL;
    cluster->replica_count = cluster->replicas ? topology->replica_count : 0;
    if (cluster->replicas)
        memcpy(cluster->replicas, topology->replicas, bytes);
    /* remove nodes without slots once they have answered all commands */
    for (size_t i = cluster->node_count; i-- > 0;)
        if (cluster->nodes[i]->slots == 0 &&
            redis_connection_pending(cluster->nodes[i]->connection) == 0)
            remove_cluster_node(cluster, i);
}

/* Whether the table is good until the next regular refresh. */
static bool is_cluster_table_complete(const struct redis_cluster *cluster)
{
    return count_cluster_served_slots(cluster) == REDIS_SLOTS && !cluster->down;
}

static void on_cluster_slots(void *arg, const struct resp_value *reply)
{
    struct redis_cluster *cluster = arg;
    cluster->refreshing = false;
    if (reply && reply->type == RESP_ERROR) {
        cluster->off = !resp_is_error(reply, "CLUSTERDOWN");
        log_warn("redis_cluster_refused", "error=%s", log_sentence(reply->text));
    } else if (reply) {
        cluster->off = false;
        struct redis_topology *topology = malloc(sizeof(*topology));
        if (topology && redis_topology_read(topology, reply, cluster->asked_at.host))
            apply_cluster_topology(cluster, topology);
        else
            log_warn("redis_cluster_table_unusable", "server=%s:%u", cluster->asked_at.host,
                     cluster->asked_at.port);
        free(topology);
    }
    schedule_cluster_refresh(cluster, is_cluster_table_complete(cluster) ? REDIS_REFRESH_MS
                                                                         : REDIS_REFRESH_HURRY_MS);
    update_cluster_availability(cluster);
}

/* CLUSTER INFO reports whether the cluster considers itself down. */
static void on_cluster_info(void *arg, const struct resp_value *reply)
{
    struct redis_cluster *cluster = arg;
    if (reply && reply->type == RESP_TEXT)
        cluster->down = !memmem(reply->text.data, reply->text.len, "cluster_state:ok", 16);
}

static bool request_cluster_table(struct redis_cluster *cluster,
                                  struct redis_connection *connection)
{
    static const struct slice info = SLICE("*2\r\n$7\r\nCLUSTER\r\n$4\r\nINFO\r\n");
    static const struct slice slots = SLICE("*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n");
    cluster->asked_at = *redis_connection_address(connection);
    return redis_connection_problem(connection) == REDIS_FINE &&
           redis_connection_send(connection, info, on_cluster_info, cluster) &&
           redis_connection_send(connection, slots, on_cluster_slots, cluster);
}

static void on_cluster_refresh_timer(struct wheel_timer *timer)
{
    struct redis_cluster *cluster = CONTAINER_OF(timer, struct redis_cluster, timer);
    if (cluster->refreshing)
        return;
    for (size_t i = 0; i < cluster->node_count; i++) {
        cluster->asked = (cluster->asked + 1) % cluster->node_count;
        if (request_cluster_table(cluster, cluster->nodes[cluster->asked]->connection)) {
            cluster->refreshing = true;
            return;
        }
    }
    /* no node answers: connect to all seeds and replicas */
    for (size_t i = 0; i < cluster->url->seed_count; i++)
        ensure_cluster_node(cluster, &cluster->url->seeds[i]);
    for (size_t i = 0; i < cluster->replica_count; i++)
        ensure_cluster_node(cluster, &cluster->replicas[i]);
    schedule_cluster_refresh(cluster, REDIS_REFRESH_HURRY_MS);
}

void redis_cluster_refresh_soon(struct redis_cluster *cluster)
{
    int64_t soon_ms = cluster->context.loop->clock.now_ms + REDIS_REFRESH_HURRY_MS;
    if (!cluster->url->cluster || cluster->refreshing)
        return;
    if (!wheel_is_set(&cluster->timer) || cluster->timer.at_ms > soon_ms)
        schedule_cluster_refresh(cluster, REDIS_REFRESH_HURRY_MS);
}

/* ---- Sentinel ---- */

/* The new master serves everything; commands that the old one has not answered are answered with NULL. */
static void on_cluster_master_named(struct redis_sentinel *sentinel,
                                    const struct redis_address *master)
{
    struct redis_cluster *cluster = CONTAINER_OF(sentinel, struct redis_cluster, sentinel);
    struct redis_node *node = ensure_cluster_node(cluster, master);
    if (!node) { /* out of memory: the next answer names it again */
        sentinel->named = false;
        return;
    }
    for (size_t slot = 0; slot < REDIS_SLOTS; slot++)
        set_cluster_slot_owner(cluster, (uint16_t)slot, node);
    for (size_t i = cluster->node_count; i-- > 0;)
        if (cluster->nodes[i] != node)
            remove_cluster_node(cluster, i);
    redis_sentinel_hurry(sentinel, redis_connection_problem(node->connection) != REDIS_FINE);
    update_cluster_availability(cluster);
}

/* ---- for the client ---- */

bool redis_cluster_open(struct redis_cluster *cluster)
{
    const struct redis_url *url = cluster->url;
    list_init(&cluster->context.ending);
    cluster->timer.fire = on_cluster_refresh_timer;
    if (url->sentinel) {
        cluster->sentinel.on_master = on_cluster_master_named;
        redis_sentinel_open(&cluster->sentinel, &cluster->context, url);
        return true;
    }
    for (size_t i = 0; i < url->seed_count; i++)
        if (!ensure_cluster_node(cluster, &url->seeds[i])) {
            redis_cluster_close(cluster);
            return false;
        }
    if (url->cluster)
        schedule_cluster_refresh(cluster, 1);
    else
        for (size_t slot = 0; slot < REDIS_SLOTS; slot++)
            set_cluster_slot_owner(cluster, (uint16_t)slot, cluster->nodes[0]);
    return true;
}

void redis_cluster_close(struct redis_cluster *cluster)
{
    loop_cancel_timer(cluster->context.loop, &cluster->timer);
    if (cluster->url->sentinel)
        redis_sentinel_close(&cluster->sentinel);
    for (size_t slot = 0; slot < REDIS_SLOTS; slot++)
        set_cluster_slot_owner(cluster, (uint16_t)slot, NULL);
    while (cluster->node_count > 0)
        remove_cluster_node(cluster, cluster->node_count - 1);
    loop_cancel_timer(cluster->context.loop, &cluster->timer);
    redis_connection_context_reap(&cluster->context);
    free(cluster->replicas);
    cluster->replicas = NULL;
}

struct redis_connection *redis_cluster_connection(const struct redis_cluster *cluster,
                                                  uint16_t slot)
{
    return cluster->owner[slot] ? cluster->owner[slot]->connection : NULL;
}

struct redis_connection *redis_cluster_any_connection(struct redis_cluster *cluster)
{
    struct redis_connection *any = NULL;
    for (size_t i = 0; i < cluster->node_count; i++) {
        const struct redis_node *node = cluster->nodes[i];
        if (node->slots > 0 && redis_connection_problem(node->connection) == REDIS_FINE)
            return node->connection;
        if (node->slots > 0)
            any = node->connection;
    }
    return any;
}

struct redis_connection *redis_cluster_connection_to(struct redis_cluster *cluster,
                                                     const struct redis_address *address)
{
    struct redis_node *node = ensure_cluster_node(cluster, address);
    return node ? node->connection : NULL;
}

struct redis_connection *redis_cluster_slot_moved(struct redis_cluster *cluster, uint16_t slot,
                                                  const struct redis_address *address)
{
    struct redis_node *node = ensure_cluster_node(cluster, address);
    if (node)
        set_cluster_slot_owner(cluster, slot, node);
    redis_cluster_refresh_soon(cluster);
    return node ? node->connection : NULL;
}

bool redis_cluster_serves(const struct redis_cluster *cluster, const struct redis_address *address)
{
    const struct redis_node *node = find_cluster_node(cluster, address);
    return node && node->slots > 0;
}

/* A single server is never down: only fetching a table would end that state. */
void redis_cluster_report_down(struct redis_cluster *cluster)
{
    if (cluster->down || !cluster->url->cluster)
        return;
    cluster->down = true;
    redis_cluster_refresh_soon(cluster);
    update_cluster_availability(cluster);
}

enum redis_problem redis_cluster_problem(const struct redis_cluster *cluster)
{
    enum redis_problem problem = REDIS_FINE;
    if (cluster->off)
        return REDIS_CLUSTER_OFF;
    if (cluster->url->sentinel && cluster->node_count == 0)
        return cluster->sentinel.problem;
    for (size_t i = 0; i < cluster->node_count && problem == REDIS_FINE; i++)
        problem = redis_connection_problem(cluster->nodes[i]->connection);
    if (problem == REDIS_FINE && (cluster->down || !is_cluster_table_complete(cluster)))
        problem = REDIS_CLUSTER_DOWN;
    return problem;
}
