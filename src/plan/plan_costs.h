/*
 * What things cost, as measured: the figures that `rollcall plan` multiplies.
 *
 * deploy/costs.json holds them and is compiled in; `bench/costs` measures them again and writes the file. Every
 * name ends with its unit; "us" is microseconds of one core, user and system time together.
 *
 * Plain data without ownership; any thread.
 */
#ifndef ROLLCALL_PLAN_COSTS_H
#define ROLLCALL_PLAN_COSTS_H

#include <stdbool.h>
#include <stddef.h>

/* An edge is a process of `rollcall serve`. */
#define PLAN_COST_LIST(ROW)                                                                        \
    ROW(edge_us_per_heartbeat)                                                                     \
    ROW(edge_us_per_renewal)                                                                       \
    ROW(edge_us_per_connect)                                                                       \
    ROW(edge_us_per_close)                                                                         \
    ROW(edge_us_per_message)                                                                       \
    ROW(edge_us_per_delivery)                                                                      \
    ROW(edge_idle_us_per_second)                                                                   \
    ROW(edge_bytes_per_connection)                                                                 \
    ROW(edge_bytes_per_process)                                                                    \
    ROW(kernel_bytes_per_connection)                                                               \
    ROW(client_bytes_per_heartbeat)                                                                \
    ROW(client_bytes_per_connect)                                                                  \
    ROW(client_bytes_per_message)                                                                  \
    ROW(client_bytes_per_delivery)                                                                 \
    ROW(redis_us_per_renewal)                                                                      \
    ROW(redis_us_per_connect)                                                                      \
    ROW(redis_us_per_close)                                                                        \
    ROW(redis_us_per_message)                                                                      \
    ROW(redis_us_per_delivery)                                                                     \
    ROW(redis_idle_us_per_edge_and_second)                                                         \
    ROW(redis_cluster_us_per_renewal)                                                              \
    ROW(redis_cluster_us_per_connect)                                                              \
    ROW(redis_bytes_per_user)                                                                      \
    ROW(redis_bytes_per_further_device)                                                            \
    ROW(redis_bytes_per_absent_user)                                                               \
    ROW(redis_traffic_bytes_per_renewal)                                                           \
    ROW(redis_traffic_bytes_per_connect)                                                           \
    ROW(redis_traffic_bytes_per_delivery)                                                          \
    ROW(redis_traffic_idle_bytes_per_edge_and_second)                                              \
    ROW(redis_connections_per_worker)                                                              \
    ROW(ledger_us_per_connect)                                                                     \
    ROW(ledger_us_per_message)

struct plan_costs {
#define PLAN_COST_FIELD(name) double name;
    PLAN_COST_LIST(PLAN_COST_FIELD)
#undef PLAN_COST_FIELD
};

enum { PLAN_COSTS_BYTES_MAX = 65536, PLAN_COSTS_ERROR_MAX = 160 };

/* The content of deploy/costs.json. */
extern const char PLAN_COSTS_TEXT[];

/* Reads `text`, an object with each name of the list once, under "costs"; other members of the outer object are
 * comments. On failure returns false and explains in `error`. */
bool plan_costs_parse(struct plan_costs *costs, const char *text, size_t count,
                      char error[PLAN_COSTS_ERROR_MAX]);

/* The figures that are compiled in. */
void plan_costs_builtin(struct plan_costs *costs);

#endif
