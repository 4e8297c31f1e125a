#include "connection/connection.h"

#include "base/container.h"
#include "base/log.h"
#include "frame/websocket_encode.h"

#include <assert.h>

enum {
    CLOSE_TOKEN = 4001,
    CLOSE_HEARTBEAT = 4002,
    CLOSE_SLOW_CONSUMER = 4003,
    CLOSE_OVERLOAD = 4004,
    CLOSE_ADMIN = 4005,
    OWED_POLL_MS = 10,
    /* even, so they are no router_key() */
    PONG_KEY = 2, /* only the newest ping is answered */
    PING_KEY = 4,
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
};

unsigned connection_close_code(enum closing_reason reason)
{
    return CLOSE_CODES[reason];
}

/* What can still be said when there is no memory for anything else. */
static struct blob *make_spare_close(void)
{
    uint8_t header[WEBSOCKET_HEADER_BYTES_MAX];
    char payload[WEBSOCKET_CONTROL_BYTES_MAX];
    size_t len = websocket_close_write(payload, CLOSE_OVERLOAD,
                                       slice_of(closing_reason_name(CLOSING_MEMORY_PRESSURE)));
    size_t header_len = websocket_header_write(header, WEBSOCKET_OPCODE_CLOSE, len);
    return blob_make((struct slice){(const char *)header, header_len},
                     (struct slice){payload, len});
}

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
        .frames = {.message_bytes_max = config->gateway.max_frame_bytes, .peer_masks = true},
        .outbound = {.messages_max = config->gateway.backpressure.outbound.max_buffer_messages,
                     .bytes_max = config->gateway.backpressure.outbound.max_buffer_bytes},
        .spare_close = make_spare_close(),
        .close_timeout_ms = config->gateway.close_timeout_ms,
    };
    return context->spare_close != NULL;
}

void connection_context_free(struct connection_context *context)
{
    blob_drop(&context->spare_close);
}

static int64_t now_of(const struct connection *connection)
{
    return connection->context->loop->clock.now_ms;
}

static struct connection *connection_of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct connection, stream);
}

/* The one door for changes of state. */
static void set_state(struct connection *connection, enum connection_state state)
{
    assert(state > connection->state);
    bool was_open = connection->state == CONNECTION_OPEN;
    connection->state = (uint8_t)state;
    if (was_open)
        connection->owner->left(connection);
}

void connection_wake_at(struct connection *connection, int64_t at_ms)
{
    if (!wheel_is_set(&connection->timer) || connection->timer.at_ms > at_ms)
        loop_set_timer(connection->context->loop, &connection->timer, at_ms);
}

/* ---- out ---- */

static enum outbound_result push(struct connection *connection, struct blob *blob, uint64_t key,
                                 bool last_words)
{
    struct connection_context *context = connection->context;
    enum outbound_result result =
        outbound_push(&connection->outbound, &context->outbound, blob, key, last_words);
    if (result == OUTBOUND_SUPERSEDED)
        metrics_count(context->metrics, METRIC_MESSAGES_SUPERSEDED);
    stream_want_write(&connection->stream);
    return result;
}

static bool push_last_words(struct connection *connection, struct blob *blob, uint64_t key)
{
    if (!blob)
        return false;
    enum outbound_result result = push(connection, blob, key, true);
    return result == OUTBOUND_QUEUED || result == OUTBOUND_SUPERSEDED;
}

static bool push_message(struct connection *connection, const struct message *message)
{
    return push_last_words(
        connection, encoder_encode(connection->context->encoder, connection->dialect, message), 0);
}

static bool push_control(struct connection *connection, enum websocket_opcode opcode,
                         struct slice payload, uint64_t key)
{
    uint8_t header[WEBSOCKET_HEADER_BYTES_MAX];
    size_t len = websocket_header_write(header, opcode, payload.len);
    return push_last_words(connection,
                           blob_make((struct slice){(const char *)header, len}, payload), key);
}

void connection_fail(struct connection *connection)
{
    connection->overflowed = true;
    connection_limit(connection, CLOSING_MEMORY_PRESSURE, now_of(connection));
}

