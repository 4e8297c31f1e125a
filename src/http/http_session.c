#include "http/http_session.h"

#include "base/container.h"

#include <stdlib.h>
#include <unistd.h>

static struct http_session *http_session_of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct http_session, stream);
}

static void http_session_set_timer(struct http_session *session, int64_t after_ms)
{
    struct loop *loop = session->listener->loop;
    loop_set_timer(loop, &session->timer, loop->clock.now_ms + after_ms);
}

static void http_session_set_state(struct http_session *session, enum http_state state)
{
    const struct config *config = session->listener->config;
    session->state = state;
    list_remove(&session->waiting);
    if (state == HTTP_HEAD || state == HTTP_BODY)
        list_append(&session->listener->waiting, &session->waiting);
    stream_pause(&session->stream, state == HTTP_ANSWERING || state == HTTP_SENDING);
    if (state == HTTP_ANSWERING)
        loop_cancel_timer(session->listener->loop, &session->timer);
    else if (state == HTTP_HEAD || state == HTTP_SENDING)
        http_session_set_timer(session, config->gateway.http.idle_timeout_ms);
    else if (state == HTTP_CLOSING)
        http_session_set_timer(session, config->gateway.close_timeout_ms);
}

/* Makes an exchange for a head that was just read; it has no route yet. */
static struct exchange *http_session_make_exchange(struct http_session *session)
{
    struct exchange *exchange = calloc(1, sizeof(*exchange));
    if (exchange) {
        exchange->session = session;
        exchange->listener = session->listener;
        session->exchange = exchange;
    }
    return exchange;
}

static void http_session_refuse(struct http_session *session, unsigned status, const char *text)
{
    metrics_count(session->listener->metrics, METRIC_PROTOCOL_ERRORS);
    struct exchange *exchange =
        session->exchange ? session->exchange : http_session_make_exchange(session);
    if (!exchange) {
        stream_close(&session->stream);
        return;
    }
    enum error_code code = status == 413   ? ERROR_MESSAGE_TOO_LARGE
                           : status == 503 ? ERROR_SERVICE_UNAVAILABLE
                                           : ERROR_INVALID_MESSAGE;
    session->close_after = true;
    exchange_error(&exchange, status, code, text);
}

void http_session_answered(struct http_session *session)
{
    stream_want_write(&session->stream);
    http_session_set_state(session, session->close_after ? HTTP_CLOSING : HTTP_SENDING);
}

static void http_session_parse_body(struct http_session *session)
{
    struct exchange *exchange = session->exchange;
    struct slice input = buffer_slice(&session->in);
    struct slice piece;
    enum http1_body_event event;
    while ((event = http1_body_decode(&exchange->body_decoder, &input, &piece)) == HTTP1_BODY_DATA)
        buffer_append_slice(&exchange->body, piece);
    buffer_consume(&session->in, session->in.len - input.len);
    if (event == HTTP1_BODY_ERROR) {
        http_session_refuse(session, exchange->body_decoder.error_status,
                            exchange->body_decoder.error_status == 413
                                ? "the request's body is too large"
                                : "the request's body is not acceptable");
        return;
    }
    if (exchange->body.failed) {
        http_session_refuse(session, 503, "out of memory");
        return;
    }
    if (event != HTTP1_BODY_END)
        return;
    session->close_after = !exchange->head.keep_alive || session->listener->draining;
    http_session_set_state(session, HTTP_ANSWERING);
    session->listener->owner->answer(exchange);
}

static void http_session_start_body(struct http_session *session)
{
    struct exchange *exchange = session->exchange;
    const struct http_listener_owner *owner = session->listener->owner;
    session->close_after = true; /* if it is answered before its body was read */
    if (owner->on_head && !owner->on_head(exchange))
        return;
    http1_body_start(&exchange->body_decoder, &exchange->head, owner->body_bytes_max(exchange));
    if (exchange->head.expect_continue) {
        buffer_append_text(&session->out, "HTTP/1.1 100 Continue\r\n\r\n");
        stream_want_write(&session->stream);
    }
    http_session_set_state(session, HTTP_BODY);
    http_session_parse_body(session);
}

/* Moves the head's bytes into a new exchange and parses them there, where they stay. */
static void http_session_start_exchange(struct http_session *session, size_t head_len)
{
    struct exchange *exchange = http_session_make_exchange(session);
    size_t scanned = 0;
    if (!exchange) {
        stream_close(&session->stream);
        return;
    }
    buffer_append(&exchange->head_bytes, session->in.data, head_len);
    buffer_consume(&session->in, head_len);
    session->scanned = 0;
    if (exchange->head_bytes.failed || http1_parse(buffer_slice(&exchange->head_bytes), &scanned,
                                                   &exchange->head) != HTTP1_COMPLETE) {
        http_session_refuse(session, 503, "out of memory");
        return;
    }
    const struct http_listener_owner *owner = session->listener->owner;
    if (!owner->give_away || !owner->give_away(session))
        http_session_start_body(session);
}

/* Parses the bytes received so far. */
static void http_session_parse(struct http_session *session)
{
    static _Thread_local struct http1_head head; /* static because it is large */
    if (session->state == HTTP_BODY) {
        http_session_parse_body(session);
        return;
    }
    if (session->state != HTTP_HEAD || session->in.len == 0)
        return;
    switch (http1_parse(buffer_slice(&session->in), &session->scanned, &head)) {
    case HTTP1_INCOMPLETE:
        break;
    case HTTP1_REFUSED:
        http_session_refuse(session, head.error_status, head.error_reason);
        break;
    case HTTP1_COMPLETE:
        http_session_start_exchange(session, head.len);
        break;
    }
}

