/* The composition root of one worker: the one place that connects its parts. */
#include "api/api_budget.h"
#include "api/service/service_erasure.h"
#include "app/gateway/gateway_internal.h"
#include "base/container.h"
#include "log/log.h"
#include "net/send_batch.h"
#include "presence/push.h"
#include "presence/resync.h"
#include "redis/redis_pubsub.h"
#include "session/chat_commands.h"
#include "socketio/codec/adapter_packet.h"
#include "socketio/codec/socketio_dialect.h"
#include "socketio/handover.h"

#include <stdio.h>
#include <stdlib.h>

static void on_stream_released(void *arg, int fd)
{
    client_addresses_release(arg, fd);
}

static bool compose_streams(struct gateway *gateway)
{
    if (!stream_set_init(&gateway->streams, &gateway->loop))
        return false;
    if (gateway->parts.addresses) {
        gateway->streams.on_release = on_stream_released;
        gateway->streams.release_arg = gateway->parts.addresses;
    }
    if (!gateway->parts.config->gateway.io_uring)
        return true;
    if (!stream_set_use_batches(&gateway->streams))
        return false;
    if (gateway->index == 0 && !send_batch_is_native(gateway->streams.batch))
        log_info("io_uring_not_offered", "sends=one_by_one");
    return true;
}

static void compose_identity(struct gateway *gateway)
{
    const char *node_id = gateway->parts.config->gateway.node_id;
    if (gateway->parts.workers == 1)
        snprintf(gateway->id, sizeof(gateway->id), "%s", node_id);
    else
        snprintf(gateway->id, sizeof(gateway->id), "%s-%zu", node_id, gateway->index);
    gateway->sessions.gateway_id = slice_of(gateway->id);
}

static void on_ledger_answered(void *arg, struct ledger_request *done)
{
    (void)arg;
    ledger_complete(done);
}

static bool compose_ports(struct gateway *gateway)
{
    if (!ledger_request_inbox_init(&gateway->ledger_inbox, &gateway->loop, on_ledger_answered,
                                   NULL))
        return false;
    ledger_client_init(&gateway->ledger, gateway->parts.ledger, &gateway->loop.clock,
                       ledger_request_inbox_post, &gateway->ledger_inbox);
    return gateway_backends_make(gateway);
}

static bool compose_chats(struct gateway *gateway)
{
    const struct config *config = gateway->parts.config;
    struct typing_plane *typing = &gateway->typing;
    typing->config = config;
    typing->clock = &gateway->loop.clock;
    typing->bus = gateway->ports.bus;
    typing->metrics = &gateway->metrics;
    typing->views = (struct typing_views){
        .clock = &gateway->loop.clock,
        .wheel = &gateway->loop.wheel,
        .router = &gateway->router,
        .presence = &gateway->presence,
        .metrics = &gateway->metrics,
        .ttl_ms = config->typing.ttl_ms,
    };
    gateway->chats = (struct chat_plane){
        .config = config,
        .clock = &gateway->loop.clock,
        .router = &gateway->router,
        .metrics = &gateway->metrics,
        .typing = typing,
    };
    gateway->sessions.chats = &gateway->chats;
    gateway->sessions.typing = typing;
    return typing_views_init(&typing->views, gateway->parts.hash_seed);
}

static bool compose_calls(struct gateway *gateway)
{
    gateway->calls.presence = &gateway->presence;
    gateway->calls.delivery = &gateway->delivery;
    gateway->calls.random = &gateway->random;
    gateway->calls.is_connected = session_is_connected;
    gateway->calls.arg = &gateway->sessions;
    gateway->sessions.calls = &gateway->calls;
    return call_plane_init(&gateway->calls, gateway->parts.hash_seed);
}

static bool compose_messages(struct gateway *gateway)
{
    struct gateway_messages_parts parts = {
        .config = gateway->parts.config,
        .loop = &gateway->loop,
        .random = &gateway->random,
        .metrics = &gateway->metrics,
        .ledger = gateway->parts.ledger,
        .client = &gateway->ledger,
        .delivery = &gateway->delivery,
        .typing = &gateway->typing,
        .chats = &gateway->chats,
        .hash_seed = gateway->parts.hash_seed,
        .started_at_ms = gateway->parts.started_at_ms,
        .replays = gateway->index == 0,
    };
    gateway->sessions.messages = &gateway->messages.plane;
    return gateway_messages_make(&gateway->messages, &parts);
}