static void warn_slow_consumer(struct connection *connection)
{
    int64_t grace_ms = connection->context->config->gateway.backpressure.outbound.grace_period_ms;
    connection->grace_until_ms = now_of(connection) + grace_ms;
    metrics_count(connection->context->metrics, METRIC_SLOW_CONSUMER_WARNINGS);
    if (!push_message(connection, &(struct message){
                                      .type = MESSAGE_ERROR,
                                      .error = {.code = ERROR_SLOW_CONSUMER,
                                                .text = "you read more slowly than messages come; "
                                                        "catch up or be disconnected",
                                                .retry_after_ms = -1,
                                                .grace_period_ms = grace_ms}}))
        connection_fail(connection);
    connection_wake_at(connection, connection->grace_until_ms);
}

static void make_up_for_shed(struct connection *connection)
{
    bool shed = connection->shed;
    connection->shed = false;
    if (shed && connection->state == CONNECTION_OPEN && connection->owner->recovered)
        connection->owner->recovered(connection);
}

/* What a level of the queue means (F's slow-consumer contract) is decided here and nowhere else. */
static void check_level(struct connection *connection)
{
    const struct config_outbound *limits =
        &connection->context->config->gateway.backpressure.outbound;
    uint32_t percent = outbound_percent(&connection->outbound, &connection->context->outbound);
    if (percent < limits->warning_threshold_percent && !connection->overflowed) {
        connection->warned = false;
        connection->grace_until_ms = 0;
        make_up_for_shed(connection);
        return;
    }
    if (!connection->warned) {
        connection->warned = true;
        log_warn("outbound_queue_filling", "percent=%u messages=%u bytes=%u", percent,
                 connection->outbound.count, connection->outbound.bytes);
    }
    bool critical = percent >= limits->critical_threshold_percent || connection->overflowed;
    if (critical && connection->grace_until_ms == 0)
        warn_slow_consumer(connection);
}

/* A turn of the loop may bring more than the queue holds, however fast the peer reads: what the socket
 * takes does not count against it. */
static void relieve(struct connection *connection)
{
    uint32_t warning_percent =
        connection->context->config->gateway.backpressure.outbound.warning_threshold_percent;
    if (outbound_percent(&connection->outbound, &connection->context->outbound) >= warning_percent)
        stream_flush(&connection->stream);
}

/* Whether a state has to give way to what is owed: the queue fills up and holds none to replace. */
static bool gives_way(struct connection *connection, uint64_t key)
{
    return key && connection->warned && !outbound_holds(&connection->outbound, key);
}

