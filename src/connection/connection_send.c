/* Output: the queue, and what its levels mean for slow consumers. */
#include "connection/connection_internal.h"
#include "log/log.h"
#include "protocol/websocket/websocket_encode.h"

static enum outbound_result push_connection_blob(struct connection *connection, struct blob *blob,
                                                 uint64_t key, bool use_reserve)
{
    struct connection_context *context = connection->context;
    uint32_t before = outbound_held(&connection->outbound);
    enum outbound_result result =
        outbound_push(&connection->outbound, &context->outbound, blob, key, use_reserve);
    connection_count_queue(connection, before);
    if (result == OUTBOUND_SUPERSEDED)
        metrics_count(context->metrics, METRIC_MESSAGES_SUPERSEDED);
    if (connection->carried)
        connection->owner->transport->want_write(connection);
    else
        stream_want_write(&connection->stream);
    return result;
}

bool connection_push(struct connection *connection, struct blob *blob, uint64_t key)
{
    if (!blob)
        return false;
    enum outbound_result result = push_connection_blob(connection, blob, key, true);
    return result == OUTBOUND_QUEUED || result == OUTBOUND_SUPERSEDED;
}

bool connection_push_message(struct connection *connection, const struct message *message)
{
    return connection_push(
        connection, encoder_encode(connection->context->encoder, connection->dialect, message), 0);
}

bool connection_send_frame(struct connection *connection, enum websocket_opcode opcode,
                           struct slice payload, uint64_t key)
{
    uint8_t header[WEBSOCKET_HEADER_BYTES_MAX];
    size_t len = websocket_header_write(header, opcode, payload.len);
    return connection_push(connection,
                           blob_make((struct slice){(const char *)header, len}, payload), key);
}

bool connection_take_payload(struct connection *connection, struct buffer *out, size_t bytes_max)
{
    const struct blob *next;
    enum websocket_opcode opcode;
    struct slice payload;
    uint32_t before = outbound_held(&connection->outbound);
    while ((next = outbound_first(&connection->outbound)) != NULL &&
           (out->len == 0 || out->len + next->len <= bytes_max)) {
        struct slice frames = {next->bytes, next->len};
        while (websocket_written_next(&frames, &opcode, &payload))
            connection->owner->transport->append_frame(out, opcode, payload);
        outbound_sent(&connection->outbound, next->len);
    }
    connection_count_queue(connection, before);
    if (connection->warned)
        connection_check_level(connection);
    connection_finish_ending(connection);
    return connection->outbound.count > 0;
}

void connection_fail(struct connection *connection)
{
    connection->overflowed = true;
    connection_limit(connection, CLOSING_MEMORY_PRESSURE, connection_now_ms(connection));
}

static void warn_slow_consumer(struct connection *connection)
{
    int64_t grace_ms = connection->context->config->gateway.backpressure.outbound.grace_period_ms;
    connection->grace_until_ms = connection_now_ms(connection) + grace_ms;
    metrics_count(connection->context->metrics, METRIC_SLOW_CONSUMER_WARNINGS);
    if (!connection_push_message(
            connection,
            &(struct message){.type = MESSAGE_ERROR,
                              .error = {.code = ERROR_SLOW_CONSUMER,
                                        .text = "you read more slowly than messages arrive; "
                                                "catch up or be disconnected",
                                        .retry_after_ms = -1,
                                        .grace_period_ms = grace_ms}}))
        connection_fail(connection);
    connection_wake_at(connection, connection->grace_until_ms);
}

void connection_check_level(struct connection *connection)
{
    const struct config_outbound *limits =
        &connection->context->config->gateway.backpressure.outbound;
    uint32_t percent = outbound_percent(&connection->outbound, &connection->context->outbound);
    if (percent < limits->warning_threshold_percent && !connection->overflowed) {
        connection->warned = false;
        connection->grace_until_ms = 0;
        bool shed = connection->shed;
        connection->shed = false;
        if (shed && connection->state == CONNECTION_OPEN && connection->owner->on_caught_up)
            connection->owner->on_caught_up(connection);
        return;
    }
    if (!connection->warned) {
        struct slice user =
            connection->owner->user_id ? connection->owner->user_id(connection) : SLICE_NONE;
        connection->warned = true;
        log_warn("outbound_queue_filling", "user=%s percent=%u messages=%u bytes=%u",
                 log_quote(user), percent, connection->outbound.count,
                 outbound_bytes(&connection->outbound));
    }
    bool critical = percent >= limits->critical_threshold_percent || connection->overflowed;
    if (critical && connection->grace_until_ms == 0)
        warn_slow_consumer(connection);
}

bool connection_queue(struct connection *connection, struct blob *blob, uint64_t key)
{
    if (connection->state != CONNECTION_OPEN || connection->overflowed) {
        blob_drop(&blob);
        return false;
    }
    if (key && connection->warned && !outbound_holds(&connection->outbound, key)) {
        /* A state that replaces none leaves the space of a filling queue to owed messages. */
        metrics_count(connection->context->metrics, METRIC_STATES_SHED);
        connection->shed = true;
        blob_drop(&blob);
        return false;
    }
    metrics_count(connection->context->metrics, METRIC_MESSAGES_OUT);
    enum outbound_result result = push_connection_blob(connection, blob, key, false);
    if (result == OUTBOUND_NO_MEMORY) {
        connection_fail(connection);
        return false;
    }
    connection->overflowed = result == OUTBOUND_FULL;
    if (connection->outbound.count > 1 || connection->overflowed) {
        /* One turn of the loop may bring more than the queue holds, however fast the client reads. So the
         * socket takes what it can before the level is judged. */
        const struct config_outbound *limits =
            &connection->context->config->gateway.backpressure.outbound;
        if (!connection->carried &&
            outbound_percent(&connection->outbound, &connection->context->outbound) >=
                limits->warning_threshold_percent)
            stream_flush(&connection->stream);
        connection_check_level(connection);
    }
    return result != OUTBOUND_FULL;
}

void connection_send(struct connection *connection, const struct message *message)
{
    struct blob *blob = encoder_encode(connection->context->encoder, connection->dialect, message);
    if (blob)
        connection_queue(connection, blob, 0);
    else
        connection_fail(connection);
}
