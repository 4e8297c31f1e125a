#include "plan/plan.h"

#include <math.h>
#include <string.h>

static const double SECONDS_PER_DAY = 86400;
static const double MESSAGES_PER_USER_AND_DAY = 40;
static const double KNOWN_PER_ONLINE = 10;
static const double GIB = 1024.0 * 1024 * 1024;
static const double US = 1e-6;
static const double BITS_PER_BYTE = 8;

static const struct plan_profile {
    const char *name;
    double heartbeat_seconds;
    double window_seconds;
} PROFILES[] = {{"realtime", 5, 15}, {"standard", 30, 45}, {"relaxed", 30, 90}};

static const struct resource_row {
    const char *name;
    const char *text;
} RESOURCES[PLAN_RESOURCE_COUNT] = {
    [PLAN_EDGE_CONNECTIONS] = {"edge_connections", "connections of an edge"},
    [PLAN_EDGE_PROCESSOR] = {"edge_processor", "processor of the edges"},
    [PLAN_EDGE_MEMORY] = {"edge_memory", "memory of the edges"},
    [PLAN_EDGE_NETWORK] = {"edge_network", "network of the edges"},
    [PLAN_REDIS_PROCESSOR] = {"redis_processor", "processor of Redis"},
    [PLAN_REDIS_MEMORY] = {"redis_memory", "memory of Redis"},
    [PLAN_REDIS_CLIENTS] = {"redis_clients", "connections to a Redis node"},
    [PLAN_REDIS_NETWORK] = {"redis_network", "network of Redis"},
    [PLAN_REDIS_STORM] = {"redis_storm", "processor of Redis when an edge is lost"},
    [PLAN_AGGREGATOR_PROCESSOR] = {"aggregator_processor", "processor of the aggregators"},
};

const char *plan_resource_text(enum plan_resource resource)
{
    return RESOURCES[resource].text;
}

const char *plan_resource_name(enum plan_resource resource)
{
    return RESOURCES[resource].name;
}

bool plan_load_set_profile(struct plan_load *load, const char *name)
{
    for (size_t i = 0; i < sizeof(PROFILES) / sizeof(PROFILES[0]); i++)
        if (strcmp(PROFILES[i].name, name) == 0) {
            load->profile = PROFILES[i].name;
            load->heartbeat_seconds = PROFILES[i].heartbeat_seconds;
            load->window_seconds = PROFILES[i].window_seconds;
            return true;
        }
    return false;
}

void plan_load_init(struct plan_load *load)
{
    *load = (struct plan_load){
        .devices = 1.5,
        .sessions_per_day = 10,
        .contacts = 20,
        .messages_per_second = -1,
        .recipients = 2,
        .edge_connections_max = 100000,
        .edge_cores = PLAN_EDGE_CORES,
        .edge_memory_bytes = 16 * GIB,
        .redis_memory_bytes = 16 * GIB,
        .redis_clients_max = 10000,
        .aggregator_cores = PLAN_EDGE_CORES,
        .core_share = 0.5,
        .network_bits_per_second = 10e9,
        .storm_seconds = 30,
    };
    plan_load_set_profile(load, "standard");
}

/* ---- rates ---- */

static void plan_rates(struct plan *plan, const struct plan_load *load)
{
    plan->connections = load->users * load->devices;
    plan->heartbeats_per_second = plan->connections / load->heartbeat_seconds;
    plan->renewals_per_second = plan->connections / (load->window_seconds * PLAN_RENEWAL_SHARE);
    plan->connects_per_second = plan->connections * load->sessions_per_day / SECONDS_PER_DAY;
    plan->messages_per_second = load->messages_per_second >= 0
                                    ? load->messages_per_second
                                    : load->users * MESSAGES_PER_USER_AND_DAY / SECONDS_PER_DAY;
    plan->deliveries_per_second = plan->messages_per_second * load->recipients;
    /* A user's first connection and the end of the last one change the presence. */
    double changes = 2 * plan->connects_per_second / fmax(1, load->devices);
    plan->notices_per_second = changes * load->contacts;
}

/* ---- edges ---- */

