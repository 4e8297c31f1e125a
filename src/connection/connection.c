#include "connection/connection_internal.h"

#include "base/container.h"

#include <assert.h>

enum {
    OWED_POLL_MS = 10,
    /* even, so they equal no router_key() */
    PONG_KEY = 2, /* with a long queue only the newest ping is answered */
    PING_KEY = 4,
    PONG_QUEUE_SHORT = 64, /* messages; below it every ping is answered */
};

_Static_assert(CONFIG_BUFFER_MESSAGES_MAX + OUTBOUND_RESERVE_MESSAGES <= OUTBOUND_RING_MAX,
               "the ring must hold the largest configurable queue");

bool connection_context_init(struct connection_context *context, const struct config *config,
                             struct loop *loop, struct encoder *encoder, struct metrics *metrics,
                             struct random *random)
{
    *context = (struct connection_context){
        .config = config,
        .loop = loop,
        .encoder = encoder,
        .metrics = metrics,
        .random = random,
        .unauthenticated_frames = {CONNECTION_UNAUTHENTICATED_BYTES_MAX, .expects_masks = true},
        .outbound = {.messages_max = config->gateway.backpressure.outbound.max_buffer_messages,
                     .bytes_max = config->gateway.backpressure.outbound.max_buffer_bytes},
        .spare_close = connection_make_spare_close(),
        .close_timeout_ms = config->gateway.close_timeout_ms,
    };
    connection_context_limit(context, &DIALECT_TABLE_NATIVE, config->gateway.max_frame_bytes);
    return context->spare_close != NULL;
}

void connection_context_limit(struct connection_context *context, const struct dialect *dialect,
                              size_t message_bytes_max)
{
    context->frames[dialect->slot] =
        (struct websocket_limits){message_bytes_max, .expects_masks = true};
    if (message_bytes_max < context->unauthenticated_frames.message_bytes_max)
        context->unauthenticated_frames.message_bytes_max = message_bytes_max;
}

void connection_context_free(struct connection_context *context)
{
    blob_drop(&context->spare_close);
}

static struct connection *connection_of_stream(struct stream *stream)
{
    return CONTAINER_OF(stream, struct connection, stream);
}

/* The only function that changes the flag, because unhealthy connections are counted. */
static void set_connection_unhealthy(struct connection *connection, bool unhealthy)
{
    if (unhealthy && !connection->unhealthy)
        connection->context->unhealthy_count++;
    if (!unhealthy && connection->unhealthy)
        connection->context->unhealthy_count--;
    connection->unhealthy = unhealthy;
}

void connection_set_state(struct connection *connection, enum connection_state state)
{
    assert(state > connection->state);
    bool was_open = connection->state == CONNECTION_OPEN;
    connection->state = (uint8_t)state;
    set_connection_unhealthy(connection, false);
    if (was_open)
        connection->owner->on_left(connection);
}

void connection_wake_at(struct connection *connection, int64_t at_ms)
{
    if (!wheel_is_set(&connection->timer) || connection->timer.at_ms > at_ms)
        loop_set_timer(connection->context->loop, &connection->timer, at_ms);
}

/* ---- time ---- */

