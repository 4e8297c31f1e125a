#include "gateway.h"

#include "base/container.h"
#include "base/log.h"
#include "gateway_messages.h"
#include "handler/echo.h"
#include "handler/session.h"
#include "ledger/last_seen.h"
#include "ledger_inbox.h"
#include "memory_pressure.h"
#include "presence/presence_event.h"
#include "presence/push.h"
#include "rest/rest_context.h"
#include "routing/delivery.h"
#include "socket/listener.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    HOUSEKEEPING_MS = 1000,
    DRAIN_RECONNECT_MIN_MS = 1000, /* reconnects of a drain are spread over at least this */
    DRAIN_RECONNECT_PER_CONNECTION_MS = 2,
    DRAIN_CLOSE_TIMEOUT_MS = 1000, /* how long a peer may take to answer our close frame then */
};

struct gateway {
    struct gateway_parts parts;
    size_t index;
    char id[GATEWAY_ID_BYTES_MAX];
    struct loop loop;
    struct random random;
    struct metrics metrics;
    struct mailbox mailbox;
    struct stream_set streams;
    struct listener listener;
    struct encoder encoder;
    struct router router;
    struct bus *bus;
    struct state_store *store;
    struct ledger_inbox ledger_inbox;
    struct ledger_client ledger;
    struct last_seen last_seen;
    struct verifier verifier;
    struct presence_plane presence;
    struct typing_plane typing;
    struct call_plane calls;
    struct chat_plane chats;
    struct gateway_messages messages;
    struct handler_context handlers;
    struct rest_context rest;
    struct delivery delivery;
    struct wheel_timer housekeeping;
    struct wheel_timer reaping;
    struct wheel_timer drain_deadline;
};

/* ---- drain ---- */

struct drain_walk {
    struct gateway *gateway;
    size_t told;
    size_t total;
};

/* The n-th of N is closed at n/N of four fifths of the drain time; one alone goes at once. */
static void drain_route(struct table_node *node, void *arg)
{
    struct drain_walk *walk = arg;
    struct gateway *gateway = walk->gateway;
    struct route *route = CONTAINER_OF(node, struct route, node);
    int64_t window_ms = gateway->parts.config->gateway.shutdown.drain_timeout_ms * 4 / 5;
    uint64_t spread_ms = DRAIN_RECONNECT_MIN_MS + walk->total * DRAIN_RECONNECT_PER_CONNECTION_MS;
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next) {
        struct session *session =
            CONTAINER_OF(CONTAINER_OF(at, struct endpoint, of_route), struct session, endpoint);
        int64_t after_ms = window_ms * (int64_t)walk->told++ / (int64_t)walk->total;
        connection_end_at(&session->connection, CLOSING_DRAINING,
                          gateway->loop.clock.now_ms + after_ms,
                          after_ms + (int64_t)random_below(&gateway->random, spread_ms));
    }
}

static void drain_time_is_up(struct wheel_timer *timer)
{
    struct gateway *gateway = CONTAINER_OF(timer, struct gateway, drain_deadline);
    http_session_close_all(&gateway->rest);
}

static void start_drain(struct gateway *gateway)
{
    if (gateway->handlers.draining)
        return;
    log_info("draining", "gateway=%s connections=%zu", gateway->id,
             gateway->handlers.session_count);
    gateway->handlers.draining = true;
    gateway->handlers.connections.close_timeout_ms = DRAIN_CLOSE_TIMEOUT_MS;
    listener_close(&gateway->listener);
    struct drain_walk walk = {.gateway = gateway, .total = gateway->handlers.session_count};
    table_each(&gateway->router.routes, drain_route, &walk);
    http_session_drain(&gateway->rest);
    echo_end_all(&gateway->rest.echoes);
    last_seen_flush(&gateway->last_seen);
    loop_set_timer(&gateway->loop, &gateway->drain_deadline,
                   gateway->loop.clock.now_ms +
                       gateway->parts.config->gateway.shutdown.drain_timeout_ms);
}

/* What the last to leave left behind is written at once: nobody is held up by it any more. */
static bool is_drained(struct gateway *gateway)
{
    if (!gateway->handlers.draining || gateway->handlers.connections.count ||
        gateway->rest.http_count)
        return false;
    if (!gateway->last_seen.flushing)
        last_seen_flush(&gateway->last_seen);
    bool time_is_up = !wheel_is_set(&gateway->drain_deadline);
    return (gateway_messages_idle(&gateway->messages) || time_is_up) &&
           last_seen_idle(&gateway->last_seen) &&
           audience_idle(&gateway->presence.audience);
}

