#include "http/http_connection.h"

#include "base/container.h"
#include "http/http_route.h"

#include <stdlib.h>
#include <unistd.h>

static struct http_connection *http_connection_of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct http_connection, stream);
}

static void http_connection_set_timer(struct http_connection *connection, int64_t after_ms)
{
    struct loop *loop = connection->listener->loop;
    loop_set_timer(loop, &connection->timer, loop->clock.now_ms + after_ms);
}

static void http_connection_set_state(struct http_connection *connection, enum http_state state)
{
    const struct config *config = connection->listener->config;
    connection->state = state;
    list_remove(&connection->waiting);
    bool is_streamed = state == HTTP_BODY && connection->exchange->body_sink;
    if (state == HTTP_HEAD || (state == HTTP_BODY && !is_streamed))
        list_append(&connection->listener->waiting, &connection->waiting);
    stream_pause(&connection->stream,
                 state == HTTP_ANSWERING || state == HTTP_SENDING || state == HTTP_STREAMING);
    if (state == HTTP_ANSWERING)
        loop_cancel_timer(connection->listener->loop, &connection->timer);
    else if (state == HTTP_BODY)
        http_connection_set_timer(connection, config->gateway.timeouts.message_ms);
    else if (state == HTTP_HEAD || state == HTTP_SENDING || state == HTTP_STREAMING)
        http_connection_set_timer(connection, config->gateway.http.idle_timeout_ms);
    else if (state == HTTP_CLOSING)
        http_connection_set_timer(connection, config->gateway.close_timeout_ms);
}

/* Makes an exchange for a head that was just read; it has no route yet. */
static struct exchange *http_connection_make_exchange(struct http_connection *connection)
{
    struct exchange *exchange = calloc(1, sizeof(*exchange));
    if (exchange) {
        exchange->connection = connection;
        exchange->listener = connection->listener;
        connection->exchange = exchange;
    }
    return exchange;
}

static void http_connection_refuse(struct http_connection *connection, unsigned status,
                                   const char *text)
{
    metrics_count(connection->listener->metrics, METRIC_PROTOCOL_ERRORS);
    struct exchange *exchange =
        connection->exchange ? connection->exchange : http_connection_make_exchange(connection);
    if (!exchange) {
        stream_close(&connection->stream);
        return;
    }
    enum error_code code = status == 413   ? ERROR_MESSAGE_TOO_LARGE
                           : status == 503 ? ERROR_SERVICE_UNAVAILABLE
                                           : ERROR_INVALID_MESSAGE;
    connection->close_after = true;
    exchange_error(&exchange, status, code, text);
}

void http_connection_shed(struct http_connection *connection)
{
    metrics_count(connection->listener->metrics, METRIC_MEMORY_SHED);
    http_connection_refuse(connection, 503, "memory is short");
}

void http_connection_answered(struct http_connection *connection)
{
    if (connection->close_after) /* nothing more is parsed */
        buffer_free(&connection->in);
    stream_want_write(&connection->stream);
    http_connection_set_state(connection, connection->close_after ? HTTP_CLOSING : HTTP_SENDING);
}

void http_connection_stream_answer(struct http_connection *connection)
{
    stream_want_write(&connection->stream);
    http_connection_set_state(connection, HTTP_STREAMING);
}

/* ---- bodies ---- */

static void http_connection_refuse_body(struct http_connection *connection)
{
    unsigned status = connection->exchange->body_decoder.error_status;
    http_connection_refuse(connection, status,
                           status == 413 ? "the request's body is too large"
                                         : "the request's body is not acceptable");
}

/* The whole body was read. */
static void http_connection_end_body(struct http_connection *connection)
{
    struct exchange *exchange = connection->exchange;
    connection->close_after = !exchange->head.keep_alive || connection->listener->draining;
    http_connection_set_state(connection, HTTP_ANSWERING);
    if (exchange->body_sink)
        exchange->body_sink->on_end(exchange->body_arg);
    else
        connection->listener->owner->answer(exchange);
}

