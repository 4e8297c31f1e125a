/*
 * The Redis of a simulated fleet: one server, or a cluster of REDIS_GROUP_SHARDS masters with a replica each.
 *
 * A replica has the master's data until the master falls behind in telling it (redis_server_fall_behind()). What the master was
 * told from then on is lost when the replica takes its place, at the replica's address (redis_group_fail_over()).
 *
 * When a master is away for REDIS_GROUP_TIMEOUT_US, the cluster reports itself down, as it does by default
 * (cluster-require-full-coverage), until the master is there again or was replaced.
 */
#ifndef ROLLCALL_SIM_PROCESSES_REDIS_GROUP_H
#define ROLLCALL_SIM_PROCESSES_REDIS_GROUP_H

#include "processes/redis_process.h"
#include "redis_model/model_cluster.h"

enum {
    REDIS_GROUP_SHARDS = 3,
    REDIS_GROUP_SERVERS_MAX = 2 * REDIS_GROUP_SHARDS,
    REDIS_GROUP_TIMEOUT_US = 5 * 1000 * 1000,
    REDIS_GROUP_URL_BYTES = 80,
};

struct redis_group {
    struct redis_server servers[REDIS_GROUP_SERVERS_MAX];
    size_t count;
    struct model_cluster cluster; /* of one server: not used */
    char url[REDIS_GROUP_URL_BYTES];
    struct event watch; /* whether masters are away */
    int64_t seen_us[REDIS_GROUP_SERVERS_MAX];
    struct process *resharding; /* NULL: no slots move */
    struct machine *cli;        /* from which slots are moved */
    struct reshard_plan *moves; /* of the process */
};

/* The machines' addresses follow `first_address`; `make_machine` makes them. */
typedef struct machine *(*redis_group_machine)(const char *name, uint32_t address);
void redis_group_init(struct redis_group *group, bool is_cluster, uint32_t first_address,
                      redis_group_machine make_machine);
void redis_group_start(struct redis_group *group);
void redis_group_free(struct redis_group *group);

static inline bool redis_group_is_cluster(const struct redis_group *group)
{
    return group->count > 1;
}

bool redis_group_is_master(const struct redis_group *group, const struct redis_server *server);

/* The masters are numbered from 0, and any number is one of them. */
struct redis_server *redis_group_master(struct redis_group *group, uint64_t number);

/* The model that has the key, if it exists; NULL: no server has its slot. */
struct redis_model *redis_group_find(struct redis_group *group, struct slice key);

void redis_group_fail_over(struct redis_group *group, struct redis_server *master);

/* Some of the slots of one master, with the keys in them, move to the next one, until `until_us` at most. Only in a cluster. */
void redis_group_reshard(struct redis_group *group, uint64_t from, int64_t until_us);

/* What is half done is finished. */
void redis_group_end_resharding(struct redis_group *group);

#endif
