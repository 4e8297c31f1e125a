/* Leaving in good order: everybody is told at once, and goes at a time of their own. */
#include "app/gateway_internal.h"
#include "base/container.h"
#include "log/log.h"
#include "session/echo.h"
#include "socketio/handover.h"
#include "socketio/socketio_session.h"

enum {
    DRAIN_RECONNECT_MIN_MS = 1000, /* reconnects of a drain are spread over at least this */
    DRAIN_RECONNECT_PER_CONNECTION_MS = 2,
    DRAIN_CLOSE_TIMEOUT_MS = 1000, /* how long a peer may take to answer our close frame then */
};

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
        struct session *session = session_on_route(at);
        int64_t after_ms = window_ms * (int64_t)walk->told++ / (int64_t)walk->total;
        connection_end_at(&session->connection, CLOSING_DRAINING,
                          gateway->loop.clock.now_ms + after_ms,
                          after_ms + (int64_t)random_below(&gateway->random, spread_ms));
    }
}

void gateway_drain_time_is_up(struct wheel_timer *timer)
{
    struct gateway *gateway = CONTAINER_OF(timer, struct gateway, drain_deadline);
    fd_passing_close(&gateway->passage);
    http_listener_shut(&gateway->rest.door);
    http_listener_close_all(&gateway->rest.door);
}

void gateway_start_drain(struct gateway *gateway)
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
    http_listener_drain(&gateway->rest.door);
    echo_end_all(&gateway->rest.echoes);
    socketio_end_waiting(&gateway->handlers);
    last_seen_flush(&gateway->last_seen);
    loop_set_timer(&gateway->loop, &gateway->drain_deadline,
                   gateway->loop.clock.now_ms +
                       gateway->parts.config->gateway.shutdown.drain_timeout_ms);
}

/* With the last session gone, nobody has to bring requests for one any more. False: some were brought before. */
static bool leave_handover(struct gateway *gateway)
{
    fd_passing_close(&gateway->passage);
    handover_leave(&gateway->rest);
    return mailbox_is_empty(&gateway->mailbox);
}

/* Idle HTTP connections stay until the last session has gone, so that a load balancer that keeps one is
 * told of the drain by /readyz; they hold nobody up. What the last to leave left behind is written at
 * once: nobody is held up by that either. */
bool gateway_is_drained(struct gateway *gateway)
{
    if (!gateway->handlers.draining || gateway->handlers.connections.count ||
        !leave_handover(gateway))
        return false;
    http_listener_close_idle(&gateway->rest.door);
    if (gateway->rest.door.session_count)
        return false;
    if (!gateway->last_seen.flushing)
        last_seen_flush(&gateway->last_seen);
    bool time_is_up = !wheel_is_set(&gateway->drain_deadline);
    return time_is_up ||
           (gateway_messages_idle(&gateway->messages) && last_seen_idle(&gateway->last_seen) &&
            audience_idle(&gateway->presence.audience) && gateway_backends_left(gateway));
}
