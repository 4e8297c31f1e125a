#include "redis/redis_socket.h"

#include "base/container.h"
#include "net/resolver.h"
#include "net/tls.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES_KEPT = 256 * 1024, DETAIL_MAX = 128 };

static bool is_up(const struct redis_socket *wire)
{
    return wire->state == REDIS_SOCKET_CONNECTING || wire->state == REDIS_SOCKET_OPEN;
}

/* ---- reading ---- */

/* Why a handshake was refused, for the log. A command that the server does not know it repeats with its
 * arguments, and one of them is the password. */
static struct slice detail_of(const struct resp_value *reply)
{
    bool tells = reply->type == RESP_ERROR && reply->text.len < DETAIL_MAX &&
                 !slice_starts_with(reply->text, SLICE("ERR unknown command"));
    return tells ? reply->text : SLICE_NONE;
}

static void shake_hands(struct redis_socket *wire, const struct resp_value *reply)
{
    enum redis_problem problem;
    char detail[DETAIL_MAX] = "";
    switch (redis_handshake_answer(&wire->handshake, reply, &wire->greeting, &problem)) {
    case REDIS_HANDSHAKE_RUNNING:
        stream_want_write(&wire->stream);
        return;
    case REDIS_HANDSHAKE_DONE:
        wire->state = REDIS_SOCKET_OPEN;
        if (wire->out.len > 0)
            stream_want_write(&wire->stream);
        wire->owner->opened(wire);
        return;
    case REDIS_HANDSHAKE_FAILED:
        snprintf(detail, sizeof(detail), "%.*s", SLICE_FORMAT(detail_of(reply)));
        wire->owner->broken(wire, problem, detail);
        return;
    }
}

/* Handles the whole replies at the front; answers how many bytes they took. */
static size_t handle_replies(struct redis_socket *wire, struct slice input)
{
    size_t taken = 0;
    while (is_up(wire)) {
        const struct resp_value *reply;
        size_t len;
        enum resp_result result =
            resp_parse(&wire->parser, slice_after(input, taken), &reply, &len);
        if (result == RESP_INVALID)
            wire->owner->broken(wire, REDIS_NOT_UNDERSTOOD, "");
        if (result != RESP_COMPLETE)
            break;
        taken += len;
        if (wire->state == REDIS_SOCKET_CONNECTING)
            shake_hands(wire, reply);
        else
            wire->owner->reply(wire, reply);
    }
    return taken;
}

static void received(struct stream *stream, char *data, size_t len)
{
    struct redis_socket *wire = CONTAINER_OF(stream, struct redis_socket, stream);
    struct slice input = {data, len};
    wire->heard_ms = stream->set->loop->clock.now_ms;
    if (wire->in.len > 0) {
        buffer_append_slice(&wire->in, input);
        buffer_consume(&wire->in, handle_replies(wire, buffer_slice(&wire->in)));
    } else {
        buffer_append_slice(&wire->in, slice_after(input, handle_replies(wire, input)));
    }
    if (!is_up(wire))
        buffer_clear(&wire->in);
    else if (wire->in.failed)
        wire->owner->broken(wire, REDIS_NOT_UNDERSTOOD, "a reply is too long");
    if (wire->in.len == 0 && wire->in.cap > BUFFER_BYTES_KEPT)
        buffer_free(&wire->in);
}

/* ---- writing ---- */

bool redis_socket_write(struct redis_socket *wire, struct slice first, struct slice second)
{
    size_t before = wire->out.len;
    buffer_append_slice(&wire->out, first);
    buffer_append_slice(&wire->out, second);
    if (wire->out.failed) { /* what was there before stays */
        wire->out.failed = false;
        wire->out.len = before;
        return false;
    }
    if (wire->state == REDIS_SOCKET_OPEN)
        stream_want_write(&wire->stream);
    return true;
}

static size_t gather(struct stream *stream, struct iovec *out, size_t max)
{
    struct redis_socket *wire = CONTAINER_OF(stream, struct redis_socket, stream);
    struct slice pending = wire->state == REDIS_SOCKET_CONNECTING
                               ? buffer_slice(&wire->greeting)
                               : slice_after(buffer_slice(&wire->out), wire->out_sent);
    (void)max;
    *out = (struct iovec){(void *)pending.data, pending.len};
    return pending.len > 0;
}

static bool sent(struct stream *stream, size_t bytes)
{
    struct redis_socket *wire = CONTAINER_OF(stream, struct redis_socket, stream);
    if (wire->state == REDIS_SOCKET_CONNECTING) {
        buffer_consume(&wire->greeting, bytes);
        return wire->greeting.len > 0;
    }
    wire->out_sent += bytes;
    if (wire->out_sent == wire->out.len) {
        wire->out_sent = 0;
        wire->out.len = 0;
        if (wire->out.cap > BUFFER_BYTES_KEPT)
            buffer_free(&wire->out);
    } else if (wire->out_sent > wire->out.len / 2) { /* moved at most once a byte */
        buffer_consume(&wire->out, wire->out_sent);
        wire->out_sent = 0;
    }
    return wire->out.len > 0;
}