bool connection_queue(struct connection *connection, struct blob *blob, uint64_t key)
{
    if (connection->state != CONNECTION_OPEN || connection->overflowed) {
        blob_drop(&blob);
        return false;
    }
    if (gives_way(connection, key)) {
        metrics_count(connection->context->metrics, METRIC_STATES_SHED);
        connection->shed = true;
        blob_drop(&blob);
        return false;
    }
    metrics_count(connection->context->metrics, METRIC_MESSAGES_OUT);
    enum outbound_result result = push(connection, blob, key, false);
    if (result == OUTBOUND_NO_MEMORY) {
        connection_fail(connection);
        return false;
    }
    connection->overflowed = result == OUTBOUND_FULL;
    if (connection->outbound.count > 1 || connection->overflowed) {
        relieve(connection);
        check_level(connection);
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

/* ---- closing ---- */

/* What is left to do when all is sent: a close frame that had no room, or the socket's end. */
static void finish_ending(struct connection *connection)
{
    if (connection->state != CONNECTION_ENDING || connection->outbound.count)
        return;
    if (connection->close_owed) /* an empty queue takes one without memory */
        connection->close_owed =
            !push_last_words(connection, blob_share(connection->context->spare_close), 0);
    else if (connection->close_received)
        stream_close(&connection->stream);
    else if (connection->broken)
        stream_shutdown(&connection->stream);
}

static void start_ending(struct connection *connection, unsigned code, struct slice reason)
{
    char payload[WEBSOCKET_CONTROL_BYTES_MAX];
    size_t len = websocket_close_write(payload, code, reason);
    connection->close_owed =
        !push_control(connection, WEBSOCKET_OPCODE_CLOSE, (struct slice){payload, len}, 0);
    connection->ends_at_ms = now_of(connection) + connection->context->close_timeout_ms;
    connection_wake_at(connection, connection->ends_at_ms);
    set_state(connection, CONNECTION_ENDING);
    finish_ending(connection);
}

void connection_close(struct connection *connection, unsigned code, struct slice reason)
{
    if (connection->state == CONNECTION_OPEN)
        start_ending(connection, code, reason);
}

static void tell_end(struct connection *connection, enum closing_reason reason,
                     int64_t reconnect_after_ms)
{
    const struct sync_point *points = NULL;
    size_t count =
        connection->owner->sync_from ? connection->owner->sync_from(connection, &points) : 0;
    if (connection->end_was_told && count == 0)
        return;
    connection->end_was_told = push_message(
        connection, &(struct message){.type = MESSAGE_CONNECTION_CLOSING,
                                      .closing = {.reason = reason,
                                                  .reconnect_allowed = true,
                                                  .reconnect_after_ms = reconnect_after_ms,
                                                  .sync_from = points,
                                                  .sync_from_count = count}});
}

static void count_end(struct connection *connection, enum closing_reason reason)
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
    tell_end(connection, reason, reconnect_after_ms);
    count_end(connection, reason);
    start_ending(connection, connection_close_code(reason), slice_of(closing_reason_name(reason)));
}

void connection_limit(struct connection *connection, enum closing_reason reason, int64_t at_ms)
{
    if (connection->state != CONNECTION_OPEN || at_ms >= connection->ends_at_ms)
        return;
    connection->ends_at_ms = at_ms;
    if (!connection->end_was_told)
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
    tell_end(connection, reason, reconnect_after_ms);
    connection->ends_as = (uint8_t)reason;
    connection_limit(connection, reason, at_ms);
}

/* ---- time ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The next time silence must be looked at; the connection may have been ended meanwhile. */
static int64_t check_silence(struct connection *connection, int64_t now_ms)
{
    const struct config *config = connection->context->config;
    int64_t unhealthy_ms = config->gateway.timeouts.heartbeat_timeout_ms;
    int64_t silent_ms = now_ms - connection->last_heard_ms;
    if (silent_ms >= config->presence.expiry_window_ms) {
        connection_end(connection, CLOSING_HEARTBEAT_TIMEOUT, -1);
        return INT64_MAX;
    }
    if (silent_ms < unhealthy_ms) {
        connection->unhealthy = false;
        return connection->last_heard_ms + unhealthy_ms;
    }
    if (!connection->unhealthy) {
        connection->unhealthy = true;
        metrics_count(connection->context->metrics, METRIC_CONNECTION_UNHEALTHY);
        if (!push_control(connection, WEBSOCKET_OPCODE_PING, SLICE_NONE, PING_KEY))
            connection_fail(connection);
    }
    return connection->last_heard_ms + config->presence.expiry_window_ms;
}

/* Whether the end that has come should wait for answers under way. */
static bool waits_for_answers(struct connection *connection, int64_t now_ms)
{
    bool orderly = connection->ends_as == CLOSING_DRAINING ||
                   connection->ends_as == CLOSING_MAX_LIFETIME ||
                   connection->ends_as == CLOSING_TOKEN_EXPIRED;
    connection->closing = orderly && connection->owner->owes &&
                          connection->owner->owes(connection) &&
                          now_ms - connection->ends_at_ms < CONNECTION_OWED_MAX_MS;
    return connection->closing;
}

static int64_t check_limits(struct connection *connection, int64_t now_ms)
{
    if (connection->grace_until_ms && connection->grace_until_ms <= now_ms) {
        connection_end(connection, CLOSING_SLOW_CONSUMER, -1);
    } else if (connection->ends_at_ms <= now_ms) {
        if (waits_for_answers(connection, now_ms))
            return now_ms + OWED_POLL_MS;
        uint64_t spread_ms =
            (uint64_t)connection->context->config->gateway.timeouts.heartbeat_interval_ms;
        connection_end(connection, connection->ends_as,
                       (int64_t)random_below(connection->context->random, spread_ms));
    }
    int64_t grace_ms = connection->grace_until_ms ? connection->grace_until_ms : INT64_MAX;
    return earlier(grace_ms, connection->ends_at_ms);
}

static void tick(struct wheel_timer *timer)
{
    struct connection *connection = CONTAINER_OF(timer, struct connection, timer);
    int64_t now_ms = now_of(connection);
    if (connection->state != CONNECTION_OPEN) {
        if (connection->ends_at_ms <= now_ms)
            stream_close(&connection->stream);
        else
            connection_wake_at(connection, connection->ends_at_ms);
        return;
    }
    int64_t next_ms = check_silence(connection, now_ms);
    next_ms = earlier(next_ms, check_limits(connection, now_ms));
    if (connection->state == CONNECTION_OPEN)
        next_ms = earlier(next_ms, connection->owner->tick(connection));
    if (connection->outbound.count == 0)
        stream_rest(&connection->stream);
    if (connection->state == CONNECTION_OPEN)
        connection_wake_at(connection, next_ms);
}

/* ---- in ---- */

static void handle_close_frame(struct connection *connection, unsigned code)
{
    connection->close_received = true;
    if (connection->state == CONNECTION_OPEN)
        start_ending(connection, code, SLICE_NONE);
    else
        finish_ending(connection);
}

static void handle_violation(struct connection *connection, const struct websocket_message *message)
{
    metrics_count(connection->context->metrics, METRIC_PROTOCOL_ERRORS);
    connection->broken = true;
    if (connection->state == CONNECTION_OPEN)
        start_ending(connection, message->close_code, slice_of(message->error_reason));
    else
        finish_ending(connection);
}

static void handle_ping(struct connection *connection, struct slice payload)
{
    if (connection->state == CONNECTION_OPEN &&
        !push_control(connection, WEBSOCKET_OPCODE_PONG, payload, PONG_KEY))
        connection_fail(connection);
}

static void handle_event(struct connection *connection, enum websocket_event event,
                         struct websocket_message *message)
{
    connection->last_heard_ms = now_of(connection);
    if (connection->unhealthy)
        connection_wake_at(connection, connection->last_heard_ms);
    switch (event) {
    case WEBSOCKET_TEXT:
    case WEBSOCKET_BINARY:
        if (connection->state == CONNECTION_OPEN)
            connection->owner->payload(connection, message->data, message->len,
                                       event == WEBSOCKET_BINARY);
        break;
    case WEBSOCKET_PING:
        handle_ping(connection, (struct slice){message->data, message->len});
        break;
    case WEBSOCKET_CLOSE:
        handle_close_frame(connection, message->close_code);
        break;
    case WEBSOCKET_ERROR:
        handle_violation(connection, message);
        break;
    default:
        break;
    }
}

static void received(struct stream *stream, char *data, size_t len)
{
    struct connection *connection = connection_of(stream);
    struct websocket_message message;
    while (len && !connection->close_received && !connection->broken) {
        enum websocket_event event = websocket_decode(
            &connection->decoder, &connection->context->frames, &data, &len, &message);
        if (event == WEBSOCKET_NEED_MORE)
            return;
        handle_event(connection, event, &message);
    }
}

/* A peer that said goodbye before it shut its side down still gets our answer. */
static void ended(struct stream *stream)
{
    struct connection *connection = connection_of(stream);
    bool answer_waits = connection->state == CONNECTION_ENDING && connection->outbound.count;
    connection->close_received = true;
    if (!answer_waits || stream->failed)
        stream_close(stream);
}

static size_t gather(struct stream *stream, struct iovec *out, size_t max)
{
    return outbound_gather(&connection_of(stream)->outbound, out, max, stream->tls != NULL);
}

static bool sent(struct stream *stream, size_t bytes)
{
    struct connection *connection = connection_of(stream);
    outbound_sent(&connection->outbound, bytes);
    if (connection->warned)
        check_level(connection);
    finish_ending(connection);
    return connection->outbound.count > 0;
}

static void closed(struct stream *stream)
{
    struct connection *connection = connection_of(stream);
    loop_cancel_timer(connection->context->loop, &connection->timer);
    set_state(connection, CONNECTION_GONE);
    connection->context->count--;
    websocket_decoder_free(&connection->decoder);
    outbound_free(&connection->outbound);
    connection->owner->gone(connection);
}

static const struct stream_owner STREAM_OWNER = {
    .received = received,
    .ended = ended,
    .gather = gather,
    .sent = sent,
    .closed = closed,
};

bool connection_open(struct connection *connection, struct connection_context *context,
                     const struct connection_owner *owner, const struct dialect *dialect,
                     struct stream *from, struct slice greeting)
{
    struct blob *first = blob_make(greeting, SLICE_NONE);
    if (!first)
        return false;
    *connection = (struct connection){
        .timer = {.fire = tick},
        .context = context,
        .owner = owner,
        .dialect = dialect,
        .last_heard_ms = context->loop->clock.now_ms,
        .ends_at_ms = INT64_MAX,
        .state = CONNECTION_OPEN,
    };
    if (!stream_move(&connection->stream, from, &STREAM_OWNER)) {
        blob_drop(&first);
        return false;
    }
    context->count++;
    push_last_words(connection, first, 0); /* into an empty queue */
    return true;
}
