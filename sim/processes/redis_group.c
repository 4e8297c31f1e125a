#include "processes/redis_group.h"

#include "base/container.h"
#include "network/link.h"
#include "processes/reshard_process.h"
#include "world/trace.h"

#include <stdio.h>
#include <stdlib.h>

enum { REDIS_PORT = 6379, WATCH_US = 500 * 1000 };

/* ---- who is there ---- */

bool redis_group_is_master(const struct redis_group *group, const struct redis_server *server)
{
    size_t place = (size_t)(server - group->servers);
    return !redis_group_is_cluster(group) || group->cluster.nodes[place].master == place;
}

struct redis_server *redis_group_master(struct redis_group *group, uint64_t number)
{
    struct redis_server *found = NULL;
    number %= redis_group_is_cluster(group) ? REDIS_GROUP_SHARDS : 1;
    for (size_t i = 0; i < group->count && !found; i++)
        if (redis_group_is_master(group, &group->servers[i]) && number-- == 0)
            found = &group->servers[i];
    return found;
}

struct redis_model *redis_group_find(struct redis_group *group, struct slice key)
{
    return redis_group_is_cluster(group) ? model_cluster_find(&group->cluster, key)
                                         : &group->servers[0].model;
}

/* Whether the other masters hear it. */
static bool is_heard(const struct redis_group *group, const struct redis_server *server)
{
    bool is_heard = false;
    if (!server->process || server->process->paused_until_us > kernel_now_us())
        return false;
    for (size_t i = 0; i < group->count; i++)
        is_heard |= &group->servers[i] != server &&
                    redis_group_is_master(group, &group->servers[i]) &&
                    link_is_up(server->machine, group->servers[i].machine) &&
                    link_is_up(group->servers[i].machine, server->machine);
    return is_heard;
}

static void on_redis_group_watch(struct event *event)
{
    struct redis_group *group = CONTAINER_OF(event, struct redis_group, watch);
    bool is_down = false;
    for (size_t i = 0; i < group->count; i++) {
        group->cluster.nodes[i].is_away = !group->servers[i].process;
        if (is_heard(group, &group->servers[i]) ||
            !redis_group_is_master(group, &group->servers[i]))
            group->seen_us[i] = kernel_now_us();
        is_down |= kernel_now_us() - group->seen_us[i] > REDIS_GROUP_TIMEOUT_US;
    }
    if (is_down != group->cluster.is_down)
        trace_line("the cluster is %s", is_down ? "down" : "up");
    group->cluster.is_down = is_down;
    kernel_set_event(event, WATCH_US);
}

/* ---- life ---- */

static void add_url_host(struct redis_group *group, const char *listen)
{
    size_t len = strlen(group->url);
    snprintf(group->url + len, sizeof(group->url) - len, "%s%s", group->cluster.count ? "," : "",
             listen);
}

static void add_server(struct redis_group *group, const char *name, uint32_t address,
                       redis_group_machine make_machine)
{
    struct redis_server *server = &group->servers[group->count++];
    char host[MODEL_CLUSTER_HOST_BYTES], listen[REDIS_LISTEN_BYTES];
    snprintf(host, sizeof(host), "%u.%u.%u.%u", address >> 24, address >> 16 & 255,
             address >> 8 & 255, address & 255);
    snprintf(listen, sizeof(listen), "%s:%d", host, REDIS_PORT);
    redis_server_init(server, make_machine(name, address), listen);
    if (group->cluster.count < REDIS_GROUP_SHARDS)
        add_url_host(group, listen);
    model_cluster_add(&group->cluster, &server->model, NULL, host, REDIS_PORT);
}

static void make_cluster(struct redis_group *group)
{
    for (size_t i = 0; i < REDIS_GROUP_SHARDS; i++) {
        group->cluster.nodes[REDIS_GROUP_SHARDS + i].master = i;
        model_cluster_assign(&group->cluster, (unsigned)(i * REDIS_SLOTS / REDIS_GROUP_SHARDS),
                             (unsigned)((i + 1) * REDIS_SLOTS / REDIS_GROUP_SHARDS - 1), i);
    }
    group->watch.run = on_redis_group_watch;
    kernel_set_event(&group->watch, WATCH_US);
}

void redis_group_init(struct redis_group *group, bool is_cluster, uint32_t first_address,
                      redis_group_machine make_machine)
{
    *group = (struct redis_group){0};
    model_cluster_init(&group->cluster);
    snprintf(group->url, sizeof(group->url), is_cluster ? "redis-cluster://" : "redis://");
    for (size_t i = 0; i < (is_cluster ? REDIS_GROUP_SERVERS_MAX : 1); i++) {
        char name[KERNEL_NAME_BYTES];
        snprintf(name, sizeof(name), is_cluster ? "redis-%zu" : "redis", i);
        add_server(group, name, first_address + (uint32_t)i, make_machine);
    }
    if (is_cluster)
        make_cluster(group);
    else
        group->servers[0].model.cluster = NULL;
    if (is_cluster)
        group->cli = make_machine("redis-cli", first_address + REDIS_GROUP_SERVERS_MAX);
}

void redis_group_start(struct redis_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        redis_server_start(&group->servers[i], true);
}

void redis_group_free(struct redis_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        redis_server_free(&group->servers[i]);
    free(group->moves);
    group->moves = NULL;
}

/* ---- a replica takes over ---- */

void redis_group_fail_over(struct redis_group *group, struct redis_server *master)
{
    size_t place = (size_t)(master - group->servers), replica = 0;
    if (!redis_group_is_cluster(group)) {
        redis_server_fail_over(master, master);
        return;
    }
    while (replica < group->count &&
           (replica == place || group->cluster.nodes[replica].master != place))
        replica++;
    if (replica == group->count || !master->has_replica)
        return;
    redis_server_fail_over(master, &group->servers[replica]);
    model_cluster_promote(&group->cluster, place, replica);
    group->seen_us[replica] = kernel_now_us();
    redis_server_start(master, true); /* it comes back as a replica */
}

/* ---- slots that move ---- */

static void on_resharded(struct process *process, void *arg)
{
    struct redis_group *group = arg;
    trace_line("resharded with status %d", process->status);
    group->resharding = NULL;
}

void redis_group_reshard(struct redis_group *group, uint64_t from, int64_t until_us)
{
    struct redis_server *source = redis_group_master(group, from);
    struct redis_server *target = redis_group_master(group, from + 1);
    if (group->resharding)
        return;
    free(group->moves);
    group->moves = reshard_plan_make(&group->cluster, (size_t)(source - group->servers),
                                     (size_t)(target - group->servers), until_us);
    group->resharding = process_start(group->cli, "redis-cli", reshard_run, group->moves);
    group->resharding->on_end = on_resharded;
    group->resharding->on_end_arg = group;
}

void redis_group_end_resharding(struct redis_group *group)
{
    if (group->resharding) {
        group->resharding->on_end = NULL;
        process_crash(&group->resharding);
    }
    model_cluster_fix(&group->cluster);
}