static bool compose_presence(struct gateway *gateway)
{
    struct presence_plane *presence = &gateway->presence;
    presence->config = gateway->parts.config;
    presence->clock = &gateway->loop.clock;
    presence->store = gateway->ports.store;
    presence->bus = gateway->ports.bus;
    presence->router = &gateway->router;
    presence->ledger = &gateway->ledger;
    presence->last_seen = &gateway->last_seen;
    if (gateway->parts.fleet)
        presence->last_known = last_known_make(gateway->parts.hash_seed);
    presence->metrics = &gateway->metrics;
    presence->on_lease_lost = session_on_lease_lost;
    presence->on_renewal_failed = session_on_lease_unrenewed;
    presence->connected_since = session_known_since;
    presence->on_displaced = gateway_on_displaced;
    presence->session_arg = &gateway->sessions;
    presence_init(presence);
    presence->resync.refresh_chat = chat_commands_refresh_chat;
    return dwell_init(&presence->dwell, presence, &gateway->loop.wheel, gateway->parts.hash_seed);
}

static bool compose_handlers(struct gateway *gateway)
{
    struct session_context *sessions = &gateway->sessions;
    sessions->config = gateway->parts.config;
    sessions->loop = &gateway->loop;
    sessions->random = &gateway->random;
    sessions->metrics = &gateway->metrics;
    sessions->encoder = &gateway->encoder;
    sessions->router = &gateway->router;
    sessions->delivery = &gateway->delivery;
    sessions->presence = &gateway->presence;
    sessions->ledger = &gateway->ledger;
    sessions->verifier = &gateway->verifier;
    session_context_init(sessions);
    if (gateway->parts.hooks && !gateway_hooks_make(&gateway->hooks, gateway->parts.hooks, sessions,
                                                    gateway->parts.hash_seed))
        return false;
    return connection_context_init(&sessions->connections, sessions->config, &gateway->loop,
                                   &gateway->encoder, &gateway->metrics, &gateway->random);
}

static bool compose_webhooks(struct gateway *gateway)
{
    if (!gateway->parts.webhooks)
        return true;
    return gateway_webhooks_make(&gateway->webhooks,
                                 &(struct webhook_sender_parts){
                                     .config = gateway->parts.config,
                                     .endpoints = gateway->parts.webhooks,
                                     .loop = &gateway->loop,
                                     .random = &gateway->random,
                                     .metrics = &gateway->metrics,
                                     .ledger = &gateway->ledger,
                                     .store = gateway->ports.store,
                                     .holder = gateway->sessions.gateway_id,
                                     .holds_queues = gateway->index == 0,
                                 },
                                 &gateway->sessions);
}

static void compose_rest(struct gateway *gateway)
{
    struct api_context *rest = &gateway->rest;
    rest->listener = (struct http_listener){
        .owner = &api_listener_owner,
        .loop = &gateway->loop,
        .streams = &gateway->streams,
        .metrics = &gateway->metrics,
        .config = gateway->parts.config,
        .memory = &gateway->sessions.connections.memory,
        .addresses = gateway->parts.addresses,
    };
    rest->listener.arg = rest;
    http_listener_init(&rest->listener);
    rest->operations = rest->listener;
    http_listener_init(&rest->operations);
    rest->has_operations = gateway->parts.config->ops.listen[0] != '\0';
    rest->sessions = &gateway->sessions;
    rest->exposition = gateway->parts.exposition;
    rest->sample = gateway_sample;
    rest->sample_arg = gateway;
    rest->dev_signer = gateway->parts.dev_signer;
    rest->drain = gateway->parts.drain;
    rest->drain_arg = gateway->parts.drain_arg;
    rest->connections_max = gateway->parts.connections_max;
    list_init(&rest->echoes);
    list_init(&rest->held_answers);
    list_init(&rest->erasures);
    api_keys_init(&rest->keys, &gateway->ledger, &gateway->loop.clock);
}

