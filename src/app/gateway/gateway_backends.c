#include "app/gateway/gateway_backends.h"

#include "app/gateway/gateway_internal.h"
#include "log/log.h"
#include "presence/resync.h"
#include "store/aggregate/aggregate_stores.h"
#include "store/redis/redis_budget.h"
#include "store/redis/redis_call.h"
#include "store/redis/redis_graph.h"
#include "store/redis/redis_typing.h"

#include <stdio.h>

/* How often the first gateway of a process reads the list of gateways. */
enum { GATEWAYS_READ_MS = 1000, REFUSAL_TEXT_MAX = 384 };

/* ---- a single process ---- */

static struct graph_store *make_embedded_backends(struct gateway *gateway)
{
    struct embedded *embedded = gateway->parts.embedded;
    const struct clock *clock = &gateway->loop.clock;
    gateway->ports.store = memory_state_store(embedded->state, clock);
    gateway->ports.bus =
        mailbox_bus_make(gateway->parts.bus_group, gateway->index, &gateway->mailbox,
                         &gateway->metrics, gateway_on_event, gateway);
    if (gateway->parts.config->socketio.recovery_ms > 0)
        gateway->ports.recovery = memory_recovery_store(embedded->recovery, clock);
    gateway->typing.store = memory_typing_store(embedded->typing, clock);
    gateway->calls.store = memory_calls_store(embedded->calls, clock);
    return gateway->ports.store ? memory_graphs_store(embedded->graphs, gateway->ports.store, clock)
                                : NULL;
}

/* ---- a fleet ---- */

static void report_gateway_refusal(struct gateway *gateway, struct slice since)
{
    char text[REFUSAL_TEXT_MAX];
    snprintf(text, sizeof(text),
             "another process has the gateway id %s%s%.*s; give each its own --node-id",
             gateway->id, since.len ? ", since " : "", SLICE_FORMAT(since));
    log_error("gateway_id_taken", "gateway=%s reason=%s", gateway->id,
              log_sentence(slice_of(text)));
    if (gateway->parts.on_claimed)
        gateway->parts.on_claimed(gateway->parts.on_claimed_arg, text);
}

static void on_gateway_fenced(void *arg)
{
    report_gateway_refusal(arg, SLICE_NONE);
}

static void on_gateway_forgotten(void *arg)
{
    struct gateway *gateway = arg;
    log_warn("gateway_forgotten", "gateway=%s reason=%s", gateway->id,
             log_sentence(SLICE("Redis lost its data; every lease is registered again")));
    resync_disturb(&gateway->presence);
    session_renew_all(&gateway->sessions);
}

/* A replica that took over, or a server that started again, lacks the renewals of its last moments: leases would expire
 * long before they are due, with their routes. */
static void on_gateway_server_returned(void *arg)
{
    struct gateway *gateway = arg;
    resync_disturb(&gateway->presence);
    session_renew_all(&gateway->sessions);
}

/* Only sessions that can be recovered need offsets. */
static bool use_recovery_store(struct gateway *gateway)
{
    bool is_needed = gateway->parts.config->socketio.recovery_ms > 0;
    if (is_needed)
        gateway->encoder.offset_clock = &gateway->loop.clock;
    gateway->socketio.recovery = gateway->ports.recovery;
    return !is_needed || gateway->ports.recovery;
}

static struct graph_store *make_redis_stores(struct gateway *gateway)
{
    const struct config *config = gateway->parts.config;
    gateway->sessions.budgets.fleet =
        redis_budget_make(&(struct redis_budget_options){.client = gateway->ports.redis});
    gateway->typing.store = redis_typing_make(&(struct redis_typing_options){
        .client = gateway->ports.redis,
        .ttl_ms = config->typing.ttl_ms,
        .rate_per_second = config->typing.rate_per_second,
    });
    gateway->calls.store = redis_call_make(&(struct redis_call_options){
        .client = gateway->ports.redis,
        .loop = &gateway->loop,
        .random = &gateway->random,
        .ring_timeout_ms = config->call.ring_timeout_ms,
        .reconnect_grace_ms = config->call.reconnect_grace_ms,
        .lease_window_ms = config->presence.expiry_window_ms,
    });
    return redis_graph_make(&(struct redis_graph_options){
        .client = gateway->ports.redis,
        .random = &gateway->random,
        .loop = &gateway->loop,
    });
}

