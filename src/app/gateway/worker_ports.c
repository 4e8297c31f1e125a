#include "app/gateway/worker_ports.h"

#include "bus/aggregate/aggregate_carrier.h"
#include "bus/fleet/fleet_bus.h"
#include "bus/fleet/redis_carrier.h"
#include "store/aggregate/aggregate_state.h"
#include "store/aggregate/aggregate_stores.h"
#include "store/redis/redis_recovery.h"

#include <stdlib.h>

/* The first worker of a process owns the hub of all. */
static bool make_peer_hub(const struct worker_ports_options *options, struct bus *bus)
{
    struct fleet *fleet = options->fleet;
    const struct config_list *peers = &options->config->peer.peers;
    if (fleet->peer_secret.len == 0 || options->index > 0)
        return true;
    fleet->hub = peer_hub_make(&(struct peer_hub_options){
        .loop = options->loop,
        .streams = options->streams,
        .random = options->random,
        .metrics = options->metrics,
        .mailbox = options->mailbox,
        .name = fleet->process,
        .secret = fleet->peer_secret,
        .tls_dial = fleet->peer_dial,
        .tls_accept = fleet->peer_accept,
        .on_event = fleet_bus_relay,
        .arg = bus,
    });
    bool made = fleet->hub != NULL;
    for (size_t i = 0; i < peers->count && made; i++)
        made = peer_hub_add(fleet->hub, peers->items[i]);
    return made;
}

static struct redis_client *make_redis_client(const struct worker_ports_options *options)
{
    struct fleet *fleet = options->fleet;
    return redis_client_make(&(struct redis_client_options){
        .loop = options->loop,
        .streams = options->streams,
        .random = options->random,
        .metrics = options->metrics,
        .url = &fleet->redis,
        .tls = fleet->redis_tls,
        .name = options->id,
        .report = &fleet->report,
    });
}

/* Takes the carrier, also when it fails. */
static struct bus *make_fleet_bus(const struct worker_ports_options *options,
                                  struct bus_carrier *carrier)
{
    return fleet_bus_make(&(struct fleet_bus_options){
        .carrier = carrier,
        .group = options->bus_group,
        .index = options->index,
        .workers = options->workers,
        .mailbox = options->mailbox,
        .metrics = options->metrics,
        .process = options->fleet->process,
        .is_alone = &options->fleet->is_alone,
        .hash_seed = options->hash_seed,
        .on_event = options->on_event,
        .on_gap = options->on_gap,
        .arg = options->arg,
    });
}

static bool is_process_gone(void *arg, struct slice process)
{
    (void)arg;
    return process_id_is_gone(process);
}

static struct state_store *make_state_store(const struct worker_ports_options *options,
                                            struct redis_client *redis)
{
    return redis_state_make(&(struct redis_state_options){
        .client = redis,
        .loop = options->loop,
        .random = options->random,
        .metrics = options->metrics,
        .gateway_id = slice_of(options->id),
        .lease_window_ms = options->config->presence.expiry_window_ms,
        .offline_grace_ms = options->config->presence.offline_grace_ms,
        .process = options->fleet->process_id,
        .is_process_gone = is_process_gone,
        .on_fenced = options->on_fenced,
        .on_forgotten = options->on_forgotten,
        .on_server_returned = options->on_server_returned,
        .arg = options->arg,
    });
}

static struct recovery_store *make_recovery_store(const struct worker_ports_options *options,
                                                  struct redis_client *redis)
{
    return redis_recovery_make(&(struct redis_recovery_options){
        .client = redis,
        .recovery_ms = options->config->socketio.recovery_ms,
        .hash_seed = options->hash_seed,
        .clock = &options->loop->clock,
    });
}

static bool use_bus(struct worker_ports *ports, const struct worker_ports_options *options,
                    struct bus_carrier *carrier)
{
    ports->bus = make_fleet_bus(options, carrier);
    if (!ports->bus || !make_peer_hub(options, ports->bus))
        return false;
    fleet_bus_use_hub(ports->bus, options->fleet->hub);
    return true;
}

static bool make_redis_ports(struct worker_ports *ports, const struct worker_ports_options *options)
{
    ports->redis = make_redis_client(options);
    if (!ports->redis || !use_bus(ports, options, redis_carrier_make(ports->redis)))
        return false;
    if (options->index == 0)
        ports->redis_info = redis_info_make(ports->redis, options->loop, options->metrics);
    ports->store = make_state_store(options, ports->redis);
    if (options->config->socketio.recovery_ms == 0)
        return ports->store != NULL;
    ports->recovery = make_recovery_store(options, ports->redis);
    return ports->store && ports->recovery;
}

/* ---- aggregators ---- */

