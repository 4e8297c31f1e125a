#include "redis/redis_cluster.h"

#include "base/container.h"
#include "log/log.h"

#include <stdlib.h>

static void look_again(struct redis_cluster *cluster, int64_t delay_ms)
{
    int64_t now_ms = cluster->links.loop->clock.now_ms;
    loop_set_timer(cluster->links.loop, &cluster->timer, now_ms + delay_ms);
}

/* ---- nodes ---- */

/* How many slots have a server that is fine. */
static unsigned slots_served(const struct redis_cluster *cluster)
{
    unsigned served = 0;
    for (size_t i = 0; i < cluster->node_count; i++)
        if (redis_connection_problem(cluster->nodes[i]->link) == REDIS_FINE)
            served += cluster->nodes[i]->slots;
    return served;
}

static void judge(struct redis_cluster *cluster)
{
    cluster->available = slots_served(cluster) >= REDIS_AVAILABLE_SLOTS_MIN && !cluster->down;
    cluster->on_changed(cluster);
}

/* Without a table there is nothing to wait for; with one, news are gathered for a moment. */
static void link_changed(struct redis_connection *link, void *arg)
{
    struct redis_cluster *cluster = ((struct redis_node *)arg)->cluster;
    bool fine = redis_connection_problem(link) == REDIS_FINE;
    if (cluster->url->cluster && fine && slots_served(cluster) == 0 && !cluster->refreshing)
        look_again(cluster, 0);
    else
        redis_cluster_refresh_soon(cluster);
    judge(cluster);
}

static const struct redis_connection_owner link_owner = {.on_problem_changed = link_changed};

static struct redis_node *find_node(const struct redis_cluster *cluster,
                                    const struct redis_endpoint *endpoint)
{
    for (size_t i = 0; i < cluster->node_count; i++)
        if (redis_endpoint_equal(redis_connection_endpoint(cluster->nodes[i]->link), endpoint))
            return cluster->nodes[i];
    return NULL;
}

/* NULL when there are too many, or memory is short. */
static struct redis_node *need_node(struct redis_cluster *cluster,
                                    const struct redis_endpoint *endpoint)
{
    struct redis_node *node = find_node(cluster, endpoint);
    if (node || cluster->node_count == sizeof(cluster->nodes) / sizeof(cluster->nodes[0]))
        return node;
    node = calloc(1, sizeof(*node));
    if (!node)
        return NULL;
    node->cluster = cluster;
    node->link = redis_connection_make(&cluster->links, endpoint, &link_owner, node);
    if (!node->link) {
        free(node);
        return NULL;
    }
    cluster->nodes[cluster->node_count++] = node;
    return node;
}

static void remove_node(struct redis_cluster *cluster, size_t index)
{
    struct redis_node *node = cluster->nodes[index];
    cluster->nodes[index] = cluster->nodes[--cluster->node_count];
    redis_connection_end(&node->link);
    free(node);
}

static void set_owner(struct redis_cluster *cluster, uint16_t slot, struct redis_node *node)
{
    cluster->moved |= cluster->owner[slot] != node;
    if (cluster->owner[slot])
        cluster->owner[slot]->slots--;
    cluster->owner[slot] = node;
    if (node)
        node->slots++;
}

/* ---- the table ---- */

/* Those that serve nothing any more go, once they have answered all they were asked. */
static void remove_strangers(struct redis_cluster *cluster)
{
    for (size_t i = cluster->node_count; i-- > 0;)
        if (cluster->nodes[i]->slots == 0 && redis_connection_pending(cluster->nodes[i]->link) == 0)
            remove_node(cluster, i);
}

static void remember_replicas(struct redis_cluster *cluster, const struct redis_topology *topology)
{
    size_t bytes = topology->replica_count * sizeof(*cluster->replicas);
    struct redis_endpoint *replicas = bytes ? malloc(bytes) : NULL;
    if (replicas)
        memcpy(replicas, topology->replicas, bytes);
    free(cluster->replicas);
    cluster->replicas = replicas;
    cluster->replica_count = replicas ? topology->replica_count : 0;
}