static void plan_edge_costs(struct plan *plan, const struct plan_costs *costs, double processes)
{
    double pushed = plan->deliveries_per_second + plan->notices_per_second;
    plan->edge_cores_used =
        US * (plan->heartbeats_per_second * costs->edge_us_per_heartbeat +
              plan->renewals_per_second * costs->edge_us_per_renewal +
              plan->connects_per_second * (costs->edge_us_per_connect + costs->edge_us_per_close) +
              plan->messages_per_second * costs->edge_us_per_message +
              pushed * costs->edge_us_per_delivery + processes * costs->edge_idle_us_per_second);
    plan->edge_bytes_used = plan->connections * costs->edge_bytes_per_connection +
                            processes * costs->edge_bytes_per_process;
    plan->edge_kernel_bytes = plan->connections * costs->kernel_bytes_per_connection;
    plan->client_bytes_per_second =
        plan->heartbeats_per_second * costs->client_bytes_per_heartbeat +
        plan->connects_per_second * costs->client_bytes_per_connect +
        plan->messages_per_second * costs->client_bytes_per_message +
        pushed * costs->client_bytes_per_delivery;
}

/* Sets each resource's demand in machines, counts the machines, and makes shares of the demands. */
static double plan_count_machines(struct plan *plan, const enum plan_resource *resources,
                                  size_t count, double fixed, enum plan_resource *out_reason)
{
    *out_reason = resources[0];
    for (size_t i = 1; i < count; i++)
        if (plan->use[resources[i]] > plan->use[*out_reason])
            *out_reason = resources[i];
    double machines = fixed > 0 ? fixed : fmax(1, ceil(plan->use[*out_reason]));
    for (size_t i = 0; i < count; i++)
        plan->use[resources[i]] /= machines;
    return machines;
}

static void plan_edges(struct plan *plan, const struct plan_load *load,
                       const struct plan_costs *costs)
{
    static const enum plan_resource EDGE[] = {PLAN_EDGE_CONNECTIONS, PLAN_EDGE_PROCESSOR,
                                              PLAN_EDGE_MEMORY, PLAN_EDGE_NETWORK};
    double edges = load->edges > 0 ? load->edges
                                   : fmax(1, ceil(plan->connections / load->edge_connections_max));
    plan->edge_workers = load->edge_cores;
    plan_edge_costs(plan, costs, edges * plan->edge_workers);
    plan->use[PLAN_EDGE_CONNECTIONS] = plan->connections / load->edge_connections_max;
    plan->use[PLAN_EDGE_PROCESSOR] = plan->edge_cores_used / (load->edge_cores * load->core_share);
    plan->use[PLAN_EDGE_MEMORY] =
        (plan->edge_bytes_used + plan->edge_kernel_bytes) / load->edge_memory_bytes;
    plan->use[PLAN_EDGE_NETWORK] =
        plan->client_bytes_per_second * BITS_PER_BYTE / (load->network_bits_per_second / 2);
    plan->edges = plan_count_machines(plan, EDGE, sizeof(EDGE) / sizeof(EDGE[0]), load->edges,
                                      &plan->edge_reason);
    if (plan->edges > edges) /* another resource asks for more of them */
        plan_edge_costs(plan, costs, plan->edges * plan->edge_workers);
}

/* ---- Redis ---- */

static double redis_memory(const struct plan_load *load, const struct plan_costs *costs)
{
    double known = load->users_known > 0 ? load->users_known : load->users * KNOWN_PER_ONLINE;
    return load->users * (costs->redis_bytes_per_user +
                          fmax(0, load->devices - 1) * costs->redis_bytes_per_further_device) +
           fmax(0, known - load->users) * costs->redis_bytes_per_absent_user;
}