/* ---- the stream's owner ---- */

static void on_http_bytes(struct stream *stream, char *data, size_t len)
{
    struct http_session *session = http_session_of(stream);
    if (session->state == HTTP_CLOSING)
        return;
    if (session->state == HTTP_HEAD && session->in.len == 0)
        http_session_set_timer(session, session->listener->config->gateway.http.header_timeout_ms);
    buffer_append(&session->in, data, len);
    if (session->in.failed)
        stream_close(stream);
    else
        http_session_parse(session);
}

static void on_http_ended(struct stream *stream)
{
    struct http_session *session = http_session_of(stream);
    bool answer_waits = session->out_sent < session->out.len;
    if (stream->failed || session->state != HTTP_CLOSING || !answer_waits)
        stream_close(stream);
}

static size_t gather_http_answer(struct stream *stream, struct iovec *out, size_t max)
{
    struct http_session *session = http_session_of(stream);
    if (max == 0 || session->out_sent == session->out.len)
        return 0;
    out[0] =
        (struct iovec){session->out.data + session->out_sent, session->out.len - session->out_sent};
    return 1;
}

/* After the whole answer: closes, or continues with the next request, which may have been received already. */
static bool on_http_sent(struct stream *stream, size_t bytes)
{
    struct http_session *session = http_session_of(stream);
    session->out_sent += bytes;
    if (session->out_sent < session->out.len)
        return true;
    buffer_free(&session->out);
    session->out_sent = 0;
    if (session->state == HTTP_SENDING)
        http_session_set_state(session, session->close_after ? HTTP_CLOSING : HTTP_HEAD);
    if (session->state == HTTP_CLOSING && stream->ended) {
        stream_close(stream);
    } else if (session->state == HTTP_CLOSING) {
        stream_shutdown(stream); /* the peer reads the answer, then closes */
    } else if (session->state == HTTP_HEAD) {
        if (session->in.len) /* it has waited for the answer, so its time starts now */
            http_session_set_timer(session,
                                   session->listener->config->gateway.http.header_timeout_ms);
        http_session_parse(session);
    }
    return session->out_sent < session->out.len;
}

static void on_http_closed(struct stream *stream)
{
    struct http_session *session = http_session_of(stream);
    loop_cancel_timer(session->listener->loop, &session->timer);
    if (session->exchange) {
        session->exchange->session = NULL;
        struct exchange *exchange = session->exchange;
        if (session->state != HTTP_ANSWERING) /* no handler has it */
            exchange_reply_empty(&exchange);
        else if (exchange->on_peer_gone)
            exchange->on_peer_gone(exchange->gone_arg);
    }
    session->listener->session_count--;
    list_remove(&session->of_listener);
    list_remove(&session->waiting);
    buffer_free(&session->in);
    buffer_free(&session->out);
    free(session);
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
    struct http_session *session = CONTAINER_OF(timer, struct http_session, timer);
    bool in_request = session->in.len > 0 || session->state == HTTP_BODY;
    if (session->state == HTTP_CLOSING || session->state == HTTP_SENDING || !in_request)
        stream_close(&session->stream);
    else
        http_session_refuse(session, 408, "the request took too long to arrive");
}

struct http_session *http_session_open(struct http_listener *listener, int fd,
                                       struct tls_session *tls, bool moved)
{
    bool welcome = !listener->shut && listener->owner->make_space(listener);
    struct http_session *session = welcome ? calloc(1, sizeof(*session)) : NULL;
    if (!session)
        return NULL;
    session->listener = listener;
    session->timer.fire = on_http_timeout;
    session->in.max = HTTP1_HEAD_BYTES_MAX + LOOP_READ_BYTES;
    bool opened =
        moved ? stream_open_moved(&session->stream, listener->streams, &HTTP_STREAM_OWNER, fd, tls)
              : stream_open(&session->stream, listener->streams, &HTTP_STREAM_OWNER, fd, tls);
    if (!opened) {
        free(session);
        return NULL;
    }
    listener->session_count++;
    list_append(&listener->sessions, &session->of_listener);
    list_append(&listener->waiting, &session->waiting);
    http_session_set_timer(session, listener->config->gateway.http.header_timeout_ms);
    return session;
}

bool http_session_move_out(struct http_session *session, struct http_moved_connection *moved)
{
    if (!stream_detach(&session->stream, &moved->fd, &moved->tls))
        return false;
    moved->exchange = session->exchange;
    moved->exchange->session = NULL;
    moved->in = session->in;
    session->exchange = NULL;
    session->in = (struct buffer)BUFFER_INIT;
    return true;
}

void http_session_move_in(struct http_listener *listener, struct http_moved_connection *moved)
{
    struct http_session *session = http_session_open(listener, moved->fd, moved->tls, true);
    moved->exchange->listener = listener;
    if (!session) {
        metrics_count(listener->metrics, METRIC_CONNECTIONS_REFUSED);
        exchange_reply_empty(&moved->exchange);
        buffer_free(&moved->in);
        tls_session_free(&moved->tls);
        close(moved->fd);
        return;
    }
    session->in = moved->in;
    session->exchange = moved->exchange;
    session->exchange->session = session;
    http_session_start_body(session);
}

void http_session_accept_moved(struct http_listener *listener, int fd, struct slice bytes)
{
    struct http_session *session = http_session_open(listener, fd, NULL, true);
    if (!session) {
        metrics_count(listener->metrics, METRIC_CONNECTIONS_REFUSED);
        close(fd);
        return;
    }
    buffer_append_slice(&session->in, bytes);
    if (session->in.failed)
        stream_close(&session->stream);
    else
        http_session_parse(session);
}