static void apply(struct redis_cluster *cluster, const struct redis_topology *topology)
{
    struct redis_node *masters[REDIS_NODES_MAX];
    for (size_t i = 0; i < topology->master_count; i++)
        masters[i] = need_node(cluster, &topology->masters[i]);
    for (size_t slot = 0; slot < REDIS_SLOTS; slot++) {
        uint16_t owner = topology->owner[slot];
        set_owner(cluster, (uint16_t)slot, owner == REDIS_NO_OWNER ? NULL : masters[owner]);
    }
    remember_replicas(cluster, topology);
    remove_strangers(cluster);
}

/* Whether the table can be trusted until the next regular look. */
static bool is_whole(const struct redis_cluster *cluster)
{
    return slots_served(cluster) == REDIS_SLOTS && !cluster->down;
}

static void take_table(struct redis_cluster *cluster, const struct resp_value *reply)
{
    struct redis_topology *topology = malloc(sizeof(*topology));
    if (topology && redis_topology_read(topology, reply, cluster->asked_at.host))
        apply(cluster, topology);
    else
        log_warn("redis_cluster_table_unusable", "server=%s:%u", cluster->asked_at.host,
                 cluster->asked_at.port);
    free(topology);
}

static void take_slots(void *arg, const struct resp_value *reply)
{
    struct redis_cluster *cluster = arg;
    cluster->refreshing = false;
    if (reply && reply->type == RESP_ERROR) {
        cluster->off = !resp_is_error(reply, "CLUSTERDOWN");
        log_warn("redis_cluster_refused", "error=%s", log_sentence(reply->text));
    } else if (reply) {
        cluster->off = false;
        take_table(cluster, reply);
    }
    look_again(cluster, is_whole(cluster) ? REDIS_REFRESH_MS : REDIS_REFRESH_HURRY_MS);
    judge(cluster);
}

/* CLUSTER INFO says whether the cluster calls itself down. */
static void take_state(void *arg, const struct resp_value *reply)
{
    struct redis_cluster *cluster = arg;
    if (reply && reply->type == RESP_TEXT)
        cluster->down = !memmem(reply->text.data, reply->text.len, "cluster_state:ok", 16);
}

/* Nobody answers: whoever was heard of may know more. */
static void call_for_help(struct redis_cluster *cluster)
{
    for (size_t i = 0; i < cluster->url->seed_count; i++)
        need_node(cluster, &cluster->url->seeds[i]);
    for (size_t i = 0; i < cluster->replica_count; i++)
        need_node(cluster, &cluster->replicas[i]);
}

static bool ask_one(struct redis_cluster *cluster, struct redis_connection *link)
{
    static const struct slice info = SLICE("*2\r\n$7\r\nCLUSTER\r\n$4\r\nINFO\r\n");
    static const struct slice slots = SLICE("*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n");
    cluster->asked_at = *redis_connection_endpoint(link);
    return redis_connection_problem(link) == REDIS_FINE &&
           redis_connection_send(link, info, take_state, cluster) &&
           redis_connection_send(link, slots, take_slots, cluster);
}

static void look_around(struct redis_cluster *cluster)
{
    if (cluster->refreshing)
        return;
    for (size_t i = 0; i < cluster->node_count; i++) {
        cluster->asked = (cluster->asked + 1) % cluster->node_count;
        if (ask_one(cluster, cluster->nodes[cluster->asked]->link)) {
            cluster->refreshing = true;
            return;
        }
    }
    call_for_help(cluster);
    look_again(cluster, REDIS_REFRESH_HURRY_MS);
}

static void fire(struct wheel_timer *timer)
{
    look_around(CONTAINER_OF(timer, struct redis_cluster, timer));
}