/* ---- orders from other threads ---- */

struct order {
    struct mail mail;
    struct key_set *keys;
    struct tls_context *tls;
};

static void open_drain(struct mail *mail, void *owner)
{
    free(CONTAINER_OF(mail, struct order, mail));
    start_drain(owner);
}

static void open_use(struct mail *mail, void *owner)
{
    struct order *order = CONTAINER_OF(mail, struct order, mail);
    struct gateway *gateway = owner;
    verifier_use(&gateway->verifier, order->keys);
    if (order->tls) {
        tls_context_drop(&gateway->rest.tls);
        gateway->rest.tls = order->tls;
    }
    free(order);
}

static bool give_order(struct gateway *gateway, const struct order *order)
{
    struct order *copy = malloc(sizeof(*copy));
    if (!copy)
        return false;
    *copy = *order;
    if (mailbox_post(&gateway->mailbox, &copy->mail))
        return true;
    free(copy);
    return false;
}

bool gateway_drain(struct gateway *gateway)
{
    return give_order(gateway, &(struct order){.mail.open = open_drain});
}

bool gateway_use(struct gateway *gateway, struct key_set *keys, struct tls_context *tls)
{
    return give_order(gateway, &(struct order){.mail.open = open_use, .keys = keys, .tls = tls});
}

/* ---- time ---- */

static void housekeep(struct wheel_timer *timer)
{
    struct gateway *gateway = CONTAINER_OF(timer, struct gateway, housekeeping);
    int64_t now_ms = gateway->loop.clock.now_ms;
    struct gateway_info info = {
        .gateway_id = gateway->handlers.gateway_id,
        .connections = gateway->handlers.session_count,
        .started_at_ms = gateway->parts.started_at_ms,
        .draining = gateway->handlers.draining,
    };
    state_put_gateway(gateway->store, &info);
    gateway_messages_tick(&gateway->messages);
    last_seen_tick(&gateway->last_seen);
    memory_pressure_check(&gateway->rest);
    metrics_set(&gateway->metrics, METRIC_ROUTING_KEYS_COUNT, (int64_t)gateway->router.routes.size);
    metrics_set(&gateway->metrics, METRIC_REDIS_AVAILABLE, state_available(gateway->store));
    metrics_set(&gateway->metrics, METRIC_GATEWAY_REDIS_AVAILABLE, state_available(gateway->store));
    if (gateway->index == 0) {
        struct memory_state_counts counts = memory_state_count(gateway->parts.state, now_ms);
        metrics_set(&gateway->metrics, METRIC_ROUTING_MULTI_DEVICE_USERS,
                    (int64_t)counts.users_multi_device);
        metrics_set(&gateway->metrics, METRIC_PRESENCE_STALE_ENTRIES,
                    (int64_t)counts.leases_overdue);
        exposition_sample(gateway->parts.exposition, now_ms);
    }
    loop_set_timer(&gateway->loop, timer, now_ms + HOUSEKEEPING_MS);
}

static void reap(struct wheel_timer *timer)
{
    struct gateway *gateway = CONTAINER_OF(timer, struct gateway, reaping);
    loop_set_timer(&gateway->loop, timer,
                   gateway->loop.clock.now_ms + gateway->parts.config->presence.reap_interval_ms);
    presence_reap(&gateway->presence);
    call_plane_tick(&gateway->calls);
}

/* ---- events from the bus ---- */

static void received(void *arg, struct slice topic, struct slice payload)
{
    struct gateway *gateway = arg;
    struct slice chat_id;
    enum chat_topic chat_topic = chat_topic_parse(topic, &chat_id);
    if (presence_topic_user(topic).data)
        presence_received(&gateway->presence, topic, payload);
    else if (chat_topic != CHAT_TOPIC_NONE)
        chat_received(&gateway->chats, chat_topic, chat_id, payload);
    else if (push_is(payload))
        push_received(&gateway->presence, payload);
    else
        delivery_received(&gateway->delivery, payload);
}

static void close_session(void *arg, struct slice user_id, const struct ulid *conn_id)
{
    struct session *session = session_find(arg, user_id, conn_id);
    if (session)
        connection_end(&session->connection, CLOSING_ADMIN, -1);
}

static void accepted(void *arg, int fd)
{
    http_session_accept(arg, fd);
}

/* ---- composition ---- */