static void on_adapter_message(void *arg, struct slice channel, struct slice message)
{
    socketio_adapter_received(arg, channel, message);
}

static const struct redis_pubsub_owner ADAPTER_CHANNELS_OWNER = {.on_message = on_adapter_message};

static bool subscribe_adapter(struct gateway *gateway, struct slice suffix)
{
    struct buffer pattern = BUFFER_INIT;
    adapter_pattern_write(&pattern, gateway->adapter.key, suffix);
    bool subscribed = !pattern.failed &&
                      redis_pubsub_subscribe(gateway->adapter_channels, buffer_slice(&pattern));
    buffer_free(&pattern);
    return subscribed;
}

/* Subscribes by patterns, which a Node server does not count among the servers that it waits for. */
static bool compose_adapter(struct gateway *gateway)
{
    const struct config_socketio *config = &gateway->parts.config->socketio;
    if (!config->adapter)
        return true;
    if (!gateway->ports.redis) {
        if (gateway->index == 0)
            log_warn(
                "socketio_adapter_off", "reason=%s",
                log_sentence(SLICE(
                    "socketio.adapter needs a Redis of its own: --state redis://…, not --aggregators")));
        return true;
    }
    gateway->adapter = (struct socketio_adapter){.sessions = &gateway->sessions,
                                                 .receiver = &gateway->receiver,
                                                 .key = slice_of(config->adapter_key)};
    socketio_adapter_init(&gateway->adapter);
    gateway->adapter_channels = redis_pubsub_make_patterns(
        gateway->ports.redis, &ADAPTER_CHANNELS_OWNER, &gateway->adapter);
    return gateway->adapter_channels && subscribe_adapter(gateway, SLICE(ADAPTER_BROADCASTS)) &&
           subscribe_adapter(gateway, SLICE(ADAPTER_REQUESTS));
}

static bool compose_socketio(struct gateway *gateway)
{
    struct socketio_context *socketio = &gateway->socketio;
    socketio->place.worker = (uint16_t)gateway->index;
    if (gateway->parts.board)
        handover_board_put(gateway->parts.board, gateway->index, socketio, &gateway->mailbox);
    socketio_context_limit(&gateway->sessions.connections);
    return socketio_context_init(socketio, &gateway->rest, &gateway->sessions,
                                 gateway->parts.hash_seed);
}

static bool may_store_lack_routes(void *arg)
{
    return !resync_is_settled(arg);
}

static void compose_delivery(struct gateway *gateway)
{
    gateway->delivery = (struct delivery){
        .bus = gateway->ports.bus,
        .store = gateway->ports.store,
        .metrics = &gateway->metrics,
        .recovery = gateway->ports.recovery,
        .recovery_dialect = &DIALECT_TABLE_SOCKETIO,
        .encoder = &gateway->encoder,
        .seed = gateway->parts.hash_seed,
        .number = gateway->index,
        .broadcasts = true,
        .may_lack_routes = may_store_lack_routes,
        .arg = &gateway->presence,
    };
    gateway->receiver = (struct delivery_receiver){
        .router = &gateway->router,
        .metrics = &gateway->metrics,
        .recovery = gateway->ports.recovery,
        .recovery_dialect = &DIALECT_TABLE_SOCKETIO,
        .is_connection = session_is_connection,
        .is_device = session_is_device,
        .on_close = gateway_close_session,
        .arg = &gateway->sessions,
        .on_presence = push_received,
        .presence_arg = &gateway->presence,
        .on_call = call_told_note,
        .call_arg = &gateway->calls,
        .everyone = &gateway->everyone,
    };
    everyone_init(&gateway->everyone, &gateway->router, &gateway->loop.wheel, &gateway->loop.clock,
                  &gateway->metrics);
}

static void compose_verifier(struct gateway *gateway)
{
    const struct config *config = gateway->parts.config;
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    policy.issuer = slice_of(config->auth.issuer);
    policy.audience = slice_of(config->auth.audience);
    verifier_init(&gateway->verifier, NULL, &policy, config->gateway.handshakes_per_turn,
                  config->gateway.pending_handshakes_max);
    gateway->verifier.ask_for_keys = gateway->parts.on_keys_wanted;
    gateway->verifier.ask_arg = gateway->parts.on_keys_wanted_arg;
    gateway->verifier.revocations = &gateway->revocations.revocations;
}