void redis_cluster_refresh_soon(struct redis_cluster *cluster)
{
    int64_t soon_ms = cluster->links.loop->clock.now_ms + REDIS_REFRESH_HURRY_MS;
    if (!cluster->url->cluster || cluster->refreshing)
        return;
    if (!wheel_is_set(&cluster->timer) || cluster->timer.at_ms > soon_ms)
        look_again(cluster, REDIS_REFRESH_HURRY_MS);
}

/* ---- what the client calls ---- */

bool redis_cluster_open(struct redis_cluster *cluster)
{
    const struct redis_url *url = cluster->url;
    list_init(&cluster->links.ending);
    cluster->timer.fire = fire;
    for (size_t i = 0; i < url->seed_count; i++)
        if (!need_node(cluster, &url->seeds[i])) {
            redis_cluster_close(cluster);
            return false;
        }
    if (url->cluster)
        look_again(cluster, 1);
    else
        for (size_t slot = 0; slot < REDIS_SLOTS; slot++)
            set_owner(cluster, (uint16_t)slot, cluster->nodes[0]);
    return true;
}

void redis_cluster_close(struct redis_cluster *cluster)
{
    loop_cancel_timer(cluster->links.loop, &cluster->timer);
    for (size_t slot = 0; slot < REDIS_SLOTS; slot++)
        set_owner(cluster, (uint16_t)slot, NULL);
    while (cluster->node_count > 0)
        remove_node(cluster, cluster->node_count - 1);
    loop_cancel_timer(cluster->links.loop, &cluster->timer);
    redis_connection_context_reap(&cluster->links);
    free(cluster->replicas);
    cluster->replicas = NULL;
}

struct redis_connection *redis_cluster_connection(const struct redis_cluster *cluster,
                                                  uint16_t slot)
{
    return cluster->owner[slot] ? cluster->owner[slot]->link : NULL;
}

struct redis_connection *redis_cluster_any_connection(struct redis_cluster *cluster)
{
    struct redis_connection *any = NULL;
    for (size_t i = 0; i < cluster->node_count; i++) {
        const struct redis_node *node = cluster->nodes[i];
        if (node->slots > 0 && redis_connection_problem(node->link) == REDIS_FINE)
            return node->link;
        if (node->slots > 0)
            any = node->link;
    }
    return any;
}

struct redis_connection *redis_cluster_connection_to(struct redis_cluster *cluster,
                                                     const struct redis_endpoint *endpoint)
{
    struct redis_node *node = need_node(cluster, endpoint);
    return node ? node->link : NULL;
}

struct redis_connection *redis_cluster_slot_moved(struct redis_cluster *cluster, uint16_t slot,
                                                  const struct redis_endpoint *endpoint)
{
    struct redis_node *node = need_node(cluster, endpoint);
    if (node)
        set_owner(cluster, slot, node);
    redis_cluster_refresh_soon(cluster);
    return node ? node->link : NULL;
}

bool redis_cluster_serves(const struct redis_cluster *cluster,
                          const struct redis_endpoint *endpoint)
{
    const struct redis_node *node = find_node(cluster, endpoint);
    return node && node->slots > 0;
}

/* A single server is asked for no table, which would say that it is over. */
void redis_cluster_report_down(struct redis_cluster *cluster)
{
    if (cluster->down || !cluster->url->cluster)
        return;
    cluster->down = true;
    redis_cluster_refresh_soon(cluster);
    judge(cluster);
}

enum redis_problem redis_cluster_problem(const struct redis_cluster *cluster)
{
    enum redis_problem problem = REDIS_FINE;
    if (cluster->off)
        return REDIS_CLUSTER_OFF;
    for (size_t i = 0; i < cluster->node_count && problem == REDIS_FINE; i++)
        problem = redis_connection_problem(cluster->nodes[i]->link);
    if (problem == REDIS_FINE && (cluster->down || !is_whole(cluster)))
        problem = REDIS_CLUSTER_DOWN;
    return problem;
}
