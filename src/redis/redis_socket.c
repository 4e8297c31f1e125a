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

static bool redis_socket_is_connected(const struct redis_socket *socket)
{
    return socket->state == REDIS_SOCKET_CONNECTING || socket->state == REDIS_SOCKET_OPEN;
}

/* ---- reading ---- */

static void redis_socket_continue_handshake(struct redis_socket *socket,
                                            const struct resp_value *reply)
{
    enum redis_problem problem;
    char detail[DETAIL_MAX] = "";
    switch (redis_handshake_answer(&socket->handshake, reply, &socket->handshake_out, &problem)) {
    case REDIS_HANDSHAKE_RUNNING:
        stream_want_write(&socket->stream);
        return;
    case REDIS_HANDSHAKE_DONE:
        socket->state = REDIS_SOCKET_OPEN;
        if (socket->out.len > 0)
            stream_want_write(&socket->stream);
        socket->owner->on_opened(socket);
        return;
    case REDIS_HANDSHAKE_FAILED:
        /* a server repeats an unknown command with its arguments, one of which is the password */
        if (reply->type == RESP_ERROR && reply->text.len < DETAIL_MAX &&
            !slice_starts_with(reply->text, SLICE("ERR unknown command")))
            snprintf(detail, sizeof(detail), "%.*s", SLICE_FORMAT(reply->text));
        socket->owner->on_broken(socket, problem, detail);
        return;
    }
}

/* Handles the whole replies at the front. Returns how many bytes they took. */
static size_t redis_socket_handle_replies(struct redis_socket *socket, struct slice input)
{
    size_t taken = 0;
    while (redis_socket_is_connected(socket)) {
        const struct resp_value *reply;
        size_t len;
        enum resp_result result =
            resp_parse(&socket->parser, slice_after(input, taken), &reply, &len);
        if (result == RESP_INVALID)
            socket->owner->on_broken(socket, REDIS_NOT_UNDERSTOOD, "");
        if (result != RESP_COMPLETE)
            break;
        taken += len;
        if (socket->state == REDIS_SOCKET_CONNECTING)
            redis_socket_continue_handshake(socket, reply);
        else
            socket->owner->on_reply(socket, reply);
    }
    return taken;
}

static void on_redis_bytes(struct stream *stream, char *data, size_t len)
{
    struct redis_socket *socket = CONTAINER_OF(stream, struct redis_socket, stream);
    struct slice input = {data, len};
    socket->heard_ms = stream->set->loop->clock.now_ms;
    if (socket->in.len > 0) {
        buffer_append_slice(&socket->in, input);
        buffer_consume(&socket->in, redis_socket_handle_replies(socket, buffer_slice(&socket->in)));
    } else {
        buffer_append_slice(&socket->in,
                            slice_after(input, redis_socket_handle_replies(socket, input)));
    }
    if (!redis_socket_is_connected(socket))
        buffer_clear(&socket->in);
    else if (socket->in.failed)
        socket->owner->on_broken(socket, REDIS_NOT_UNDERSTOOD, "a reply is too long");
    if (socket->in.len == 0 && socket->in.cap > BUFFER_BYTES_KEPT)
        buffer_free(&socket->in);
}

/* ---- writing ---- */

bool redis_socket_write(struct redis_socket *socket, struct slice first, struct slice second)
{
    size_t before = socket->out.len;
    buffer_append_slice(&socket->out, first);
    buffer_append_slice(&socket->out, second);
    if (socket->out.failed) {
        socket->out.failed = false;
        socket->out.len = before;
        return false;
    }
    if (socket->state == REDIS_SOCKET_OPEN)
        stream_want_write(&socket->stream);
    return true;
}

static size_t redis_socket_gather(struct stream *stream, struct iovec *out, size_t max)
{
    struct redis_socket *socket = CONTAINER_OF(stream, struct redis_socket, stream);
    struct slice unsent = socket->state == REDIS_SOCKET_CONNECTING
                              ? buffer_slice(&socket->handshake_out)
                              : slice_after(buffer_slice(&socket->out), socket->out_sent);
    (void)max;
    socket->gathers += socket->state != REDIS_SOCKET_CONNECTING;
    *out = (struct iovec){(void *)unsent.data, unsent.len};
    return unsent.len > 0;
}

static bool on_redis_bytes_sent(struct stream *stream, size_t bytes)
{
    struct redis_socket *socket = CONTAINER_OF(stream, struct redis_socket, stream);
    if (socket->state == REDIS_SOCKET_CONNECTING) {
        buffer_consume(&socket->handshake_out, bytes);
        return socket->handshake_out.len > 0;
    }
    socket->out_sent += bytes;
    if (socket->out_sent == socket->out.len) {
        socket->out_sent = 0;
        socket->out.len = 0;
        if (socket->out.cap > BUFFER_BYTES_KEPT)
            buffer_free(&socket->out);
    } else if (socket->out_sent > socket->out.len / 2) {
        /* not earlier, so that each byte is moved at most once */
        buffer_consume(&socket->out, socket->out_sent);
        socket->out_sent = 0;
    }
    return socket->out.len > 0;
}

/* ---- connecting ---- */