static int64_t earlier_ms(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns when silence must be checked next; may end the connection. */
static int64_t check_connection_silence(struct connection *connection, int64_t now_ms)
{
    const struct config *config = connection->context->config;
    int64_t unhealthy_ms = config->gateway.timeouts.heartbeat_timeout_ms;
    int64_t silent_ms = now_ms - connection->last_heard_ms;
    if (silent_ms >= config->presence.expiry_window_ms) {
        connection_end(connection, CLOSING_HEARTBEAT_TIMEOUT, -1);
        return INT64_MAX;
    }
    if (silent_ms < unhealthy_ms) {
        set_connection_unhealthy(connection, false);
        return connection->last_heard_ms + unhealthy_ms;
    }
    if (!connection->unhealthy) {
        set_connection_unhealthy(connection, true);
        metrics_count(connection->context->metrics, METRIC_CONNECTION_UNHEALTHY);
        bool pinged =
            connection->owner->send_ping
                ? connection->owner->send_ping(connection)
                : connection_send_frame(connection, WEBSOCKET_OPCODE_PING, SLICE_NONE, PING_KEY);
        if (!pinged)
            connection_fail(connection);
    }
    return connection->last_heard_ms + config->presence.expiry_window_ms;
}

/* Returns when limits must be checked next; may end the connection. An orderly end waits for pending replies. */
static int64_t check_connection_limits(struct connection *connection, int64_t now_ms)
{
    if (connection->grace_until_ms && connection->grace_until_ms <= now_ms) {
        connection_end(connection, CLOSING_SLOW_CONSUMER, -1);
    } else if (connection->ends_at_ms <= now_ms) {
        bool orderly = connection->ends_as == CLOSING_DRAINING ||
                       connection->ends_as == CLOSING_MAX_LIFETIME ||
                       connection->ends_as == CLOSING_TOKEN_EXPIRED;
        connection->closing = orderly && connection->owner->owes_replies &&
                              connection->owner->owes_replies(connection) &&
                              now_ms - connection->ends_at_ms < CONNECTION_OWED_MAX_MS;
        if (connection->closing)
            return now_ms + OWED_POLL_MS;
        uint64_t spread_ms =
            (uint64_t)connection->context->config->gateway.timeouts.heartbeat_interval_ms;
        connection_end(connection, connection->ends_as,
                       (int64_t)random_below(connection->context->random, spread_ms));
    }
    int64_t grace_ms = connection->grace_until_ms ? connection->grace_until_ms : INT64_MAX;
    return earlier_ms(grace_ms, connection->ends_at_ms);
}

/* Returns when the unfinished message, if there is one, must be complete; may close the connection. */
static int64_t check_unfinished_message(struct connection *connection, int64_t now_ms)
{
    int64_t began_ms = websocket_decoder_began_ms(&connection->decoder);
    if (began_ms == 0)
        return INT64_MAX;
    int64_t ends_ms = began_ms + connection->context->config->gateway.timeouts.message_ms;
    if (now_ms >= ends_ms) {
        metrics_count(connection->context->metrics, METRIC_MESSAGES_UNFINISHED);
        connection_close(connection, WEBSOCKET_CLOSE_POLICY,
                         SLICE("the message took too long to arrive"));
    }
    return ends_ms;
}

static void on_connection_timer(struct wheel_timer *timer)
{
    struct connection *connection = CONTAINER_OF(timer, struct connection, timer);
    int64_t now_ms = connection_now_ms(connection);
    connection_unthrottle(connection);
    if (connection->state != CONNECTION_OPEN) {
        if (connection->ends_at_ms <= now_ms)
            connection_hang_up(connection);
        else
            connection_wake_at(connection, connection->ends_at_ms);
        return;
    }
    int64_t next_ms = check_connection_silence(connection, now_ms);
    next_ms = earlier_ms(next_ms, check_connection_limits(connection, now_ms));
    next_ms = earlier_ms(next_ms, check_unfinished_message(connection, now_ms));
    if (connection->state == CONNECTION_OPEN)
        next_ms = earlier_ms(next_ms, connection->owner->on_tick(connection));
    if (connection->outbound.count == 0 && !connection->carried)
        stream_rest(&connection->stream);
    if (connection->state == CONNECTION_OPEN)
        connection_wake_at(connection, next_ms);
}

/* ---- input ---- */

/* The client ends the connection, by a close frame or by a violation of the protocol. */
static void end_connection_by_client(struct connection *connection, bool violation,
                                     const struct websocket_message *message)
{
    struct slice reason = SLICE_NONE;
    if (violation) {
        metrics_count(connection->context->metrics, METRIC_PROTOCOL_ERRORS);
        connection->broken = true;
        reason = slice_of(message->error_reason);
    } else {
        connection->close_received = true;
    }
    if (connection->state == CONNECTION_OPEN)
        connection_start_ending(connection, message->close_code, reason);
    else
        connection_finish_ending(connection);
}

static void note_connection_alive(struct connection *connection)
{
    connection->last_heard_ms = connection_now_ms(connection);
    if (connection->unhealthy)
        connection_wake_at(connection, connection->last_heard_ms);
}

void connection_receive(struct connection *connection, char *data, size_t len, bool binary)
{
    note_connection_alive(connection);
    if (connection->state == CONNECTION_OPEN)
        connection->owner->on_payload(connection, data, len, binary);
}

/* Pings keep a client alive, but not a message that it never finishes. */
static void note_unfinished_message(struct connection *connection)
{
    int64_t now_ms = connection_now_ms(connection);
    if (!connection->decoder.partial || websocket_decoder_began_ms(&connection->decoder))
        return;
    websocket_decoder_note_begin(&connection->decoder, now_ms);
    connection_wake_at(connection,
                       now_ms + connection->context->config->gateway.timeouts.message_ms);
}

static void connection_send_pong(struct connection *connection, struct slice payload)
{
    uint64_t key = connection->outbound.count < PONG_QUEUE_SHORT ? 0 : PONG_KEY;
    if (!connection_send_frame(connection, WEBSOCKET_OPCODE_PONG, payload, key))
        connection_fail(connection);
}

static void decode_connection_bytes(struct connection *connection, char *data, size_t len)
{
    struct websocket_message message;
    while (len && !connection->close_received && !connection->broken) {
        enum websocket_event event = websocket_decode(
            &connection->decoder, connection_frames(connection), &data, &len, &message);
        if (event == WEBSOCKET_NEED_MORE) {
            note_unfinished_message(connection);
            return;
        }
        note_connection_alive(connection);
        bool is_open = connection->state == CONNECTION_OPEN;
        switch (event) {
        case WEBSOCKET_TEXT:
        case WEBSOCKET_BINARY:
            if (is_open)
                connection->owner->on_payload(connection, message.data, message.len,
                                              event == WEBSOCKET_BINARY);
            break;
        case WEBSOCKET_PING:
            if (is_open)
                connection_send_pong(connection, (struct slice){message.data, message.len});
            connection_exceed(connection);
            break;
        case WEBSOCKET_PONG:
            connection_exceed(connection);
            break;
        case WEBSOCKET_CLOSE:
        case WEBSOCKET_ERROR:
            end_connection_by_client(connection, event == WEBSOCKET_ERROR, &message);
            break;
        default:
            break;
        }
    }
}

static void on_connection_bytes(struct stream *stream, char *data, size_t len)
{
    struct connection *connection = connection_of_stream(stream);
    size_t before = websocket_decoder_memory_bytes(&connection->decoder);
    decode_connection_bytes(connection, data, len);
    size_t after = websocket_decoder_memory_bytes(&connection->decoder);
    if (after != before)
        memory_account_add(&connection->context->memory, MEMORY_MESSAGES,
                           (int64_t)after - (int64_t)before);
}

/* A client that sent a close frame before it shut its side down still gets our close frame. */
static void on_connection_stream_ended(struct stream *stream)
{
    struct connection *connection = connection_of_stream(stream);
    bool answer_waits = connection->state == CONNECTION_ENDING && connection->outbound.count;
    connection->close_received = true;
    if (!answer_waits || stream->failed)
        stream_close(stream);
}

static size_t gather_connection_output(struct stream *stream, struct iovec *out, size_t max)
{
    return outbound_gather(&connection_of_stream(stream)->outbound, out, max, true);
}

static bool on_connection_sent(struct stream *stream, size_t bytes)
{
    struct connection *connection = connection_of_stream(stream);
    uint32_t before = outbound_held(&connection->outbound);
    outbound_sent(&connection->outbound, bytes);
    connection_count_queue(connection, before);
    if (connection->warned)
        connection_check_level(connection);
    if (connection->state == CONNECTION_ENDING)
        connection_finish_ending(connection);
    return connection->outbound.count > 0;
}

void connection_gone(struct connection *connection)
{
    loop_cancel_timer(connection->context->loop, &connection->timer);
    connection_set_state(connection, CONNECTION_GONE);
    connection->context->count--;
    uint32_t queued = outbound_held(&connection->outbound);
    memory_account_add(&connection->context->memory, MEMORY_MESSAGES,
                       -(int64_t)websocket_decoder_memory_bytes(&connection->decoder));
    websocket_decoder_free(&connection->decoder);
    outbound_free(&connection->outbound);
    connection_count_queue(connection, queued);
    connection->owner->on_gone(connection);
}

static void on_connection_stream_closed(struct stream *stream)
{
    connection_gone(connection_of_stream(stream));
}

static const struct stream_owner CONNECTION_STREAM_OWNER = {
    .batched = true,
    .on_bytes = on_connection_bytes,
    .on_ended = on_connection_stream_ended,
    .gather = gather_connection_output,
    .on_sent = on_connection_sent,
    .on_closed = on_connection_stream_closed,
};

static void init_connection(struct connection *connection, struct connection_context *context,
                            const struct connection_owner *owner, const struct dialect *dialect)
{
    *connection = (struct connection){
        .timer = {.fire = on_connection_timer},
        .context = context,
        .owner = owner,
        .dialect = dialect,
        .last_heard_ms = context->loop->clock.now_ms,
        .ends_at_ms = INT64_MAX,
        .state = CONNECTION_OPEN,
    };
}

/* Counts the connection and starts its timer. */
static void start_connection(struct connection *connection)
{
    const struct config_gateway *gateway = &connection->context->config->gateway;
    connection->context->count++;
    connection_wake_at(connection,
                       connection->last_heard_ms + gateway->timeouts.heartbeat_timeout_ms);
}

bool connection_open(struct connection *connection, struct connection_context *context,
                     const struct connection_owner *owner, const struct dialect *dialect,
                     struct stream *from, struct slice greeting)
{
    struct blob *first = blob_make(greeting, SLICE_NONE);
    if (!first)
        return false;
    init_connection(connection, context, owner, dialect);
    if (!stream_move(&connection->stream, from, &CONNECTION_STREAM_OWNER)) {
        blob_drop(&first);
        return false;
    }
    start_connection(connection);
    connection_push(connection, first, 0); /* into an empty queue */
    return true;
}

void connection_open_on(struct connection *connection, struct connection_context *context,
                        const struct connection_owner *owner, const struct dialect *dialect)
{
    init_connection(connection, context, owner, dialect);
    connection->carried = true;
    start_connection(connection);
}

bool connection_take_over(struct connection *to, struct connection *from)
{
    assert(to->carried && !from->carried);
    if (from->outbound.count || !stream_move(&to->stream, &from->stream, &CONNECTION_STREAM_OWNER))
        return false;
    to->carried = false;
    to->decoder = from->decoder;
    from->decoder = (struct websocket_decoder){0};
    if (to->outbound.count)
        stream_want_write(&to->stream);
    return true;
}
