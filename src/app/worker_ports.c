#include "app/worker_ports.h"

#include "bus/fleet/fleet_bus.h"
#include "store/redis/redis_recovery.h"
#include "store/redis/state/redis_state.h"

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

static struct bus *make_fleet_bus(const struct worker_ports_options *options,
                                  struct redis_client *redis)
{
    return fleet_bus_make(&(struct fleet_bus_options){
        .client = redis,
        .group = options->bus_group,
        .index = options->index,
        .workers = options->workers,
        .mailbox = options->mailbox,
        .metrics = options->metrics,
        .process = options->fleet->process,
        .hash_seed = options->hash_seed,
        .on_event = options->on_event,
        .on_gap = options->on_gap,
        .arg = options->arg,
    });
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
        .is_process_gone = process_id_is_gone,
        .on_fenced = options->on_fenced,
        .on_forgotten = options->on_forgotten,
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

bool worker_ports_make(struct worker_ports *ports, const struct worker_ports_options *options)
{
    *ports = (struct worker_ports){.redis = make_redis_client(options)};
    if (!ports->redis)
        return false;
    ports->bus = make_fleet_bus(options, ports->redis);
    if (!ports->bus || !make_peer_hub(options, ports->bus))
        return false;
    fleet_bus_use_hub(ports->bus, options->fleet->hub);
    if (options->index == 0)
        ports->redis_info = redis_info_make(ports->redis, options->loop, options->metrics);
    ports->store = make_state_store(options, ports->redis);
    if (options->config->socketio.recovery_ms == 0)
        return ports->store != NULL;
    ports->recovery = make_recovery_store(options, ports->redis);
    return ports->store && ports->recovery;
}

void worker_ports_free(struct worker_ports *ports)
{
    redis_info_free(&ports->redis_info);
    bus_free(&ports->bus);
    recovery_store_free(&ports->recovery);
    state_store_free(&ports->store);
    redis_client_free(&ports->redis);
}

void worker_ports_learn(struct fleet *fleet, const struct gateway_info *gateways, size_t count)
{
    struct peer_hub_entry entries[REDIS_STATE_GATEWAYS_MAX];
    if (!fleet->hub)
        return;
    if (count > REDIS_STATE_GATEWAYS_MAX)
        count = REDIS_STATE_GATEWAYS_MAX;
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct peer_hub_entry){gateways[i].gateway_id, gateways[i].peer_address};
    peer_hub_learn(fleet->hub, entries, count);
}
