#include "plan/plan_print.h"

#include <stdio.h>

enum { PLAN_NUMBER_BYTES_MAX = 48 };

static const double GIB = 1024.0 * 1024 * 1024;

/* ---- text ---- */

/* 12,345 from 1,000 on; one decimal below ten. */
static const char *plan_number(double value, char text[PLAN_NUMBER_BYTES_MAX])
{
    char digits[PLAN_NUMBER_BYTES_MAX];
    int count = snprintf(digits, sizeof(digits), value > 0 && value < 10 ? "%.1f" : "%.0f", value);
    int whole = value > 0 && value < 10 ? count - 2 : count;
    char *at = text;
    for (int i = 0; i < count && at < text + PLAN_NUMBER_BYTES_MAX - 2; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return text;
}

static void plan_print_row(struct buffer *out, const char *name, double value, const char *unit)
{
    char number[PLAN_NUMBER_BYTES_MAX];
    buffer_printf(out, "  %-30s %16s %s\n", name, plan_number(value, number), unit);
}

static void plan_print_load(const struct plan *plan, const struct plan_load *load,
                            struct buffer *out)
{
    char users[PLAN_NUMBER_BYTES_MAX], devices[PLAN_NUMBER_BYTES_MAX];
    buffer_printf(out, "%s users online with %s devices each, profile %s (%g s / %g s)\n\n",
                  plan_number(load->users, users), plan_number(load->devices, devices),
                  load->profile, load->heartbeat_seconds, load->window_seconds);
    plan_print_row(out, "connections", plan->connections, "");
    plan_print_row(out, "heartbeats", plan->heartbeats_per_second, "a second");
    plan_print_row(out, "lease renewals", plan->renewals_per_second, "a second");
    plan_print_row(out, "connects", plan->connects_per_second, "a second");
    plan_print_row(out, "presence notices", plan->notices_per_second, "a second");
    plan_print_row(out, "messages", plan->messages_per_second, "a second");
    plan_print_row(out, "deliveries", plan->deliveries_per_second, "a second");
}

static void plan_print_edges(const struct plan *plan, struct buffer *out)
{
    buffer_printf(out, "\n");
    plan_print_row(out, "edges", plan->edges, "");
    buffer_printf(out, "    because of the %s; %.0f workers and %.0f connections each\n",
                  plan_resource_text(plan->edge_reason), plan->edge_workers,
                  plan->connections / plan->edges);
    plan_print_row(out, "  processor", plan->edge_cores_used, "cores in all");
    plan_print_row(out, "  memory of the processes", plan->edge_bytes_used / GIB, "GiB in all");
    plan_print_row(out, "  memory of the kernel", plan->edge_kernel_bytes / GIB, "GiB in all");
    plan_print_row(out, "  to and from clients", plan->client_bytes_per_second * 8 / 1e6,
                   "Mbit/s in all");
}

static void plan_print_aggregators(const struct plan *plan, struct buffer *out)
{
    plan_print_row(out, "aggregators", plan->aggregators, "");
    if (plan->aggregators > 0)
        plan_print_row(out, "  processor", plan->aggregator_cores_used, "cores in all");
    else
        buffer_printf(out, "    each Redis node accepts the connections of all edges\n");
}

static void plan_print_redis(const struct plan *plan, struct buffer *out)
{
    plan_print_row(out, "Redis nodes", plan->redis_nodes, "masters");
    buffer_printf(out, "    because of the %s\n", plan_resource_text(plan->redis_reason));
    plan_print_row(out, "  processor", plan->redis_cores_used, "cores in all");
    plan_print_row(out, "  memory", plan->redis_bytes_used / GIB, "GiB in all");
    plan_print_row(out, "  traffic", plan->redis_bytes_per_second * 8 / 1e6, "Mbit/s in all");
    plan_print_row(out, "  connections to each", plan->redis_clients_per_node, "");
    plan_print_row(out, "  connects after a lost edge", plan->storm_connects_per_second,
                   "a second");
    plan_print_row(out, "ledger: processor", plan->ledger_cores_used, "cores");
}

void plan_print_text(const struct plan *plan, const struct plan_load *load, struct buffer *out)
{
    plan_print_load(plan, load, out);
    plan_print_edges(plan, out);
    plan_print_aggregators(plan, out);
    plan_print_redis(plan, out);
    buffer_printf(out, "\nfirst bottleneck: %s, planned for %.0f %% of its limit\n",
                  plan_resource_text(plan->bottleneck), 100 * plan->use[plan->bottleneck]);
}

/* ---- JSON ---- */

static void plan_json(struct buffer *out, const char *name, double value, const char *end)
{
    buffer_printf(out, "\"%s\":%.*f%s", name, value < 1000 ? 6 : 1, value, end);
}

static void plan_json_edges(const struct plan *plan, struct buffer *out)
{
    buffer_printf(out, "\"edge\":{");
    plan_json(out, "count", plan->edges, ",");
    plan_json(out, "workers", plan->edge_workers, ",");
    plan_json(out, "cores_used", plan->edge_cores_used, ",");
    plan_json(out, "bytes_used", plan->edge_bytes_used, ",");
    plan_json(out, "bytes_per_connection", plan->edge_bytes_used / plan->connections, ",");
    plan_json(out, "kernel_bytes_used", plan->edge_kernel_bytes, ",");
    plan_json(out, "client_bytes_per_second", plan->client_bytes_per_second, ",");
    buffer_printf(out, "\"reason\":\"%s\"},", plan_resource_name(plan->edge_reason));
}

static void plan_json_redis(const struct plan *plan, struct buffer *out)
{
    buffer_printf(out, "\"aggregator\":{");
    plan_json(out, "count", plan->aggregators, ",");
    plan_json(out, "cores_used", plan->aggregator_cores_used, "},");
    buffer_printf(out, "\"redis\":{");
    plan_json(out, "nodes", plan->redis_nodes, ",");
    plan_json(out, "cores_used", plan->redis_cores_used, ",");
    plan_json(out, "bytes_used", plan->redis_bytes_used, ",");
    plan_json(out, "bytes_per_second", plan->redis_bytes_per_second, ",");
    plan_json(out, "clients_per_node", plan->redis_clients_per_node, ",");
    plan_json(out, "storm_connects_per_second", plan->storm_connects_per_second, ",");
    buffer_printf(out, "\"reason\":\"%s\"},", plan_resource_name(plan->redis_reason));
    buffer_printf(out, "\"ledger\":{");
    plan_json(out, "cores_used", plan->ledger_cores_used, "},");
}

static void plan_json_use(const struct plan *plan, struct buffer *out)
{
    buffer_printf(out, "\"use\":{");
    for (int i = 0; i < PLAN_RESOURCE_COUNT; i++)
        plan_json(out, plan_resource_name((enum plan_resource)i), plan->use[i],
                  i + 1 < PLAN_RESOURCE_COUNT ? "," : "},");
}

void plan_print_json(const struct plan *plan, const struct plan_load *load, struct buffer *out)
{
    buffer_printf(out, "{");
    plan_json(out, "users", load->users, ",");
    plan_json(out, "devices", load->devices, ",");
    buffer_printf(out, "\"profile\":\"%s\",", load->profile);
    plan_json(out, "connections", plan->connections, ",");
    plan_json(out, "heartbeats_per_second", plan->heartbeats_per_second, ",");
    plan_json(out, "renewals_per_second", plan->renewals_per_second, ",");
    plan_json(out, "connects_per_second", plan->connects_per_second, ",");
    plan_json(out, "notices_per_second", plan->notices_per_second, ",");
    plan_json(out, "messages_per_second", plan->messages_per_second, ",");
    plan_json(out, "deliveries_per_second", plan->deliveries_per_second, ",");
    plan_json_edges(plan, out);
    plan_json_redis(plan, out);
    plan_json_use(plan, out);
    buffer_printf(out, "\"bottleneck\":\"%s\"}\n", plan_resource_name(plan->bottleneck));
}
