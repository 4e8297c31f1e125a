/*
 * What `redis-cli --cluster reshard` does, as a simulated process: slots move from one master to another, one after another and
 * key by key, by the commands that the tool sends.
 */
#ifndef ROLLCALL_SIM_PROCESSES_RESHARD_PROCESS_H
#define ROLLCALL_SIM_PROCESSES_RESHARD_PROCESS_H

#include "redis_model/model_cluster.h"

enum { RESHARD_SLOTS_MAX = 64 };

struct reshard_plan {
    struct model_node from;
    struct model_node to;
    unsigned slots[RESHARD_SLOTS_MAX]; /* those that have keys or subscribers */
    size_t count;
    int64_t until_us;
    unsigned step_ms_max; /* between two keys: large keys, and a slow link, take long */
};

/* Draws slots of the master. The caller frees the plan. */
struct reshard_plan *reshard_plan_make(const struct model_cluster *cluster, size_t from, size_t to,
                                       int64_t until_us);

/* The main of the process; `arg` is a plan. Returns 0 when all slots have moved. */
int reshard_run(void *arg);

#endif
