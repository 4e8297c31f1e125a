#include "http/http_session.h"

#include "base/container.h"

#include <stdlib.h>
#include <unistd.h>

static struct http_session *session_of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct http_session, stream);
}

static void read_on(struct http_session *session);

static void set_timer(struct http_session *session, int64_t after_ms)
{
    struct loop *loop = session->door->loop;
    loop_set_timer(loop, &session->timer, loop->clock.now_ms + after_ms);
}

static void set_state(struct http_session *session, enum http_state state)
{
    const struct config *config = session->door->config;
    session->state = state;
    list_remove(&session->waiting);
    if (state == HTTP_HEAD || state == HTTP_BODY)
        list_append(&session->door->waiting, &session->waiting);
    stream_pause(&session->stream, state == HTTP_ANSWERING || state == HTTP_SENDING);
    if (state == HTTP_ANSWERING)
        loop_cancel_timer(session->door->loop, &session->timer);
    else if (state == HTTP_HEAD || state == HTTP_SENDING)
        set_timer(session, config->gateway.http.idle_timeout_ms);
    else if (state == HTTP_CLOSING)
        set_timer(session, config->gateway.close_timeout_ms);
}

/* An exchange without a route yet, for the head that was just read. */
static struct exchange *make_exchange(struct http_session *session)
{
    struct exchange *exchange = calloc(1, sizeof(*exchange));
    if (exchange) {
        exchange->session = session;
        exchange->door = session->door;
        session->exchange = exchange;
    }
    return exchange;
}

static enum error_code code_of(unsigned status)
{
    return status == 413   ? ERROR_MESSAGE_TOO_LARGE
           : status == 503 ? ERROR_SERVICE_UNAVAILABLE
                           : ERROR_INVALID_MESSAGE;
}

static void refuse(struct http_session *session, unsigned status, const char *text)
{
    metrics_count(session->door->metrics, METRIC_PROTOCOL_ERRORS);
    struct exchange *exchange = session->exchange ? session->exchange : make_exchange(session);
    if (!exchange) {
        stream_close(&session->stream);
        return;
    }
    session->close_after = true;
    exchange_error(&exchange, status, code_of(status), text);
}

void http_session_answered(struct http_session *session, bool close_after)
{
    session->close_after |= close_after;
    stream_want_write(&session->stream);
    set_state(session, session->close_after ? HTTP_CLOSING : HTTP_SENDING);
}

static void answer(struct http_session *session)
{
    struct exchange *exchange = session->exchange;
    session->close_after = !exchange->head.keep_alive || session->door->draining;
    set_state(session, HTTP_ANSWERING);
    session->door->owner->answer(exchange);
}

static void read_body(struct http_session *session)
{
    struct exchange *exchange = session->exchange;
    struct slice input = buffer_slice(&session->in);
    struct slice piece;
    enum http1_body_event event;
    while ((event = http1_body_decode(&exchange->body_decoder, &input, &piece)) == HTTP1_BODY_DATA)
        buffer_append_slice(&exchange->body, piece);
    buffer_consume(&session->in, session->in.len - input.len);
    if (event == HTTP1_BODY_ERROR)
        refuse(session, exchange->body_decoder.error_status,
               exchange->body_decoder.error_status == 413 ? "the request's body is too large"
                                                          : "the request's body is not acceptable");
    else if (exchange->body.failed)
        refuse(session, 503, "out of memory");
    else if (event == HTTP1_BODY_END)
        answer(session);
}

static void start_body(struct http_session *session)
{
    struct exchange *exchange = session->exchange;
    const struct http_listener_owner *owner = session->door->owner;
    session->close_after = true; /* should it be answered without its body */
    if (owner->announced && !owner->announced(exchange))
        return;
    http1_body_start(&exchange->body_decoder, &exchange->head, owner->body_bytes_max(exchange));
    if (exchange->head.expect_continue) {
        buffer_append_text(&session->out, "HTTP/1.1 100 Continue\r\n\r\n");
        stream_want_write(&session->stream);
    }
    set_state(session, HTTP_BODY);
    read_body(session);
}

/* Gives the head's bytes to an exchange of their own and parses them there, where they stay. */
static void start_exchange(struct http_session *session, size_t head_len)
{
    struct exchange *exchange = make_exchange(session);
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
        refuse(session, 503, "out of memory");
        return;
    }
    const struct http_listener_owner *owner = session->door->owner;
    if (!owner->give_away || !owner->give_away(session))
        start_body(session);
}

static void read_head(struct http_session *session)
{
    static _Thread_local struct http1_head head; /* large, and needed only here */
    if (session->in.len == 0)
        return;
    switch (http1_parse(buffer_slice(&session->in), &session->scanned, &head)) {
    case HTTP1_INCOMPLETE:
        break;
    case HTTP1_REFUSED:
        refuse(session, head.error_status, head.error_reason);
        break;
    case HTTP1_COMPLETE:
        start_exchange(session, head.len);
        break;
    }
}

/* As far as what was read goes. */
static void read_on(struct http_session *session)
{
    if (session->state == HTTP_HEAD)
        read_head(session);
    else if (session->state == HTTP_BODY)
        read_body(session);
}

/* ---- the stream's owner ---- */