/* The sink may pause the body, or answer, with which the exchange ends. */
void http_connection_stream_body(struct http_connection *connection)
{
    struct exchange *exchange = connection->exchange;
    struct slice input = buffer_slice(&connection->in), piece;
    enum http1_body_event event = HTTP1_BODY_DATA;
    while (!exchange->body_paused && event == HTTP1_BODY_DATA) {
        event = http1_body_decode(&exchange->body_decoder, &input, &piece);
        if (event == HTTP1_BODY_DATA)
            exchange->body_sink->on_bytes(exchange->body_arg, piece);
        if (connection->exchange != exchange)
            return;
    }
    buffer_consume(&connection->in, connection->in.len - input.len);
    if (event == HTTP1_BODY_ERROR)
        http_connection_refuse_body(connection);
    else if (event == HTTP1_BODY_END)
        http_connection_end_body(connection);
    else if (exchange->body_paused)
        loop_cancel_timer(connection->listener->loop, &connection->timer);
    else /* there was progress */
        http_connection_set_timer(connection,
                                  connection->listener->config->gateway.timeouts.message_ms);
}

static void http_connection_parse_body(struct http_connection *connection)
{
    struct exchange *exchange = connection->exchange;
    struct slice input = buffer_slice(&connection->in);
    struct slice piece;
    enum http1_body_event event;
    size_t before = exchange->body.cap;
    if (exchange->body_sink) {
        http_connection_stream_body(connection);
        return;
    }
    while ((event = http1_body_decode(&exchange->body_decoder, &input, &piece)) == HTTP1_BODY_DATA)
        buffer_append_slice(&exchange->body, piece);
    if (connection->listener->memory && exchange->body.cap != before)
        memory_account_add(connection->listener->memory, MEMORY_BODIES,
                           (int64_t)exchange->body.cap - (int64_t)before);
    buffer_consume(&connection->in, connection->in.len - input.len);
    if (event == HTTP1_BODY_ERROR)
        http_connection_refuse_body(connection);
    else if (exchange->body.failed)
        http_connection_refuse(connection, 503, "out of memory");
    else if (event == HTTP1_BODY_END)
        http_connection_end_body(connection);
}

void http_connection_read_body(struct exchange *exchange)
{
    struct http_connection *connection = exchange->connection;
    const struct http_listener_owner *owner = exchange->listener->owner;
    if (!connection) { /* the client has left meanwhile */
        exchange_reply_empty(&exchange);
        return;
    }
    connection->close_after = true; /* if it is answered before its body was read */
    bool is_streamed = exchange->route && exchange->route->streams_body;
    http1_body_start(&exchange->body_decoder, &exchange->head,
                     is_streamed ? UINT64_MAX : owner->body_bytes_max(exchange));
    if (exchange->head.expect_continue) {
        buffer_append_text(&connection->out, "HTTP/1.1 100 Continue\r\n\r\n");
        stream_want_write(&connection->stream);
    }
    if (is_streamed)
        owner->answer(exchange); /* sets the sink, or answers */
    if (connection->exchange != exchange)
        return;
    http_connection_set_state(connection, HTTP_BODY);
    http_connection_parse_body(connection);
}

/* Counts the connection for the client that a trusted proxy names. Returns false when that has too many connections. */
static bool http_connection_take_forwarded(struct http_connection *connection)
{
    struct client_addresses *addresses = connection->listener->addresses;
    struct ip_address client;
    struct slice header = http1_header_last(&connection->exchange->head, SLICE("X-Forwarded-For"));
    return !connection->proxied || !client_addresses_forwarded(addresses, header, &client) ||
           client_addresses_assign(addresses, connection->stream.source.fd, &client);
}

/* Lets the owner look at the head before the body is read. */
static void http_connection_check_head(struct http_connection *connection)
{
    struct exchange *exchange = connection->exchange;
    const struct http_listener_owner *owner = connection->listener->owner;
    connection->close_after =
        exchange_has_body(exchange) || !exchange->head.keep_alive || connection->listener->draining;
    if (connection->over_limit || !http_connection_take_forwarded(connection)) {
        metrics_count(connection->listener->metrics, METRIC_ADDRESS_REFUSED);
        connection->close_after = true;
        exchange_error(&exchange, 429, ERROR_RATE_LIMITED,
                       "there are too many connections from this address");
        return;
    }
    if (!owner->on_head) {
        http_connection_read_body(exchange);
        return;
    }
    http_connection_set_state(connection, HTTP_ANSWERING);
    if (owner->on_head(exchange) == HTTP_READ_BODY)
        http_connection_read_body(exchange);
}

