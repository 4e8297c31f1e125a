/* The end of a connection: send the reason, then a close frame with the matching code, flush, close. */
#include "connection/connection_internal.h"
#include "protocol/websocket/websocket_encode.h"

enum {
    CLOSE_TOKEN = 4001,
    CLOSE_HEARTBEAT = 4002,
    CLOSE_SLOW_CONSUMER = 4003,
    CLOSE_OVERLOAD = 4004,
    CLOSE_ADMIN = 4005,
    CLOSE_TOO_MANY_CONNECTIONS = 4006,
};

static const unsigned CLOSE_CODES[CLOSING_REASON_COUNT] = {
    [CLOSING_SLOW_CONSUMER] = CLOSE_SLOW_CONSUMER,
    [CLOSING_DRAINING] = WEBSOCKET_CLOSE_GOING_AWAY,
    [CLOSING_MAX_LIFETIME] = WEBSOCKET_CLOSE_GOING_AWAY,
    [CLOSING_MEMORY_PRESSURE] = CLOSE_OVERLOAD,
    [CLOSING_HEARTBEAT_TIMEOUT] = CLOSE_HEARTBEAT,
    [CLOSING_TOKEN_EXPIRED] = CLOSE_TOKEN,
    [CLOSING_UPSTREAM_FAILURE] = CLOSE_OVERLOAD,
    [CLOSING_ADMIN] = CLOSE_ADMIN,
    [CLOSING_TOKEN_REVOKED] = CLOSE_TOKEN,
    [CLOSING_KEY_REMOVED] = CLOSE_TOKEN,
    [CLOSING_RATE_LIMITED] = CLOSE_OVERLOAD,
    [CLOSING_TOO_MANY_CONNECTIONS] = CLOSE_TOO_MANY_CONNECTIONS,
};

struct blob *connection_make_spare_close(void)
{
    uint8_t header[WEBSOCKET_HEADER_BYTES_MAX];
    char payload[WEBSOCKET_CONTROL_BYTES_MAX];
    size_t len = websocket_close_write(payload, CLOSE_OVERLOAD,
                                       slice_of(closing_reason_name(CLOSING_MEMORY_PRESSURE)));
    size_t header_len = websocket_header_write(header, WEBSOCKET_OPCODE_CLOSE, len);
    return blob_make((struct slice){(const char *)header, header_len},
                     (struct slice){payload, len});
}

void connection_hang_up(struct connection *connection)
{
    if (connection->carried)
        connection->owner->transport->close(connection);
    else
        stream_close(&connection->stream);
}

void connection_finish_ending(struct connection *connection)
{
    if (connection->state != CONNECTION_ENDING || connection->outbound.count)
        return;
    if (connection->close_owed) /* an empty queue takes one blob without allocating */
        connection->close_owed =
            !connection_push(connection, blob_share(connection->context->spare_close), 0);
    else if (connection->close_received || connection->carried)
        connection_hang_up(connection); /* a transport has no close frame to wait for */
    else if (connection->broken)
        stream_shutdown(&connection->stream);
}

void connection_start_ending(struct connection *connection, unsigned code, struct slice reason)
{
    char payload[WEBSOCKET_CONTROL_BYTES_MAX];
    size_t len = websocket_close_write(payload, code, reason);
    connection->close_owed =
        !connection_send_frame(connection, WEBSOCKET_OPCODE_CLOSE, (struct slice){payload, len}, 0);
    connection->ends_at_ms = connection_now_ms(connection) + connection->context->close_timeout_ms;
    connection_wake_at(connection, connection->ends_at_ms);
    connection_unthrottle(connection); /* so that its close frame is read */
    connection_set_state(connection, CONNECTION_ENDING);
    connection_finish_ending(connection);
}

void connection_close(struct connection *connection, unsigned code, struct slice reason)
{
    if (connection->state == CONNECTION_OPEN)
        connection_start_ending(connection, code, reason);
}

void connection_cut(struct connection *connection)
{
    connection_close(connection, CLOSE_OVERLOAD, SLICE_NONE);
    connection_hang_up(connection);
}