static void compose_identity(struct gateway *gateway)
{
    const char *node_id = gateway->parts.config->gateway.node_id;
    if (gateway->parts.workers == 1)
        snprintf(gateway->id, sizeof(gateway->id), "%s", node_id);
    else
        snprintf(gateway->id, sizeof(gateway->id), "%s-%zu", node_id, gateway->index);
    gateway->handlers.gateway_id = slice_of(gateway->id);
}

static bool compose_ports(struct gateway *gateway)
{
    gateway->store = memory_state_store(gateway->parts.state, &gateway->loop.clock);
    gateway->bus = mailbox_bus_make(gateway->parts.exchange, gateway->index, &gateway->mailbox,
                                    &gateway->metrics, received, gateway);
    ledger_client_init(&gateway->ledger, gateway->parts.ledger, &gateway->loop.clock,
                       ledger_inbox_post, &gateway->ledger_inbox);
    gateway->typing.store = memory_typing_store(gateway->parts.typing, &gateway->loop.clock);
    gateway->calls.store = memory_calls_store(gateway->parts.calls, &gateway->loop.clock);
    struct circle_store *circles =
        memory_circles_store(gateway->parts.circles, gateway->store, &gateway->loop.clock);
    return circles &&
           audience_init(&gateway->presence.audience, circles, gateway->parts.hash_seed) &&
           gateway->store && gateway->bus && gateway->typing.store && gateway->calls.store;
}

static bool compose_chats(struct gateway *gateway)
{
    const struct config *config = gateway->parts.config;
    struct typing_plane *typing = &gateway->typing;
    typing->config = config;
    typing->clock = &gateway->loop.clock;
    typing->bus = gateway->bus;
    typing->metrics = &gateway->metrics;
    typing->rooms = (struct typing_rooms){
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
    gateway->handlers.chats = &gateway->chats;
    gateway->handlers.typing = typing;
    return typing_rooms_init(&typing->rooms, gateway->parts.hash_seed);
}

static bool compose_calls(struct gateway *gateway)
{
    gateway->calls.presence = &gateway->presence;
    gateway->calls.delivery = &gateway->delivery;
    gateway->calls.random = &gateway->random;
    gateway->calls.is_connected = session_is_connected;
    gateway->calls.arg = &gateway->handlers;
    gateway->handlers.calls = &gateway->calls;
    return call_plane_init(&gateway->calls, gateway->parts.hash_seed);
}

static void sent_a_message(void *arg, struct slice chat_id, struct slice user_id)
{
    struct gateway *gateway = arg;
    typing_ended(&gateway->typing, chat_id, user_id);
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
        .hash_seed = gateway->parts.hash_seed,
        .started_at_ms = gateway->parts.started_at_ms,
        .replays = gateway->index == 0,
    };
    gateway->handlers.messages = &gateway->messages.plane;
    if (!gateway_messages_make(&gateway->messages, &parts))
        return false;
    gateway->messages.plane.sent = sent_a_message;
    gateway->messages.plane.sent_arg = gateway;
    return true;
}

static bool compose_planes(struct gateway *gateway)
{
    const struct config *config = gateway->parts.config;
    struct handler_context *handlers = &gateway->handlers;
    gateway->presence.config = config;
    gateway->presence.clock = &gateway->loop.clock;
    gateway->presence.store = gateway->store;
    gateway->presence.bus = gateway->bus;
    gateway->presence.router = &gateway->router;
    gateway->presence.ledger = &gateway->ledger;
    gateway->presence.last_seen = &gateway->last_seen;
    gateway->presence.metrics = &gateway->metrics;
    gateway->presence.lost = session_lease_lost;
    gateway->presence.lost_arg = handlers;
    presence_init(&gateway->presence);

    handlers->config = config;
    handlers->loop = &gateway->loop;
    handlers->random = &gateway->random;
    handlers->metrics = &gateway->metrics;
    handlers->encoder = &gateway->encoder;
    handlers->router = &gateway->router;
    handlers->delivery = &gateway->delivery;
    handlers->presence = &gateway->presence;
    handlers->ledger = &gateway->ledger;
    handlers->verifier = &gateway->verifier;
    if (!connection_context_init(&handlers->connections, config, &gateway->loop, &gateway->encoder,
                                 &gateway->metrics, &gateway->random))
        return false;
    context_init_tasks(handlers);

    gateway->rest.handlers = handlers;
    gateway->rest.streams = &gateway->streams;
    gateway->rest.exposition = gateway->parts.exposition;
    gateway->rest.dev_signer = gateway->parts.dev_signer;
    gateway->rest.drain = gateway->parts.drain;
    gateway->rest.drain_arg = gateway->parts.drain_arg;
    gateway->rest.connections_max = gateway->parts.connections_max;
    list_init(&gateway->rest.https);
    list_init(&gateway->rest.echoes);

    gateway->delivery = (struct delivery){
        .router = &gateway->router,
        .store = gateway->store,
        .metrics = &gateway->metrics,
        .is_connection = session_is_connection,
        .is_device = session_is_device,
        .close = close_session,
        .arg = handlers,
    };
    return true;
}

