#include "app/gateway/gateway.h"

#include "app/gateway/gateway_internal.h"
#include "app/gateway/memory_pressure.h"
#include "base/container.h"
#include "log/log.h"
#include "presence/presence_event.h"
#include "presence/push.h"
#include "redis/redis_client.h"
#include "routing/delivery_payload.h"
#include "session/session_token.h"
#include "socketio/handover.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOUSEKEEPING_MS = 1000,
    REPORTS_PER_WINDOW = 4,
    REPORT_MS = 200, /* in a fleet: report a changed connection count at most this often */
};

/* ---- orders from other threads ---- */

struct reload_order {
    struct mail mail;
    struct key_set *keys;
    struct tls_context *tls;
};

static void on_drain_ordered(struct mail *mail, void *owner)
{
    (void)mail; /* part of the gateway */
    gateway_start_drain(owner);
}

/* A removed key ends the sessions that rest on it. */
static void use_gateway_keys(struct gateway *gateway, struct key_set *keys)
{
    const struct key_set *old = gateway->verifier.keys;
    bool removes = old && !key_set_is_within(old, keys);
    verifier_use(&gateway->verifier, keys);
    if (removes)
        session_end_without_key(&gateway->sessions);
    loop_defer(&gateway->loop, &gateway->sessions.verify); /* tokens may have waited for the keys */
}

static void on_reload_ordered(struct mail *mail, void *owner)
{
    struct reload_order *order = CONTAINER_OF(mail, struct reload_order, mail);
    struct gateway *gateway = owner;
    if (order->keys)
        use_gateway_keys(gateway, order->keys);
    if (order->tls) {
        tls_context_drop(&gateway->rest.listener.tls);
        tls_context_drop(&gateway->rest.operations.tls);
        gateway->rest.listener.tls = order->tls;
        gateway->rest.operations.tls = tls_context_share(order->tls);
    }
    free(order);
}

/* If the mailbox is full, the housekeeping sees the flag within a second. */
void gateway_drain(struct gateway *gateway)
{
    if (atomic_exchange(&gateway->drain_ordered, true))
        return;
    gateway->drain_order.on_open = on_drain_ordered;
    mailbox_post(&gateway->mailbox, &gateway->drain_order);
}

bool gateway_use(struct gateway *gateway, struct key_set *keys, struct tls_context *tls)
{
    struct reload_order *order = malloc(sizeof(*order));
    if (order) {
        *order = (struct reload_order){.mail.on_open = on_reload_ordered, .keys = keys, .tls = tls};
        if (mailbox_post(&gateway->mailbox, &order->mail))
            return true;
        free(order);
    }
    key_set_release(&keys);
    tls_context_drop(&tls);
    return false;
}

/* ---- time ---- */

struct gateway_info gateway_describe(const struct gateway *gateway)
{
    const struct fleet *fleet = gateway->parts.fleet;
    return (struct gateway_info){
        .gateway_id = gateway->sessions.gateway_id,
        .connections = gateway->sessions.session_count,
        .started_at_ms = gateway->parts.started_at_ms,
        .draining = gateway->sessions.draining,
        .peer_address = fleet ? slice_of(fleet->peer_address) : SLICE(""),
    };
}

void gateway_report(struct gateway *gateway)
{
    struct gateway_info info = gateway_describe(gateway);
    gateway->connections_reported = info.connections;
    gateway->draining_reported = info.draining;
    gateway->reported_at_ms = gateway->loop.clock.now_ms;
    if (gateway->claim == GATEWAY_CLAIMED)
        state_put_gateway(gateway->ports.store, &info);
}

/* Whether the record must be written again, though the connection count has not changed: it lives for a window. */
static bool is_gateway_report_due(const struct gateway *gateway)
{
    int64_t interval_ms = gateway->parts.config->presence.expiry_window_ms / REPORTS_PER_WINDOW;
    return gateway->loop.clock.now_ms >= gateway->reported_at_ms + interval_ms ||
           gateway->sessions.draining != gateway->draining_reported ||
           !state_available(gateway->ports.store);
}

/* Returns when a changed connection count is due to be reported (monotonic): in a single process at once. INT64_MAX: it
 * has not changed. */
static int64_t gateway_report_due_ms(const struct gateway *gateway)
{
    bool reported = gateway->sessions.session_count == gateway->connections_reported;
    return reported ? INT64_MAX : gateway->reported_at_ms + (gateway->parts.fleet ? REPORT_MS : 0);
}