/* A client that came back at once would displace another connection of its user, which would come back too. */
static bool connection_may_reconnect(enum closing_reason reason)
{
    return reason != CLOSING_TOO_MANY_CONNECTIONS;
}

static void send_connection_closing(struct connection *connection, enum closing_reason reason,
                                    int64_t reconnect_after_ms)
{
    const struct sync_point *points = NULL;
    size_t count =
        connection->owner->sync_from ? connection->owner->sync_from(connection, &points) : 0;
    if (connection->silent || (connection->end_was_sent && count == 0))
        return;
    connection->end_was_sent = connection_push_message(
        connection,
        &(struct message){.type = MESSAGE_CONNECTION_CLOSING,
                          .closing = {.reason = reason,
                                      .reconnect_allowed = connection_may_reconnect(reason),
                                      .reconnect_after_ms = reconnect_after_ms,
                                      .sync_from = points,
                                      .sync_from_count = count}});
}

static void count_connection_end(struct connection *connection, enum closing_reason reason)
{
    struct metrics *metrics = connection->context->metrics;
    switch (reason) {
    case CLOSING_SLOW_CONSUMER:
        metrics_count(metrics, METRIC_SLOW_CONSUMER_DISCONNECTS);
        metrics_count(metrics, METRIC_CLIENT_RESYNC_FORCED);
        break;
    case CLOSING_HEARTBEAT_TIMEOUT:
        metrics_count(metrics, METRIC_CONNECTION_TIMEOUT);
        break;
    case CLOSING_MEMORY_PRESSURE:
        metrics_count(metrics, METRIC_MEMORY_SHED);
        metrics_count(metrics, METRIC_CLIENT_RESYNC_FORCED);
        break;
    case CLOSING_RATE_LIMITED:
        metrics_count(metrics, METRIC_LIMITS_FLOODS_CLOSED);
        break;
    case CLOSING_TOO_MANY_CONNECTIONS:
        metrics_count(metrics, METRIC_CONNECTIONS_EVICTED);
        break;
    case CLOSING_MAX_LIFETIME:
    case CLOSING_DRAINING:
        metrics_count(metrics, METRIC_CLIENT_RESYNC_FORCED);
        break;
    default:
        break;
    }
}

void connection_end(struct connection *connection, enum closing_reason reason,
                    int64_t reconnect_after_ms)
{
    if (connection->state != CONNECTION_OPEN)
        return;
    send_connection_closing(connection, reason, reconnect_after_ms);
    if (!connection_may_reconnect(reason) && connection->owner->send_disconnect)
        connection->owner->send_disconnect(connection);
    count_connection_end(connection, reason);
    connection_start_ending(connection, CLOSE_CODES[reason], slice_of(closing_reason_name(reason)));
}

void connection_shed(struct connection *connection, int64_t reconnect_after_ms)
{
    uint32_t before = outbound_held(&connection->outbound);
    outbound_drop_unsent(&connection->outbound);
    connection_count_queue(connection, before);
    connection_end(connection, CLOSING_MEMORY_PRESSURE, reconnect_after_ms);
}

void connection_limit(struct connection *connection, enum closing_reason reason, int64_t at_ms)
{
    if (connection->state != CONNECTION_OPEN || at_ms >= connection->ends_at_ms)
        return;
    connection->ends_at_ms = at_ms;
    if (!connection->end_was_sent)
        connection->ends_as = (uint8_t)reason;
    connection_wake_at(connection, at_ms);
}

void connection_unlimit(struct connection *connection, enum closing_reason reason)
{
    if (connection->state == CONNECTION_OPEN && connection->ends_as == reason)
        connection->ends_at_ms = INT64_MAX;
}

void connection_end_at(struct connection *connection, enum closing_reason reason, int64_t at_ms,
                       int64_t reconnect_after_ms)
{
    if (connection->state != CONNECTION_OPEN)
        return;
    send_connection_closing(connection, reason, reconnect_after_ms);
    connection->ends_as = (uint8_t)reason;
    connection_limit(connection, reason, at_ms);
}