static struct graph_store *make_aggregated_stores(struct gateway *gateway)
{
    struct aggregate_client *aggregators = gateway->ports.aggregators;
    gateway->sessions.budgets.fleet = aggregate_budget_make(aggregators);
    gateway->typing.store = aggregate_typing_make(aggregators);
    gateway->calls.store = aggregate_call_make(aggregators);
    return aggregate_graph_make(aggregators, &gateway->loop);
}

static struct graph_store *make_fleet_backends(struct gateway *gateway)
{
    bool made =
        worker_ports_make(&gateway->ports, &(struct worker_ports_options){
                                               .fleet = gateway->parts.fleet,
                                               .config = gateway->parts.config,
                                               .loop = &gateway->loop,
                                               .streams = &gateway->streams,
                                               .random = &gateway->random,
                                               .metrics = &gateway->metrics,
                                               .mailbox = &gateway->mailbox,
                                               .bus_group = gateway->parts.bus_group,
                                               .index = gateway->index,
                                               .workers = gateway->parts.workers,
                                               .id = gateway->id,
                                               .hash_seed = gateway->parts.hash_seed,
                                               .on_event = gateway_on_event,
                                               .on_gap = gateway_on_gap,
                                               .on_fenced = on_gateway_fenced,
                                               .on_forgotten = on_gateway_forgotten,
                                               .on_server_returned = on_gateway_server_returned,
                                               .arg = gateway,
                                           });
    if (!made)
        return NULL;
    return gateway->ports.aggregators ? make_aggregated_stores(gateway)
                                      : make_redis_stores(gateway);
}

bool gateway_backends_make(struct gateway *gateway)
{
    struct budgets *budgets = &gateway->sessions.budgets;
    struct graph_store *graphs =
        gateway->parts.fleet ? make_fleet_backends(gateway) : make_embedded_backends(gateway);
    budgets->local = memory_budget_store(gateway->parts.budget, &gateway->loop.clock);
    return graphs && budgets->local && (budgets->fleet || !gateway->parts.fleet) &&
           use_recovery_store(gateway) &&
           graph_reader_init(&gateway->presence.graphs, graphs, &gateway->ledger, &gateway->metrics,
                             gateway->parts.hash_seed) &&
           gateway->ports.store && gateway->ports.bus && gateway->typing.store &&
           gateway->calls.store;
}

bool gateway_backends_listen(struct gateway *gateway, char error[LISTENER_ERROR_TEXT_MAX])
{
    struct fleet *fleet = gateway->parts.fleet;
    const struct config *config = gateway->parts.config;
    if (!fleet || !fleet->hub || gateway->index > 0 || !config->peer.listen[0])
        return true;
    if (!peer_hub_listen(fleet->hub, config->peer.listen, error))
        return false;
    fleet_note_port(fleet, config, peer_hub_port(fleet->hub));
    return true;
}

/* ---- other gateways ---- */

static void on_gateways_read(void *arg, enum state_status status,
                             const struct gateway_info *gateways, size_t count)
{
    struct gateway *gateway = arg;
    if (status != STATE_OK)
        return;
    metrics_set(&gateway->metrics, METRIC_INSTANCES_HEALTHY, (int64_t)count);
    if (gateway->parts.fleet)
        worker_ports_learn(gateway->parts.fleet, gateways, count);
}