static void received(struct stream *stream, char *data, size_t len)
{
    struct http_session *session = session_of(stream);
    if (session->state == HTTP_CLOSING)
        return;
    if (session->state == HTTP_HEAD && session->in.len == 0)
        set_timer(session, session->door->config->gateway.http.header_timeout_ms);
    buffer_append(&session->in, data, len);
    if (session->in.failed)
        stream_close(stream);
    else
        read_on(session);
}

static void ended(struct stream *stream)
{
    struct http_session *session = session_of(stream);
    bool answer_waits = session->out_sent < session->out.len;
    if (stream->failed || session->state != HTTP_CLOSING || !answer_waits)
        stream_close(stream);
}

static size_t gather(struct stream *stream, struct iovec *out, size_t max)
{
    struct http_session *session = session_of(stream);
    if (max == 0 || session->out_sent == session->out.len)
        return 0;
    out[0] =
        (struct iovec){session->out.data + session->out_sent, session->out.len - session->out_sent};
    return 1;
}

/* What was read of the next request has been waiting for the last answer; its time starts now. */
static void go_on(struct http_session *session)
{
    if (session->in.len)
        set_timer(session, session->door->config->gateway.http.header_timeout_ms);
    read_on(session);
}

/* With the answer out: the end, or the next request, which may have been read with the last. */
static bool sent(struct stream *stream, size_t bytes)
{
    struct http_session *session = session_of(stream);
    session->out_sent += bytes;
    if (session->out_sent < session->out.len)
        return true;
    buffer_free(&session->out);
    session->out_sent = 0;
    if (session->state == HTTP_SENDING)
        set_state(session, session->close_after ? HTTP_CLOSING : HTTP_HEAD);
    if (session->state == HTTP_CLOSING && stream->ended)
        stream_close(stream);
    else if (session->state == HTTP_CLOSING)
        stream_shutdown(stream); /* the peer reads our answer, then ends */
    else if (session->state == HTTP_HEAD)
        go_on(session);
    return session->out_sent < session->out.len;
}

static void closed(struct stream *stream)
{
    struct http_session *session = session_of(stream);
    loop_cancel_timer(session->door->loop, &session->timer);
    if (session->exchange) {
        session->exchange->session = NULL;
        struct exchange *exchange = session->exchange;
        if (session->state != HTTP_ANSWERING) /* nobody else knows of it */
            exchange_reply_empty(&exchange);
        else if (exchange->gone)
            exchange->gone(exchange->gone_arg);
    }
    session->door->session_count--;
    list_remove(&session->of_door);
    list_remove(&session->waiting);
    buffer_free(&session->in);
    buffer_free(&session->out);
    free(session);
}

static const struct stream_owner OWNER = {
    .on_bytes = received,
    .on_ended = ended,
    .gather = gather,
    .on_sent = sent,
    .on_closed = closed,
};

static void timed_out(struct wheel_timer *timer)
{
    struct http_session *session = CONTAINER_OF(timer, struct http_session, timer);
    bool in_request = session->in.len > 0 || session->state == HTTP_BODY;
    if (session->state == HTTP_CLOSING || session->state == HTTP_SENDING || !in_request)
        stream_close(&session->stream);
    else
        refuse(session, 408, "the request took too long to arrive");
}

struct http_session *http_session_open(struct http_listener *door, int fd, struct tls_session *tls,
                                       bool moved)
{
    bool welcome = !door->shut && door->owner->make_room(door);
    struct http_session *session = welcome ? calloc(1, sizeof(*session)) : NULL;
    if (!session)
        return NULL;
    session->door = door;
    session->timer.fire = timed_out;
    session->in.max = HTTP1_HEAD_BYTES_MAX + LOOP_READ_BYTES;
    bool opened = moved ? stream_open_moved(&session->stream, door->streams, &OWNER, fd, tls)
                        : stream_open(&session->stream, door->streams, &OWNER, fd, tls);
    if (!opened) {
        free(session);
        return NULL;
    }
    door->session_count++;
    list_append(&door->sessions, &session->of_door);
    list_append(&door->waiting, &session->waiting);
    set_timer(session, door->config->gateway.http.header_timeout_ms);
    return session;
}

bool http_session_pack(struct http_session *session, struct http_parcel *parcel)
{
    if (!stream_detach(&session->stream, &parcel->fd, &parcel->tls))
        return false;
    parcel->exchange = session->exchange;
    parcel->exchange->session = NULL;
    parcel->in = session->in;
    session->exchange = NULL;
    session->in = (struct buffer)BUFFER_INIT;
    return true;
}

void http_session_unpack(struct http_listener *door, struct http_parcel *parcel)
{
    struct http_session *session = http_session_open(door, parcel->fd, parcel->tls, true);
    parcel->exchange->door = door;
    if (!session) {
        metrics_count(door->metrics, METRIC_CONNECTIONS_REFUSED);
        exchange_reply_empty(&parcel->exchange);
        buffer_free(&parcel->in);
        tls_session_free(&parcel->tls);
        close(parcel->fd);
        return;
    }
    session->in = parcel->in;
    session->exchange = parcel->exchange;
    session->exchange->session = session;
    start_body(session);
}

void http_session_accept_moved(struct http_listener *door, int fd, struct slice bytes)
{
    struct http_session *session = http_session_open(door, fd, NULL, true);
    if (!session) {
        metrics_count(door->metrics, METRIC_CONNECTIONS_REFUSED);
        close(fd);
        return;
    }
    buffer_append_slice(&session->in, bytes);
    if (session->in.failed)
        stream_close(&session->stream);
    else
        read_on(session);
}
