#include "app/gateway_backends.h"

#include "app/gateway_internal.h"
#include "bus/fleet/fleet_bus.h"
#include "log/log.h"
#include "redis/redis_info.h"
#include "store/redis/redis_budget.h"
#include "store/redis/redis_call.h"
#include "store/redis/redis_graph.h"
#include "store/redis/redis_recovery.h"
#include "store/redis/redis_typing.h"
#include "store/redis/state/redis_state.h"

#include <stdio.h>

/* How often the first gateway of a process reads the list of gateways. */
enum { GATEWAYS_READ_MS = 1000, REFUSAL_TEXT_MAX = 384 };

/* ---- a single process ---- */

static struct graph_store *make_embedded_backends(struct gateway *gateway)
{
    struct embedded *embedded = gateway->parts.embedded;
    const struct clock *clock = &gateway->loop.clock;
    gateway->store = memory_state_store(embedded->state, clock);
    gateway->bus = mailbox_bus_make(gateway->parts.bus_group, gateway->index, &gateway->mailbox,
                                    &gateway->metrics, gateway_on_event, gateway);
    gateway->typing.store = memory_typing_store(embedded->typing, clock);
    gateway->calls.store = memory_calls_store(embedded->calls, clock);
    return gateway->store ? memory_graphs_store(embedded->graphs, gateway->store, clock) : NULL;
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
    session_renew_all(&gateway->sessions);
}

/* Only sessions that can be recovered need offsets. */
static bool make_recovery_store(struct gateway *gateway)
{
    int64_t recovery_ms = gateway->parts.config->socketio.recovery_ms;
    const struct clock *clock = &gateway->loop.clock;
    if (recovery_ms == 0)
        return true;
    gateway->encoder.offset_clock = clock;
    gateway->socketio.recovery =
        gateway->parts.fleet ? redis_recovery_make(&(struct redis_recovery_options){
                                   .client = gateway->redis,
                                   .recovery_ms = recovery_ms,
                                   .hash_seed = gateway->parts.hash_seed,
                                   .clock = clock})
                             : memory_recovery_store(gateway->parts.embedded->recovery, clock);
    return gateway->socketio.recovery != NULL;
}

static struct graph_store *make_redis_stores(struct gateway *gateway)
{
    const struct config *config = gateway->parts.config;
    gateway->sessions.budgets.fleet =
        redis_budget_make(&(struct redis_budget_options){.client = gateway->redis});
    gateway->store = redis_state_make(&(struct redis_state_options){
        .client = gateway->redis,
        .loop = &gateway->loop,
        .random = &gateway->random,
        .metrics = &gateway->metrics,
        .gateway_id = slice_of(gateway->id),
        .lease_window_ms = config->presence.expiry_window_ms,
        .offline_grace_ms = config->presence.offline_grace_ms,
        .on_fenced = on_gateway_fenced,
        .on_forgotten = on_gateway_forgotten,
        .arg = gateway,
    });
    gateway->typing.store = redis_typing_make(&(struct redis_typing_options){
        .client = gateway->redis,
        .ttl_ms = config->typing.ttl_ms,
        .rate_per_second = config->typing.rate_per_second,
    });
    gateway->calls.store = redis_call_make(&(struct redis_call_options){
        .client = gateway->redis,
        .loop = &gateway->loop,
        .random = &gateway->random,
        .ring_timeout_ms = config->call.ring_timeout_ms,
        .reconnect_grace_ms = config->call.reconnect_grace_ms,
        .lease_window_ms = config->presence.expiry_window_ms,
    });
    return redis_graph_make(&(struct redis_graph_options){
        .client = gateway->redis,
        .random = &gateway->random,
        .loop = &gateway->loop,
    });
}

/* The first gateway of a process owns the hub of all. */
static bool make_peer_hub(struct gateway *gateway)
{
    struct fleet *fleet = gateway->parts.fleet;
    const struct config_list *peers = &gateway->parts.config->peer.peers;
    if (fleet->peer_secret.len == 0 || gateway->index > 0)
        return true;
    fleet->hub = peer_hub_make(&(struct peer_hub_options){
        .loop = &gateway->loop,
        .streams = &gateway->streams,
        .random = &gateway->random,
        .metrics = &gateway->metrics,
        .mailbox = &gateway->mailbox,
        .name = fleet->process,
        .secret = fleet->peer_secret,
        .tls_dial = fleet->peer_dial,
        .tls_accept = fleet->peer_accept,
        .on_event = fleet_bus_relay,
        .arg = gateway->bus,
    });
    bool made = fleet->hub != NULL;
    for (size_t i = 0; i < peers->count && made; i++)
        made = peer_hub_add(fleet->hub, peers->items[i]);
    return made;
}