/* Reads the list of gateways often: a peer without a link cannot be reached while Redis does not answer. */
static void read_gateway_list(struct gateway *gateway)
{
    int64_t now_ms = gateway->loop.clock.now_ms;
    if (gateway->index > 0 || now_ms < gateway->gateways_read_at_ms + GATEWAYS_READ_MS)
        return;
    gateway->gateways_read_at_ms = now_ms;
    state_list_gateways(gateway->ports.store, on_gateways_read, gateway);
}

/* ---- start ---- */

static void start_gateway_reports(struct gateway *gateway)
{
    gateway->claim = GATEWAY_CLAIMED;
    gateway_report(gateway);
    read_gateway_list(gateway);
    if (gateway->parts.on_claimed)
        gateway->parts.on_claimed(gateway->parts.on_claimed_arg, NULL);
}

static void on_gateway_claimed(void *arg, enum redis_claim claim, struct slice since)
{
    struct gateway *gateway = arg;
    if (claim == REDIS_CLAIM_TAKEN) {
        report_gateway_refusal(gateway, since);
    } else if (claim != REDIS_CLAIM_CANCELLED) { /* the gateway is being freed */
        if (claim == REDIS_CLAIM_UNDECIDED)
            atomic_store(&gateway->parts.fleet->is_waiting, true);
        start_gateway_reports(gateway);
    }
}

void gateway_backends_start(struct gateway *gateway)
{
    struct gateway_info info = gateway_describe(gateway);
    if (gateway->parts.fleet)
        worker_ports_claim(&gateway->ports, &info, on_gateway_claimed, gateway);
    else
        start_gateway_reports(gateway);
}

/* ---- every second ---- */

void gateway_backends_tick(struct gateway *gateway)
{
    read_gateway_list(gateway);
    if (gateway->index == 0) {
        memory_budget_sweep(gateway->parts.budget, gateway->loop.clock.now_ms);
        metrics_set(&gateway->metrics, METRIC_LIMITS_TABLE_BYTES,
                    (int64_t)memory_budget_bytes(gateway->parts.budget));
    }
    if (gateway->parts.fleet) {
        /* Devices on other gateways are unknown here, so each gateway counts its own. */
        metrics_set(&gateway->metrics, METRIC_ROUTING_MULTI_DEVICE_USERS,
                    (int64_t)gateway->router.users_multi_device);
        return;
    }
    if (gateway->index > 0)
        return;
    struct memory_state_counts counts =
        memory_state_count(gateway->parts.embedded->state, gateway->loop.clock.now_ms);
    metrics_set(&gateway->metrics, METRIC_ROUTING_MULTI_DEVICE_USERS,
                (int64_t)counts.users_multi_device);
    metrics_set(&gateway->metrics, METRIC_PRESENCE_STALE_ENTRIES, (int64_t)counts.leases_overdue);
}

/* ---- the end ---- */

static void on_gateway_released(void *arg)
{
    struct gateway *gateway = arg;
    gateway->claim = GATEWAY_LEFT;
}

bool gateway_backends_leave(struct gateway *gateway)
{
    if (!gateway->parts.fleet || gateway->claim == GATEWAY_UNCLAIMED)
        return true;
    if (gateway->claim == GATEWAY_CLAIMED && worker_ports_pending(&gateway->ports) == 0) {
        gateway->claim = GATEWAY_LEAVING;
        worker_ports_release(&gateway->ports, on_gateway_released, gateway);
    }
    return gateway->claim == GATEWAY_LEFT;
}

void gateway_backends_free(struct gateway *gateway)
{
    call_store_free(&gateway->calls.store); /* ends calls that pause between two tries */
    if (gateway->parts.fleet && gateway->index == 0)
        peer_hub_free(&gateway->parts.fleet->hub);
    graph_store_free(&gateway->presence.graphs.store);
    typing_store_free(&gateway->typing.store);
    budget_store_free(&gateway->sessions.budgets.local);
    budget_store_free(&gateway->sessions.budgets.fleet);
    gateway->socketio.recovery = NULL;
    worker_ports_free(&gateway->ports);
}