static void compose_verifier(struct gateway *gateway)
{
    const struct config *config = gateway->parts.config;
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    policy.issuer = slice_of(config->auth.issuer);
    policy.audience = slice_of(config->auth.audience);
    verifier_init(&gateway->verifier, NULL, &policy, config->gateway.handshakes_per_turn,
                  config->gateway.pending_handshakes_max);
}

struct gateway *gateway_make(const struct gateway_parts *parts, size_t index)
{
    struct gateway *gateway = calloc(1, sizeof(*gateway));
    if (!gateway)
        return NULL;
    gateway->parts = *parts;
    gateway->index = index;
    gateway->listener.source.fd = -1;
    random_init_system(&gateway->random);
    encoder_init(&gateway->encoder);
    compose_identity(gateway);
    compose_verifier(gateway);
    if (!loop_init(&gateway->loop) || !mailbox_init(&gateway->mailbox, &gateway->loop, gateway) ||
        !stream_set_init(&gateway->streams, &gateway->loop) ||
        !ledger_inbox_init(&gateway->ledger_inbox, &gateway->loop) || !compose_ports(gateway) ||
        !router_init(&gateway->router, parts->hash_seed, gateway->bus, &gateway->encoder,
                     session_deliver) ||
        !last_seen_init(&gateway->last_seen, &gateway->ledger, parts->hash_seed) ||
        !compose_planes(gateway) || !compose_chats(gateway) ||
        !compose_messages(gateway) || !compose_calls(gateway))
        return NULL; /* the process gives up: nothing is worth unwinding */
    gateway->housekeeping.fire = housekeep;
    gateway->reaping.fire = reap;
    gateway->drain_deadline.fire = drain_time_is_up;
    exposition_add(parts->exposition, &gateway->metrics);
    return gateway;
}

bool gateway_listen(struct gateway *gateway, uint16_t port, char error[GATEWAY_ERROR_TEXT_MAX])
{
    const struct config_gateway *config = &gateway->parts.config->gateway;
    struct listener_options options = {
        .address = config->listen,
        .port = port,
        .backlog = (int)config->listen_backlog,
        .unsent_bytes_max = config->socket_unsent_bytes_max,
    };
    return listener_open(&gateway->listener, &gateway->loop, &options, accepted, &gateway->rest,
                         error);
}

uint16_t gateway_port(const struct gateway *gateway)
{
    return gateway->listener.port;
}

static void start(struct gateway *gateway)
{
    char topic[ROUTER_TOPIC_BYTES_MAX];
    bus_subscribe(gateway->bus, delivery_topic(topic, gateway->handlers.gateway_id));
    housekeep(&gateway->housekeeping);
    reap(&gateway->reaping);
    gateway_messages_start(&gateway->messages);
}

void gateway_run(struct gateway *gateway)
{
    start(gateway);
    while (!is_drained(gateway))
        loop_turn(&gateway->loop, -1);
    gateway_messages_stop(&gateway->messages);
}

void gateway_free(struct gateway **gateway)
{
    struct gateway *freed = *gateway;
    *gateway = NULL;
    if (!freed)
        return;
    verifier_free(&freed->verifier);
    mailbox_free(&freed->mailbox);
    ledger_inbox_free(&freed->ledger_inbox);
    gateway_messages_free(&freed->messages);
    presence_free(&freed->presence);
    audience_free(&freed->presence.audience);
    last_seen_free(&freed->last_seen);
    call_plane_free(&freed->calls);
    call_store_free(&freed->calls.store);
    typing_rooms_free(&freed->typing.rooms);
    typing_store_free(&freed->typing.store);
    router_free(&freed->router);
    bus_free(&freed->bus);
    state_store_free(&freed->store);
    connection_context_free(&freed->handlers.connections);
    encoder_free(&freed->encoder);
    stream_set_free(&freed->streams);
    tls_context_drop(&freed->rest.tls);
    loop_free(&freed->loop);
    free(freed);
}