struct aggregate_terms worker_ports_terms(const struct config *config)
{
    return (struct aggregate_terms){{
        [AGGREGATE_LEASE_WINDOW_MS] = config->presence.expiry_window_ms,
        [AGGREGATE_OFFLINE_GRACE_MS] = config->presence.offline_grace_ms,
        [AGGREGATE_TYPING_TTL_MS] = config->typing.ttl_ms,
        [AGGREGATE_TYPING_RATE] = config->typing.rate_per_second,
        [AGGREGATE_RING_TIMEOUT_MS] = config->call.ring_timeout_ms,
        [AGGREGATE_RECONNECT_GRACE_MS] = config->call.reconnect_grace_ms,
        [AGGREGATE_RECOVERY_MS] = config->socketio.recovery_ms,
    }};
}

static struct aggregate_client *make_aggregate_client(const struct worker_ports_options *options)
{
    const struct fleet *fleet = options->fleet;
    const struct config_list *aggregators = &options->config->state.aggregators;
    return aggregate_client_make(&(struct aggregate_client_options){
        .links = {.loop = options->loop,
                  .streams = options->streams,
                  .random = options->random,
                  .secret = fleet->peer_secret,
                  .name = slice_of(options->id),
                  .tls = fleet->peer_dial},
        .addresses = aggregators->items,
        .address_count = aggregators->count,
        .gateway_id = slice_of(options->id),
        .process = fleet->process_id,
        .terms = worker_ports_terms(options->config),
        .metrics = options->metrics,
    });
}

static bool make_aggregated_ports(struct worker_ports *ports,
                                  const struct worker_ports_options *options)
{
    int64_t window_ms = options->config->presence.expiry_window_ms;
    ports->aggregators = make_aggregate_client(options);
    if (!ports->aggregators ||
        !use_bus(ports, options,
                 aggregate_carrier_make(ports->aggregators, options->loop, options->hash_seed)))
        return false;
    ports->store = aggregate_state_make(&(struct aggregate_state_options){
        .client = ports->aggregators,
        .loop = options->loop,
        .gateway_id = slice_of(options->id),
        .lease_window_ms = window_ms,
        .renewal_delay_ms = aggregate_renewal_delay_ms(window_ms),
        .is_process_gone = is_process_gone,
        .on_fenced = options->on_fenced,
        .on_forgotten = options->on_forgotten,
        .on_server_returned = options->on_server_returned,
        .arg = options->arg,
    });
    if (options->config->socketio.recovery_ms == 0)
        return ports->store != NULL;
    ports->recovery =
        aggregate_recovery_make(ports->aggregators, &options->loop->clock, options->hash_seed);
    return ports->store && ports->recovery;
}

/* ---- both ---- */

bool worker_ports_make(struct worker_ports *ports, const struct worker_ports_options *options)
{
    *ports = (struct worker_ports){0};
    return options->config->state.aggregators.count ? make_aggregated_ports(ports, options)
                                                    : make_redis_ports(ports, options);
}

bool worker_ports_reach_redis(const struct worker_ports *ports)
{
    return ports->aggregators ? aggregate_client_usable(ports->aggregators) > 0
                              : ports->redis && redis_available(ports->redis);
}

void worker_ports_claim(struct worker_ports *ports, const struct gateway_info *info,
                        redis_claim_done done, void *arg)
{
    if (ports->aggregators)
        aggregate_state_claim(ports->store, info, done, arg);
    else
        redis_state_claim(ports->store, info, done, arg);
}

void worker_ports_release(struct worker_ports *ports, redis_release_done done, void *arg)
{
    if (ports->aggregators)
        aggregate_state_release(ports->store, done, arg);
    else
        redis_state_release(ports->store, done, arg);
}

size_t worker_ports_pending(const struct worker_ports *ports)
{
    return ports->aggregators ? aggregate_state_pending(ports->store)
                              : redis_state_pending(ports->store);
}

void worker_ports_close(struct worker_ports *ports)
{
    if (ports->redis)
        redis_client_close(ports->redis);
    if (ports->aggregators)
        aggregate_client_close(ports->aggregators);
}

void worker_ports_free(struct worker_ports *ports)
{
    redis_info_free(&ports->redis_info);
    bus_free(&ports->bus);
    recovery_store_free(&ports->recovery);
    state_store_free(&ports->store);
    redis_client_free(&ports->redis);
    aggregate_client_free(&ports->aggregators);
}

void worker_ports_learn(struct fleet *fleet, const struct gateway_info *gateways, size_t count)
{
    bool is_alone = count > 0;
    for (size_t i = 0; i < count; i++)
        is_alone &= peer_hub_is_gateway_of(gateways[i].gateway_id, fleet->process);
    atomic_store(&fleet->is_alone, is_alone);
    struct peer_hub_entry *entries = fleet->hub ? calloc(count + 1, sizeof(*entries)) : NULL;
    for (size_t i = 0; entries && i < count; i++)
        entries[i] = (struct peer_hub_entry){gateways[i].gateway_id, gateways[i].peer_address};
    if (entries)
        peer_hub_learn(fleet->hub, entries, count);
    free(entries);
}