struct gateway *gateway_make(const struct gateway_parts *parts, size_t index)
{
    struct gateway *gateway = calloc(1, sizeof(*gateway));
    if (!gateway)
        return NULL;
    gateway->parts = *parts;
    gateway->index = index;
    gateway->listener.source.fd = -1;
    gateway->operations.source.fd = -1;
    gateway->fd_passing.source.fd = -1;
    random_init_system(&gateway->random);
    encoder_init(&gateway->encoder);
    compose_identity(gateway);
    compose_verifier(gateway);
    if (!loop_init(&gateway->loop))
        return NULL;
    wheel_set_phase(&gateway->loop.wheel, (int64_t)random_below(&gateway->random, WHEEL_PHASES));
    if (!mailbox_init(&gateway->mailbox, &gateway->loop, MAILBOX_MAIL_MAX, gateway) ||
        !compose_streams(gateway) || !compose_ports(gateway) ||
        !router_init(&gateway->router, parts->hash_seed, gateway->ports.bus, &gateway->encoder,
                     session_deliver) ||
        !last_seen_init(&gateway->last_seen, &gateway->ledger, parts->hash_seed))
        return NULL; /* the process gives up, so nothing is undone */
    compose_rest(gateway);
    compose_delivery(gateway);
    if (!revocation_watch_init(&gateway->revocations, &gateway->sessions, parts->hash_seed) ||
        !compose_presence(gateway) || !compose_handlers(gateway) || !compose_chats(gateway) ||
        !compose_messages(gateway) || !compose_calls(gateway) || !compose_socketio(gateway) ||
        !compose_adapter(gateway) || !compose_webhooks(gateway))
        return NULL;
    gateway->housekeeping.fire = gateway_housekeep;
    gateway->memory_check.run = gateway_check_memory;
    gateway->sessions.connections.memory.on_grown = gateway_on_memory_grown;
    gateway->sessions.connections.memory.check_above = INT64_MAX; /* until the first check */
    gateway->pressure = (struct memory_pressure){.recovery = gateway->ports.recovery,
                                                 .budget = parts->memory,
                                                 .worker = index,
                                                 .workers = parts->workers};
    gateway->reaping.fire = gateway_reap;
    gateway->drain_deadline.fire = gateway_on_drain_timeout;
    exposition_add(parts->exposition, &gateway->metrics);
    return gateway;
}

void gateway_free(struct gateway **gateway)
{
    struct gateway *freed = *gateway;
    *gateway = NULL;
    if (!freed)
        return;
    verifier_free(&freed->verifier);
    api_budget_release(&freed->rest);
    service_erasure_stop(&freed->rest);
    mailbox_free(&freed->mailbox);
    gateway_hooks_close(&freed->hooks);
    redis_pubsub_free(&freed->adapter_channels);
    webhook_sender_free(&freed->webhooks);
    gateway_backends_free(freed);
    gateway_hooks_free(&freed->hooks);
    ledger_request_inbox_free(&freed->ledger_inbox);
    gateway_messages_free(&freed->messages);
    revocation_watch_free(&freed->revocations);
    presence_free(&freed->presence);
    last_known_free(&freed->presence.last_known);
    graph_reader_free(&freed->presence.graphs);
    last_seen_free(&freed->last_seen);
    call_plane_free(&freed->calls);
    typing_views_free(&freed->typing.views);
    socketio_adapter_free(&freed->adapter);
    socketio_context_free(&freed->socketio);
    everyone_free(&freed->everyone);
    api_keys_free(&freed->rest.keys);
    router_free(&freed->router);
    connection_context_free(&freed->sessions.connections);
    encoder_free(&freed->encoder);
    stream_set_free(&freed->streams);
    tls_context_drop(&freed->rest.listener.tls);
    tls_context_drop(&freed->rest.operations.tls);
    loop_free(&freed->loop);
    free(freed);
}
