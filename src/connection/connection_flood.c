/* Clients that keep on beyond their limits: throttled, then ended. */
#include "connection/connection_internal.h"

#include "log/log.h"

static const struct rate TOLERANCE = {
    .interval_us = RATE_SECOND_US / CONNECTION_TOLERATED_PER_SECOND,
    .full_us = RATE_SECOND_US / CONNECTION_TOLERATED_PER_SECOND * CONNECTION_TOLERATED_BURST,
};

static bool is_connection_calm(const struct connection *connection)
{
    return connection->tolerance.due_us <= connection_now_ms(connection) * 1000;
}

static void throttle_connection(struct connection *connection)
{
    int64_t quarter_ms = connection->context->config->gateway.timeouts.heartbeat_timeout_ms / 4;
    int64_t pause_ms = quarter_ms < CONNECTION_THROTTLE_MS ? quarter_ms : CONNECTION_THROTTLE_MS;
    connection->throttled = true;
    if (!connection->carried) {
        connection->stream.sips = true;
        stream_pause(&connection->stream, true);
    }
    connection_wake_at(connection, connection_now_ms(connection) + pause_ms);
    metrics_count(connection->context->metrics, METRIC_LIMITS_THROTTLED);
}

void connection_unthrottle(struct connection *connection)
{
    if (connection->flooding && is_connection_calm(connection)) {
        connection->flooding = false;
        connection->stream.sips = false;
    }
    if (!connection->throttled)
        return;
    connection->throttled = false;
    if (connection->carried)
        connection->owner->transport->resume(connection);
    else
        stream_pause(&connection->stream, false);
}

/* Logged once per flood, with the user. */
static void note_connection_flood(struct connection *connection)
{
    struct slice user_id =
        connection->owner->user_id ? connection->owner->user_id(connection) : SLICE_NONE;
    log_warn("client_floods", "user=%s throttle_ms=%d close_after_ms=%d", log_quote(user_id),
             CONNECTION_THROTTLE_MS, CONNECTION_FLOOD_MAX_MS);
}

void connection_exceed(struct connection *connection)
{
    int64_t now_ms = connection_now_ms(connection), retry_after_ms;
    if (connection->state != CONNECTION_OPEN)
        return;
    if (is_connection_calm(connection))
        connection->flooding = false;
    if (rate_limit_take(&connection->tolerance, &TOLERANCE, TOLERANCE.interval_us, now_ms,
                        &retry_after_ms))
        return;
    if (!connection->flooding) {
        connection->flooding = true;
        connection->flooding_since_ms = (uint32_t)now_ms;
        note_connection_flood(connection);
    }
    if ((uint32_t)now_ms - connection->flooding_since_ms >= CONNECTION_FLOOD_MAX_MS)
        connection_end(connection, CLOSING_RATE_LIMITED, CONNECTION_FLOOD_MAX_MS);
    else if (!connection->throttled)
        throttle_connection(connection);
}
