/* The drain: all clients are told at once, and each connection is closed at its own time. */
#include "app/gateway/gateway_internal.h"
#include "base/container.h"
#include "ledger/refusal.h"
#include "log/log.h"
#include "redis/redis_client.h"
#include "session/echo.h"
#include "socketio/handover.h"
#include "socketio/socketio_join.h"

enum {
    DRAIN_RECONNECT_MIN_MS = 1000, /* spread the reconnects over at least this time */
    DRAIN_RECONNECT_PER_CONNECTION_MS = 2,
    DRAIN_CLOSE_TIMEOUT_MS = 1000, /* how long a client may take to answer the close frame */
};

struct drain_walk {
    struct gateway *gateway;
    size_t visited;
    size_t total;
};

/* The n-th of N sessions is closed at n/N of four fifths of the drain time; a single one at once. */
static void drain_gateway_route(struct table_node *node, void *arg)
{
    struct drain_walk *walk = arg;
    struct gateway *gateway = walk->gateway;
    struct route *route = CONTAINER_OF(node, struct route, node);
    int64_t closings_ms = gateway->parts.config->gateway.shutdown.drain_timeout_ms * 4 / 5;
    uint64_t spread_ms = DRAIN_RECONNECT_MIN_MS + walk->total * DRAIN_RECONNECT_PER_CONNECTION_MS;
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next) {
        struct session *session = session_on_route(at);
        int64_t after_ms = closings_ms * (int64_t)walk->visited++ / (int64_t)walk->total;
        connection_end_at(&session->connection, CLOSING_DRAINING,
                          gateway->loop.clock.now_ms + after_ms,
                          after_ms + (int64_t)random_below(&gateway->random, spread_ms));
    }
}

void gateway_on_drain_timeout(struct wheel_timer *timer)
{
    struct gateway *gateway = CONTAINER_OF(timer, struct gateway, drain_deadline);
    gateway_hooks_close(&gateway->hooks); /* clients that wait for the application get an answer */
    fd_passing_close(&gateway->fd_passing);
    http_listener_shut(&gateway->rest.listener);
    http_listener_close_all(&gateway->rest.listener);
    http_listener_shut(&gateway->rest.operations);
    http_listener_close_all(&gateway->rest.operations);
}

void gateway_start_drain(struct gateway *gateway)
{
    if (gateway->sessions.draining)
        return;
    log_info("draining", "gateway=%s connections=%zu", gateway->id,
             gateway->sessions.session_count);
    gateway->sessions.draining = true;
    gateway->sessions.connections.close_timeout_ms = DRAIN_CLOSE_TIMEOUT_MS;
    listener_close(&gateway->listener);
    struct drain_walk walk = {.gateway = gateway, .total = gateway->sessions.session_count};
    table_each(&gateway->router.routes, drain_gateway_route, &walk);
    http_listener_drain(&gateway->rest.listener);
    echo_end_all(&gateway->rest.echoes);
    socketio_end_waiting(&gateway->socketio);
    last_seen_flush(&gateway->last_seen);
    dwell_stop(&gateway->presence.dwell);
    loop_set_timer(&gateway->loop, &gateway->drain_deadline,
                   gateway->loop.clock.now_ms +
                       gateway->parts.config->gateway.shutdown.drain_timeout_ms);
}

void gateway_stop(struct gateway *gateway)
{
    control_socket_close(&gateway->control[0]);
    control_socket_close(&gateway->control[1]);
    gateway_messages_stop(&gateway->messages);
    if (gateway->webhooks)
        webhook_sender_stop(gateway->webhooks);
    revocation_watch_stop(&gateway->revocations);
    ledger_client_close(&gateway->ledger);
    fd_passing_close(&gateway->fd_passing);
    http_listener_shut(
        &gateway->rest.listener); /* for connections that the mailbox may still hold */
    http_listener_shut(&gateway->rest.operations);
}

/* Each port refuses new work by now, so completions that start operations come to an end. */
bool gateway_finish(struct gateway *gateway)
{
    bool had_work = !mailbox_is_empty(&gateway->mailbox) || ledger_client_is_owed(&gateway->ledger);
    gateway_hooks_close(&gateway->hooks);
    worker_ports_close(&gateway->ports);
    mailbox_drain(&gateway->mailbox);
    ledger_request_inbox_drain(&gateway->ledger_inbox);
    refusal_answer_all(&gateway->ledger);
    return had_work;
}

/* Idle HTTP connections stay until the last session is gone, so that a load balancer can see the drain in
 * /readyz. The last-seen times of the last sessions are written at once, not with the next batch. */
bool gateway_is_drained(struct gateway *gateway)
{
    if (!gateway->sessions.draining || gateway->sessions.connections.count)
        return false;
    /* No session is left, so no further request is moved here; those moved before are still in the
     * mailbox. */
    fd_passing_close(&gateway->fd_passing);
    handover_leave(&gateway->socketio);
    if (!mailbox_is_empty(&gateway->mailbox))
        return false;
    http_listener_close_idle(&gateway->rest.listener);
    if (gateway->rest.listener.connection_count)
        return false;
    bool time_is_up = !wheel_is_set(&gateway->drain_deadline);
    bool is_operated = gateway->operations.source.fd >= 0;
    if (is_operated && !time_is_up && !handover_all_left(&gateway->socketio))
        return false; /* operators see the drain of all workers until its end */
    listener_close(&gateway->operations);
    http_listener_close_idle(&gateway->rest.operations);
    if (gateway->rest.operations.connection_count)
        return false;
    if (!gateway->last_seen.flushing)
        last_seen_flush(&gateway->last_seen);
    return time_is_up ||
           (gateway_messages_idle(&gateway->messages) && last_seen_idle(&gateway->last_seen) &&
            dwell_is_idle(&gateway->presence.dwell) &&
            graph_reader_is_idle(&gateway->presence.graphs) && gateway_backends_leave(gateway));
}