static struct graph_store *make_fleet_backends(struct gateway *gateway)
{
    struct fleet *fleet = gateway->parts.fleet;
    gateway->redis = redis_client_make(&(struct redis_client_options){
        .loop = &gateway->loop,
        .streams = &gateway->streams,
        .random = &gateway->random,
        .metrics = &gateway->metrics,
        .url = &fleet->redis,
        .tls = fleet->redis_tls,
        .name = gateway->id,
        .report = &fleet->report,
    });
    if (!gateway->redis)
        return NULL;
    gateway->bus = fleet_bus_make(&(struct fleet_bus_options){
        .client = gateway->redis,
        .group = gateway->parts.bus_group,
        .index = gateway->index,
        .workers = gateway->parts.workers,
        .mailbox = &gateway->mailbox,
        .metrics = &gateway->metrics,
        .process = fleet->process,
        .hash_seed = gateway->parts.hash_seed,
        .on_event = gateway_on_event,
        .on_gap = gateway_on_gap,
        .arg = gateway,
    });
    if (!gateway->bus || !make_peer_hub(gateway))
        return NULL;
    fleet_bus_use_hub(gateway->bus, fleet->hub);
    if (gateway->index == 0)
        gateway->redis_info = redis_info_make(gateway->redis, &gateway->loop, &gateway->metrics);
    return make_redis_stores(gateway);
}

bool gateway_backends_make(struct gateway *gateway)
{
    struct budgets *budgets = &gateway->sessions.budgets;
    struct graph_store *graphs =
        gateway->parts.fleet ? make_fleet_backends(gateway) : make_embedded_backends(gateway);
    budgets->local = memory_budget_store(gateway->parts.budget, &gateway->loop.clock);
    return graphs && budgets->local && (budgets->fleet || !gateway->parts.fleet) &&
           make_recovery_store(gateway) &&
           graph_reader_init(&gateway->presence.graphs, graphs, &gateway->ledger, &gateway->metrics,
                             gateway->parts.hash_seed) &&
           gateway->store && gateway->bus && gateway->typing.store && gateway->calls.store;
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
    const struct fleet *fleet = gateway->parts.fleet;
    if (status != STATE_OK)
        return;
    metrics_set(&gateway->metrics, METRIC_INSTANCES_HEALTHY, (int64_t)count);
    if (!fleet || !fleet->hub)
        return;
    struct peer_hub_entry entries[REDIS_STATE_GATEWAYS_MAX];
    if (count > REDIS_STATE_GATEWAYS_MAX)
        count = REDIS_STATE_GATEWAYS_MAX;
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct peer_hub_entry){gateways[i].gateway_id, gateways[i].peer_address};
    peer_hub_learn(fleet->hub, entries, count);
}

/* Reads the list of gateways often: a peer without a link cannot be reached while Redis does not answer. */
static void read_gateway_list(struct gateway *gateway)
{
    int64_t now_ms = gateway->loop.clock.now_ms;
    if (gateway->index > 0 || now_ms < gateway->gateways_read_at_ms + GATEWAYS_READ_MS)
        return;
    gateway->gateways_read_at_ms = now_ms;
    state_gateways(gateway->store, on_gateways_read, gateway);
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
        redis_state_claim(gateway->store, &info, on_gateway_claimed, gateway);
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
    if (gateway->claim == GATEWAY_CLAIMED && redis_state_pending(gateway->store) == 0) {
        gateway->claim = GATEWAY_LEAVING;
        redis_state_release(gateway->store, on_gateway_released, gateway);
    }
    return gateway->claim == GATEWAY_LEFT;
}

void gateway_backends_free(struct gateway *gateway)
{
    call_store_free(&gateway->calls.store); /* ends calls that pause between two tries */
    if (gateway->parts.fleet && gateway->index == 0)
        peer_hub_free(&gateway->parts.fleet->hub);
    redis_info_free(&gateway->redis_info);
    bus_free(&gateway->bus);
    graph_store_free(&gateway->presence.graphs.store);
    typing_store_free(&gateway->typing.store);
    recovery_store_free(&gateway->socketio.recovery);
    budget_store_free(&gateway->sessions.budgets.local);
    budget_store_free(&gateway->sessions.budgets.fleet);
    state_store_free(&gateway->store);
    redis_client_free(&gateway->redis);
}