/* Moves the head's bytes into a new exchange and parses them there, where they stay. */
static void http_connection_start_exchange(struct http_connection *connection, size_t head_len)
{
    struct exchange *exchange = http_connection_make_exchange(connection);
    size_t scanned = 0;
    if (!exchange) {
        stream_close(&connection->stream);
        return;
    }
    buffer_append(&exchange->head_bytes, connection->in.data, head_len);
    buffer_consume(&connection->in, head_len);
    connection->scanned = 0;
    if (exchange->head_bytes.failed || http1_parse(buffer_slice(&exchange->head_bytes), &scanned,
                                                   &exchange->head) != HTTP1_COMPLETE) {
        http_connection_refuse(connection, 503, "out of memory");
        return;
    }
    const struct http_listener_owner *owner = connection->listener->owner;
    if (!owner->give_away || !owner->give_away(connection))
        http_connection_check_head(connection);
}

/* Parses the bytes received so far. */
static void http_connection_parse(struct http_connection *connection)
{
    static _Thread_local struct http1_head head; /* static because it is large */
    if (connection->state == HTTP_BODY) {
        http_connection_parse_body(connection);
        return;
    }
    if (connection->state != HTTP_HEAD || connection->in.len == 0)
        return;
    switch (http1_parse(buffer_slice(&connection->in), &connection->scanned, &head)) {
    case HTTP1_INCOMPLETE:
        break;
    case HTTP1_REFUSED:
        http_connection_refuse(connection, head.error_status, head.error_reason);
        break;
    case HTTP1_COMPLETE:
        http_connection_start_exchange(connection, head.len);
        break;
    }
}

/* ---- the stream's owner ---- */

static void on_http_bytes(struct stream *stream, char *data, size_t len)
{
    struct http_connection *connection = http_connection_of(stream);
    if (connection->state == HTTP_CLOSING)
        return;
    if (connection->state == HTTP_HEAD && connection->in.len == 0)
        http_connection_set_timer(connection,
                                  connection->listener->config->gateway.http.header_timeout_ms);
    buffer_append(&connection->in, data, len);
    if (connection->in.failed)
        stream_close(stream);
    else
        http_connection_parse(connection);
}

static void on_http_ended(struct stream *stream)
{
    struct http_connection *connection = http_connection_of(stream);
    bool answer_waits = connection->out_sent < connection->out.len;
    if (stream->failed || connection->state != HTTP_CLOSING || !answer_waits)
        stream_close(stream);
}

static size_t gather_http_answer(struct stream *stream, struct iovec *out, size_t max)
{
    struct http_connection *connection = http_connection_of(stream);
    if (max == 0 || connection->out_sent == connection->out.len)
        return 0;
    out[0] = (struct iovec){connection->out.data + connection->out_sent,
                            connection->out.len - connection->out_sent};
    return 1;
}

/* After the whole answer: closes, or continues with the next request, which may have been received already. */
static bool on_http_sent(struct stream *stream, size_t bytes)
{
    struct http_connection *connection = http_connection_of(stream);
    connection->out_sent += bytes;
    if (connection->out_sent < connection->out.len)
        return true;
    buffer_free(&connection->out);
    connection->out_sent = 0;
    if (connection->state == HTTP_STREAMING) {
        loop_cancel_timer(connection->listener->loop, &connection->timer);
        connection->exchange->on_answer_sent(connection->exchange->gone_arg);
        return connection->out_sent < connection->out.len;
    }
    if (connection->state == HTTP_SENDING)
        http_connection_set_state(connection, connection->close_after ? HTTP_CLOSING : HTTP_HEAD);
    if (connection->state == HTTP_CLOSING && stream->ended) {
        stream_close(stream);
    } else if (connection->state == HTTP_CLOSING) {
        stream_shutdown(stream); /* the client reads the answer, then closes */
    } else if (connection->state == HTTP_HEAD) {
        if (connection->in.len) /* it has waited for the answer, so its time starts now */
            http_connection_set_timer(connection,
                                      connection->listener->config->gateway.http.header_timeout_ms);
        http_connection_parse(connection);
    }
    return connection->out_sent < connection->out.len;
}