/* Runs one turn of the loop, then the work that cannot wait for the housekeeping. */
static void gateway_turn(struct gateway *gateway)
{
    int64_t report_ms = gateway_report_due_ms(gateway);
    int64_t last_seen_ms = last_seen_due_ms(&gateway->last_seen);
    int64_t due_ms = report_ms < last_seen_ms ? report_ms : last_seen_ms;
    int64_t left_ms = due_ms - gateway->loop.clock.now_ms;
    int wait_ms = -1;
    if (due_ms != INT64_MAX)
        wait_ms = left_ms < 0 ? 0 : (int)left_ms; /* both are due within seconds */
    loop_turn(&gateway->loop, wait_ms);
    if (gateway->loop.clock.now_ms >= gateway_report_due_ms(gateway))
        gateway_report(gateway);
    last_seen_tick(&gateway->last_seen);
}

void gateway_sample(void *arg)
{
    struct gateway *gateway = arg;
    const struct connection_context *connections = &gateway->sessions.connections;
    size_t unhealthy_per_mille =
        connections->count ? connections->unhealthy_count * 1000 / connections->count : 0;
    bool redis = worker_ports_reach_redis(&gateway->ports);
    gateway_messages_sample(&gateway->messages);
    gateway_hooks_sample(&gateway->hooks);
    if (gateway->webhooks)
        webhook_sender_sample(gateway->webhooks);
    metrics_set(&gateway->metrics, METRIC_ROUTING_KEYS_COUNT,
                (int64_t)(connections->count + gateway->router.routes.size));
    metrics_set(&gateway->metrics, METRIC_PRESENCE_STALE_RATIO, (int64_t)unhealthy_per_mille);
    metrics_set(&gateway->metrics, METRIC_STATE_AVAILABLE, state_available(gateway->ports.store));
    metrics_set(&gateway->metrics, METRIC_REDIS_AVAILABLE, redis);
    metrics_set(&gateway->metrics, METRIC_GATEWAY_REDIS_AVAILABLE, redis);
}

void gateway_housekeep(struct wheel_timer *timer)
{
    struct gateway *gateway = CONTAINER_OF(timer, struct gateway, housekeeping);
    int64_t now_ms = gateway->loop.clock.now_ms;
    if (atomic_load(&gateway->drain_ordered))
        gateway_start_drain(gateway);
    if (is_gateway_report_due(gateway))
        gateway_report(gateway);
    gateway_backends_tick(gateway);
    gateway_messages_tick(&gateway->messages);
    last_seen_tick(&gateway->last_seen);
    revocation_watch_tick(&gateway->revocations);
    if (verifier_end_waits(&gateway->verifier, &gateway->loop.clock))
        loop_defer(&gateway->loop, &gateway->sessions.verify);
    memory_pressure_check(&gateway->pressure, &gateway->rest);
    gateway_sample(gateway);
    if (gateway->index == 0)
        exposition_sample(gateway->parts.exposition, now_ms);
    loop_set_timer(&gateway->loop, timer, now_ms + HOUSEKEEPING_MS);
}

void gateway_reap(struct wheel_timer *timer)
{
    struct gateway *gateway = CONTAINER_OF(timer, struct gateway, reaping);
    loop_set_timer(&gateway->loop, timer,
                   gateway->loop.clock.now_ms + gateway->parts.config->presence.reap_interval_ms);
    presence_reap(&gateway->presence);
    call_plane_tick(&gateway->calls);
}

void gateway_on_memory_grown(struct memory_account *account)
{
    struct gateway *gateway = CONTAINER_OF(account, struct gateway, sessions.connections.memory);
    account->check_above = INT64_MAX; /* until it is checked */
    loop_defer(&gateway->loop, &gateway->memory_check);
}

void gateway_check_memory(struct loop_task *task)
{
    struct gateway *gateway = CONTAINER_OF(task, struct gateway, memory_check);
    memory_pressure_check(&gateway->pressure, &gateway->rest);
}

/* ---- events from the bus ---- */

void gateway_on_event(void *arg, struct slice topic, struct slice payload)
{
    struct gateway *gateway = arg;
    struct slice chat_id;
    enum chat_topic chat_topic = chat_topic_parse(topic, &chat_id);
    if (presence_topic_user(topic).data)
        presence_received(&gateway->presence, topic, payload);
    else if (chat_topic != CHAT_TOPIC_NONE)
        chat_received(&gateway->chats, chat_topic, chat_id, payload);
    else if (slice_equal(topic, REVOCATION_WATCH_TOPIC))
        revocation_watch_on_event(&gateway->revocations, payload);
    else
        delivery_received(&gateway->receiver, topic, payload);
}

void gateway_on_gap(void *arg, struct slice topic)
{
    struct gateway *gateway = arg;
    if (slice_equal(topic, REVOCATION_WATCH_TOPIC) || !topic.data)
        revocation_watch_on_gap(&gateway->revocations);
    resync_gap(&gateway->presence, topic);
}