static void on_redis_stream_ended(struct stream *stream)
{
    struct redis_socket *socket = CONTAINER_OF(stream, struct redis_socket, stream);
    const char *distrust = stream->tls ? tls_distrust(stream->tls) : NULL;
    const char *reason = stream->error ? strerror(stream->error) : "";
    if (!redis_socket_is_connected(socket))
        return;
    if (distrust || stream->error == EPROTO)
        socket->owner->on_broken(socket, REDIS_DISTRUSTED, distrust ? distrust : reason);
    else if (socket->state == REDIS_SOCKET_CONNECTING && stream->error)
        socket->owner->on_broken(socket, REDIS_UNREACHABLE, reason);
    else
        socket->owner->on_broken(socket, REDIS_BROKEN_OFF, reason);
}

static void on_redis_stream_closed(struct stream *stream)
{
    struct redis_socket *socket = CONTAINER_OF(stream, struct redis_socket, stream);
    socket->state = REDIS_SOCKET_IDLE;
    socket->owner->on_closed(socket);
}

static const struct stream_owner REDIS_STREAM_OWNER = {.on_bytes = on_redis_bytes,
                                                       .on_ended = on_redis_stream_ended,
                                                       .gather = redis_socket_gather,
                                                       .on_sent = on_redis_bytes_sent,
                                                       .on_closed = on_redis_stream_closed};

/* Takes the descriptor. Returns false, with errno, and has then closed it. */
static bool redis_socket_open_stream(struct redis_socket *socket, int fd)
{
    struct tls_connection *tls = NULL;
    if (socket->tls) {
        tls = tls_connection_make_client(socket->tls, fd, socket->address.host);
        errno = ENOMEM;
    }
    if ((!socket->tls || tls) &&
        stream_open(&socket->stream, socket->streams, &REDIS_STREAM_OWNER, fd, tls))
        return true;
    int reason = errno;
    tls_connection_free(&tls);
    close(fd);
    errno = reason;
    return false;
}

static void redis_socket_connect(struct redis_socket *socket,
                                 const struct resolver_address *address)
{
    int fd = resolver_connect(address);
    if (fd < 0 || !redis_socket_open_stream(socket, fd)) {
        socket->owner->on_broken(socket, REDIS_UNREACHABLE, strerror(errno));
        return;
    }
    socket->state = REDIS_SOCKET_CONNECTING;
    redis_handshake_begin(&socket->handshake, socket->identity, &socket->handshake_out);
    stream_want_write(&socket->stream);
}

static void on_redis_host_resolved(void *arg, const struct resolver_address *addresses,
                                   size_t count, const char *error)
{
    struct redis_socket *socket = arg;
    socket->lookup = NULL;
    if (count == 0)
        socket->owner->on_broken(socket, REDIS_NAME_UNKNOWN, error);
    else
        redis_socket_connect(socket, &addresses[socket->attempts % count]);
}

void redis_socket_open(struct redis_socket *socket)
{
    struct resolver_address address;
    assert(socket->state == REDIS_SOCKET_IDLE);
    socket->state = REDIS_SOCKET_RESOLVING;
    socket->attempts++;
    if (resolver_numeric(socket->address.host, socket->address.port, &address)) {
        redis_socket_connect(socket, &address);
        return;
    }
    socket->lookup = resolver_start(socket->streams->loop, socket->address.host,
                                    socket->address.port, on_redis_host_resolved, socket);
    if (!socket->lookup)
        socket->owner->on_broken(socket, REDIS_NAME_UNKNOWN, "cannot start a thread to look it up");
}

void redis_socket_close(struct redis_socket *socket)
{
    resolver_cancel(&socket->lookup);
    resp_parser_restart(&socket->parser);
    buffer_clear(&socket->in);
    buffer_clear(&socket->handshake_out);
    buffer_clear(&socket->out);
    socket->out_sent = 0;
    if (redis_socket_is_connected(socket)) {
        socket->state = REDIS_SOCKET_CLOSING;
        stream_close(&socket->stream);
    } else if (socket->state == REDIS_SOCKET_RESOLVING) {
        socket->state = REDIS_SOCKET_IDLE;
    }
}

void redis_socket_cut(struct redis_socket *socket)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (redis_socket_is_connected(socket)) /* if this fails, the socket is closed in order */
        setsockopt(socket->stream.source.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    redis_socket_close(socket);
}

void redis_socket_init(struct redis_socket *socket, struct stream_set *streams,
                       struct tls_context *tls, const struct redis_identity *identity,
                       const struct redis_address *address, const struct redis_socket_owner *owner)
{
    *socket = (struct redis_socket){.owner = owner,
                                    .streams = streams,
                                    .tls = tls,
                                    .identity = identity,
                                    .address = *address,
                                    .in = BUFFER_BOUNDED(REDIS_REPLY_BYTES_MAX),
                                    .out = BUFFER_BOUNDED(REDIS_OUT_BYTES_MAX)};
}

void redis_socket_free(struct redis_socket *socket)
{
    redis_socket_close(socket);
    if (socket->state == REDIS_SOCKET_CLOSING)
        stream_drop(&socket->stream);
    buffer_free(&socket->handshake_out);
    buffer_free(&socket->in);
    buffer_free(&socket->out);
    resp_parser_free(&socket->parser);
}