static void on_http_closed(struct stream *stream)
{
    struct http_connection *connection = http_connection_of(stream);
    loop_cancel_timer(connection->listener->loop, &connection->timer);
    if (connection->exchange) {
        connection->exchange->connection = NULL;
        struct exchange *exchange = connection->exchange;
        if (connection->state != HTTP_ANSWERING &&
            connection->state != HTTP_STREAMING) /* no handler has it */
            exchange_reply_empty(&exchange);
        else if (exchange->on_client_gone)
            exchange->on_client_gone(exchange->gone_arg);
    }
    connection->listener->connection_count--;
    list_remove(&connection->of_listener);
    list_remove(&connection->waiting);
    buffer_free(&connection->in);
    buffer_free(&connection->out);
    free(connection);
}

static const struct stream_owner HTTP_STREAM_OWNER = {
    .on_bytes = on_http_bytes,
    .on_ended = on_http_ended,
    .gather = gather_http_answer,
    .on_sent = on_http_sent,
    .on_closed = on_http_closed,
};

static void on_http_timeout(struct wheel_timer *timer)
{
    struct http_connection *connection = CONTAINER_OF(timer, struct http_connection, timer);
    bool in_request = connection->in.len > 0 || connection->state == HTTP_BODY;
    if (connection->state == HTTP_CLOSING || connection->state == HTTP_SENDING ||
        connection->state == HTTP_STREAMING || !in_request)
        stream_close(&connection->stream);
    else {
        if (connection->state == HTTP_BODY)
            metrics_count(connection->listener->metrics, METRIC_MESSAGES_UNFINISHED);
        http_connection_refuse(connection, 408, "the request took too long to arrive");
    }
}

struct http_connection *http_connection_open(struct http_listener *listener, int fd,
                                             struct tls_connection *tls, bool moved)
{
    bool welcome = !listener->shut && listener->owner->make_space(listener);
    struct http_connection *connection = welcome ? calloc(1, sizeof(*connection)) : NULL;
    if (!connection)
        return NULL;
    connection->listener = listener;
    connection->timer.fire = on_http_timeout;
    connection->in.max = HTTP1_HEAD_BYTES_MAX + LOOP_READ_BYTES;
    bool opened =
        moved
            ? stream_open_moved(&connection->stream, listener->streams, &HTTP_STREAM_OWNER, fd, tls)
            : stream_open(&connection->stream, listener->streams, &HTTP_STREAM_OWNER, fd, tls);
    if (!opened) {
        free(connection);
        return NULL;
    }
    listener->connection_count++;
    list_append(&listener->connections, &connection->of_listener);
    list_append(&listener->waiting, &connection->waiting);
    http_connection_set_timer(connection, listener->config->gateway.http.header_timeout_ms);
    return connection;
}

bool http_connection_move_out(struct http_connection *connection,
                              struct http_moved_connection *moved)
{
    if (!stream_detach(&connection->stream, &moved->fd, &moved->tls))
        return false;
    moved->exchange = connection->exchange;
    moved->exchange->connection = NULL;
    moved->in = connection->in;
    connection->exchange = NULL;
    connection->in = (struct buffer)BUFFER_INIT;
    return true;
}

void http_connection_move_in(struct http_listener *listener, struct http_moved_connection *moved)
{
    struct http_connection *connection =
        http_connection_open(listener, moved->fd, moved->tls, true);
    moved->exchange->listener = listener;
    if (!connection) {
        metrics_count(listener->metrics, METRIC_CONNECTIONS_REFUSED);
        exchange_reply_empty(&moved->exchange);
        buffer_free(&moved->in);
        tls_connection_free(&moved->tls);
        close(moved->fd);
        return;
    }
    connection->in = moved->in;
    connection->exchange = moved->exchange;
    connection->exchange->connection = connection;
    http_connection_check_head(connection);
}

void http_connection_accept_moved(struct http_listener *listener, int fd, struct slice bytes)
{
    struct http_connection *connection = http_connection_open(listener, fd, NULL, true);
    if (!connection) {
        metrics_count(listener->metrics, METRIC_CONNECTIONS_REFUSED);
        close(fd);
        return;
    }
    buffer_append_slice(&connection->in, bytes);
    if (connection->in.failed)
        stream_close(&connection->stream);
    else
        http_connection_parse(connection);
}