static void plan_redis_costs(struct plan *plan, const struct plan_load *load,
                             const struct plan_costs *costs, bool cluster)
{
    double renewal = cluster ? costs->redis_cluster_us_per_renewal : costs->redis_us_per_renewal;
    double connect = cluster ? costs->redis_cluster_us_per_connect : costs->redis_us_per_connect;
    double pushed = plan->deliveries_per_second + plan->notices_per_second;
    double workers = plan->edges * plan->edge_workers;
    plan->redis_cores_used =
        US * (plan->renewals_per_second * renewal +
              plan->connects_per_second * (connect + costs->redis_us_per_close) +
              plan->messages_per_second * costs->redis_us_per_message +
              pushed * costs->redis_us_per_delivery +
              workers * costs->redis_idle_us_per_edge_and_second);
    plan->redis_bytes_used = redis_memory(load, costs);
    plan->redis_bytes_per_second =
        plan->renewals_per_second * costs->redis_traffic_bytes_per_renewal +
        plan->connects_per_second * costs->redis_traffic_bytes_per_connect +
        pushed * costs->redis_traffic_bytes_per_delivery +
        workers * costs->redis_traffic_idle_bytes_per_edge_and_second;
    plan->storm_connects_per_second = plan->connections / plan->edges / load->storm_seconds;
    plan->use[PLAN_REDIS_PROCESSOR] = plan->redis_cores_used / load->core_share;
    plan->use[PLAN_REDIS_MEMORY] = plan->redis_bytes_used / load->redis_memory_bytes;
    plan->use[PLAN_REDIS_NETWORK] =
        plan->redis_bytes_per_second * BITS_PER_BYTE / load->network_bits_per_second;
    /* In a storm Redis may use all of its core. */
    plan->use[PLAN_REDIS_STORM] =
        plan->redis_cores_used + US * plan->storm_connects_per_second * connect;
}

static double plan_redis_count(struct plan *plan, const struct plan_load *load,
                               const struct plan_costs *costs, bool cluster)
{
    static const enum plan_resource REDIS[] = {PLAN_REDIS_PROCESSOR, PLAN_REDIS_MEMORY,
                                               PLAN_REDIS_NETWORK, PLAN_REDIS_STORM};
    plan_redis_costs(plan, load, costs, cluster);
    return plan_count_machines(plan, REDIS, sizeof(REDIS) / sizeof(REDIS[0]), 0,
                               &plan->redis_reason);
}

static void plan_redis(struct plan *plan, const struct plan_load *load,
                       const struct plan_costs *costs)
{
    plan->redis_nodes = plan_redis_count(plan, load, costs, false);
    if (plan->redis_nodes > 1)
        plan->redis_nodes = fmax(3, plan_redis_count(plan, load, costs, true));
    plan->redis_clients_per_node =
        plan->edges * plan->edge_workers * costs->redis_connections_per_worker;
    plan->use[PLAN_REDIS_CLIENTS] = plan->redis_clients_per_node / load->redis_clients_max;
}

/* ---- aggregators ---- */

/* An aggregator does for Redis what an edge does without one, so a renewal costs it what it costs an edge. */
static void plan_aggregators(struct plan *plan, const struct plan_load *load,
                             const struct plan_costs *costs)
{
    if (plan->use[PLAN_REDIS_CLIENTS] <= 1)
        return;
    double pushed = plan->deliveries_per_second + plan->notices_per_second;
    plan->aggregator_cores_used =
        US * (plan->renewals_per_second * costs->edge_us_per_renewal +
              plan->connects_per_second * (costs->edge_us_per_renewal + costs->edge_us_per_close) +
              pushed * costs->edge_us_per_delivery / 2);
    double most = floor(load->redis_clients_max /
                        (load->aggregator_cores * costs->redis_connections_per_worker));
    double machines = plan->aggregator_cores_used / (load->aggregator_cores * load->core_share);
    plan->aggregators = fmin(fmax(2, ceil(machines)), most);
    plan->use[PLAN_AGGREGATOR_PROCESSOR] = machines / plan->aggregators;
    plan->redis_clients_per_node =
        plan->aggregators * load->aggregator_cores * costs->redis_connections_per_worker;
    plan->use[PLAN_REDIS_CLIENTS] = plan->redis_clients_per_node / load->redis_clients_max;
}

void plan_compute(struct plan *plan, const struct plan_load *load, const struct plan_costs *costs)
{
    memset(plan, 0, sizeof(*plan));
    plan_rates(plan, load);
    plan_edges(plan, load, costs);
    plan_redis(plan, load, costs);
    plan_aggregators(plan, load, costs);
    plan->ledger_cores_used = US * (plan->connects_per_second * costs->ledger_us_per_connect +
                                    plan->messages_per_second * costs->ledger_us_per_message);
    for (int i = 0; i < PLAN_RESOURCE_COUNT; i++)
        if (plan->use[i] > plan->use[plan->bottleneck])
            plan->bottleneck = (enum plan_resource)i;
}