/* ---- connecting ---- */

static void ended(struct stream *stream)
{
    struct redis_socket *wire = CONTAINER_OF(stream, struct redis_socket, stream);
    const char *distrust = stream->tls ? tls_distrust(stream->tls) : NULL;
    const char *reason = stream->error ? strerror(stream->error) : "";
    if (!is_up(wire))
        return;
    if (distrust || stream->error == EPROTO)
        wire->owner->broken(wire, REDIS_DISTRUSTED, distrust ? distrust : reason);
    else if (wire->state == REDIS_SOCKET_CONNECTING && stream->error)
        wire->owner->broken(wire, REDIS_UNREACHABLE, reason);
    else
        wire->owner->broken(wire, REDIS_BROKEN_OFF, reason);
}

static void closed(struct stream *stream)
{
    struct redis_socket *wire = CONTAINER_OF(stream, struct redis_socket, stream);
    wire->state = REDIS_SOCKET_IDLE;
    wire->owner->closed(wire);
}

static const struct stream_owner stream_owner = {received, ended, gather, sent, closed};

/* Takes the descriptor. */
static bool open_stream(struct redis_socket *wire, int fd)
{
    struct tls_session *tls = NULL;
    if (wire->tls) {
        tls = tls_session_make_client(wire->tls, fd, wire->endpoint.host);
        errno = ENOMEM;
    }
    if ((!wire->tls || tls) && stream_open(&wire->stream, wire->streams, &stream_owner, fd, tls))
        return true;
    int reason = errno;
    tls_session_free(&tls);
    close(fd);
    errno = reason;
    return false;
}

static void connect_to(struct redis_socket *wire, const struct resolver_address *address)
{
    int fd = resolver_connect(address);
    if (fd < 0 || !open_stream(wire, fd)) {
        wire->owner->broken(wire, REDIS_UNREACHABLE, strerror(errno));
        return;
    }
    wire->state = REDIS_SOCKET_CONNECTING;
    redis_handshake_begin(&wire->handshake, wire->identity, &wire->greeting);
    stream_want_write(&wire->stream);
}

static void resolved(void *arg, const struct resolver_address *addresses, size_t count,
                     const char *error)
{
    struct redis_socket *wire = arg;
    wire->lookup = NULL;
    if (count == 0)
        wire->owner->broken(wire, REDIS_NAME_UNKNOWN, error);
    else
        connect_to(wire, &addresses[wire->attempts % count]);
}

void redis_socket_open(struct redis_socket *wire)
{
    struct resolver_address address;
    assert(wire->state == REDIS_SOCKET_IDLE);
    wire->state = REDIS_SOCKET_RESOLVING;
    wire->attempts++;
    if (resolver_numeric(wire->endpoint.host, wire->endpoint.port, &address)) {
        connect_to(wire, &address);
        return;
    }
    wire->lookup = resolver_start(wire->streams->loop, wire->endpoint.host, wire->endpoint.port,
                                  resolved, wire);
    if (!wire->lookup)
        wire->owner->broken(wire, REDIS_NAME_UNKNOWN, "no thread to look it up");
}

void redis_socket_close(struct redis_socket *wire)
{
    resolver_cancel(&wire->lookup);
    resp_parser_restart(&wire->parser);
    buffer_clear(&wire->in);
    buffer_clear(&wire->greeting);
    buffer_clear(&wire->out);
    wire->out_sent = 0;
    if (is_up(wire)) {
        wire->state = REDIS_SOCKET_CLOSING;
        stream_close(&wire->stream);
    } else if (wire->state == REDIS_SOCKET_RESOLVING) {
        wire->state = REDIS_SOCKET_IDLE;
    }
}

void redis_socket_cut(struct redis_socket *wire)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (is_up(wire)) /* where it cannot be, it is closed as ever */
        setsockopt(wire->stream.source.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    redis_socket_close(wire);
}

void redis_socket_init(struct redis_socket *wire, struct stream_set *streams,
                       struct tls_context *tls, const struct redis_identity *identity,
                       const struct redis_endpoint *endpoint,
                       const struct redis_socket_owner *owner)
{
    *wire = (struct redis_socket){.owner = owner,
                                  .streams = streams,
                                  .tls = tls,
                                  .identity = identity,
                                  .endpoint = *endpoint,
                                  .in = BUFFER_BOUNDED(REDIS_REPLY_BYTES_MAX),
                                  .out = BUFFER_BOUNDED(REDIS_OUT_BYTES_MAX)};
}

void redis_socket_free(struct redis_socket *wire)
{
    redis_socket_close(wire);
    if (wire->state == REDIS_SOCKET_CLOSING)
        stream_drop(&wire->stream);
    buffer_free(&wire->greeting);
    buffer_free(&wire->in);
    buffer_free(&wire->out);
    resp_parser_free(&wire->parser);
}