void gateway_close_session(void *arg, struct slice user_id, const struct ulid *conn_id,
                           enum closing_reason reason)
{
    struct session *session = session_find(arg, user_id, conn_id);
    if (session)
        connection_end(&session->connection, reason, -1);
}

void gateway_on_displaced(void *arg, struct slice gateway_id, struct slice user_id,
                          const struct ulid *conn_id)
{
    delivery_close(((struct session_context *)arg)->delivery, gateway_id, user_id, conn_id,
                   CLOSING_TOO_MANY_CONNECTIONS);
}

/* ---- life ---- */

static void on_client_accepted(void *arg, int fd)
{
    http_listener_accept(arg, fd);
}

/* Operators come one by one, so one worker serves them for the process. */
static bool listen_for_operators(struct gateway *gateway, char error[GATEWAY_ERROR_TEXT_MAX])
{
    const struct config *config = gateway->parts.config;
    struct listener_options options = {
        .address = config->ops.listen,
        .accept_queue_max = API_OPERATIONS_CONNECTIONS_MAX,
        .unsent_bytes_max = config->gateway.socket_unsent_bytes_max,
    };
    char why[LISTENER_ERROR_TEXT_MAX];
    if (gateway->index > 0 || !gateway->rest.has_operations ||
        listener_open(&gateway->operations, &gateway->loop, &options, on_client_accepted,
                      &gateway->rest.operations, why))
        return true;
    snprintf(error, GATEWAY_ERROR_TEXT_MAX, "ops.listen: %.400s", why);
    return false;
}

bool gateway_listen(struct gateway *gateway, uint16_t port, char error[GATEWAY_ERROR_TEXT_MAX])
{
    const struct config_gateway *config = &gateway->parts.config->gateway;
    struct listener_options options = {
        .address = config->listen,
        .port = port,
        .joins = config->share_port || gateway->index > 0,
        .shared = config->share_port || gateway->parts.workers > 1,
        .accept_queue_max = (int)config->listen_backlog,
        .unsent_bytes_max = config->socket_unsent_bytes_max,
    };
    /* Only polling clients of several processes on one port need descriptor passing, so a failure does not
     * stop the server. */
    if (gateway->parts.board && !handover_open(&gateway->fd_passing, &gateway->socketio))
        log_warn("fd_passing_not_open", "gateway=%s error=%s", gateway->id,
                 log_sentence(slice_of(strerror(errno))));
    if (listener_open(&gateway->listener, &gateway->loop, &options, on_client_accepted,
                      &gateway->rest.listener, error))
        return listen_for_operators(gateway, error) && gateway_backends_listen(gateway, error);
    if (errno == EADDRINUSE)
        snprintf(
            error, GATEWAY_ERROR_TEXT_MAX,
            "another process has %s: choose another address with --listen (port 0 takes a free one), or set "
            "gateway.share_port=true for every process that is to share it",
            config->listen);
    return false;
}

uint16_t gateway_port(const struct gateway *gateway)
{
    return gateway->listener.port;
}

uint16_t gateway_operations_port(const struct gateway *gateway)
{
    return gateway->operations.port;
}

void gateway_open_control(struct gateway *gateway)
{
    const struct config *config = gateway->parts.config;
    struct slice scheme = SLICE("sqlite:");
    char path[PATH_MAX];
    control_socket_open(&gateway->control[0], &gateway->loop, config->data_dir, &gateway->ledger,
                        &gateway->random);
    if (!slice_starts_with(slice_of(config->ledger.url), scheme))
        return;
    snprintf(path, sizeof(path), "%s", config->ledger.url + scheme.len);
    const char *directory = dirname(path);
    if (strcmp(directory, config->data_dir) != 0)
        control_socket_open(&gateway->control[1], &gateway->loop, directory, &gateway->ledger,
                            &gateway->random);
}

void gateway_start(struct gateway *gateway)
{
    char topic[DELIVERY_TOPIC_BYTES_MAX];
    bus_subscribe(gateway->ports.bus, delivery_topic(topic, gateway->sessions.gateway_id));
    bus_subscribe(gateway->ports.bus, BUS_TOPIC_ALL);
    gateway_backends_start(gateway);
    gateway_housekeep(&gateway->housekeeping);
    gateway_reap(&gateway->reaping);
    gateway_messages_start(&gateway->messages);
    revocation_watch_start(&gateway->revocations);
    if (gateway->webhooks)
        webhook_sender_start(gateway->webhooks);
}

void gateway_run(struct gateway *gateway)
{
    gateway_start(gateway);
    while (!gateway_is_drained(gateway))
        gateway_turn(gateway);
    gateway_stop(gateway);
}
