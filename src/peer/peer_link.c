#include "peer/peer_link.h"

#include "base/container.h"
#include "config/address.h"
#include "net/resolver.h"
#include "net/tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BUFFER_BYTES_KEPT = 256 * 1024 };

enum peer_link_state { RESOLVING, HANDSHAKE, OPEN, CLOSING };

struct peer_link {
    struct stream stream;
    bool has_stream; /* otherwise its timer closes it */
    enum peer_link_state state;
    const struct peer_link_owner *owner;
    void *arg;
    struct peer_link_options options;
    char host[ADDRESS_HOST_MAX + 1]; /* to dial */
    struct resolver_lookup *lookup;
    struct wheel_timer timer; /* before OPEN: the limit; OPEN: the next check; CLOSING: the end */
    struct peer_handshake handshake;
    struct buffer in; /* an incomplete frame */
    struct buffer out;
    size_t out_sent;     /* bytes of `out` */
    int64_t received_ms; /* when bytes last arrived */
    int64_t queued_ms;   /* when the last frame was queued */
    int64_t written_ms;  /* when the socket last took bytes, or the queue was empty */
    char why[PEER_REASON_TEXT_MAX];
};

static int64_t peer_link_now_ms(const struct peer_link *link)
{
    return link->options.loop->clock.now_ms;
}

static void peer_link_set_timer(struct peer_link *link, int64_t at_ms)
{
    loop_set_timer(link->options.loop, &link->timer, at_ms);
}

static struct peer_link *peer_link_of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct peer_link, stream);
}

/* ---- ending ---- */

static void peer_link_free(struct peer_link *link)
{
    loop_cancel_timer(link->options.loop, &link->timer);
    resolver_cancel(&link->lookup);
    buffer_free(&link->in);
    buffer_free(&link->out);
    free(link);
}

void peer_link_close(struct peer_link *link, const char *why)
{
    if (link->state == CLOSING)
        return;
    link->state = CLOSING;
    snprintf(link->why, sizeof(link->why), "%s", why);
    resolver_cancel(&link->lookup);
    if (link->has_stream) {
        loop_cancel_timer(link->options.loop, &link->timer);
        stream_close(&link->stream);
    } else {
        peer_link_set_timer(link, peer_link_now_ms(link));
    }
}

static void peer_link_free_closed(struct peer_link *link)
{
    link->owner->on_closed(link, link->arg, link->why);
    peer_link_free(link);
}

static void on_peer_link_stream_closed(struct stream *stream)
{
    peer_link_free_closed(peer_link_of(stream));
}

static void on_peer_link_stream_ended(struct stream *stream)
{
    struct peer_link *link = peer_link_of(stream);
    const char *distrust = stream->tls ? tls_distrust(stream->tls) : NULL;
    bool cut = stream->error == 0 || stream->error == ECONNRESET || stream->error == EPIPE;
    if (distrust)
        peer_link_close(link, distrust);
    else if (link->state == HANDSHAKE && cut)
        peer_link_close(link, peer_handshake_close_reason(&link->handshake));
    else if (stream->error)
        peer_link_close(link, strerror(stream->error));
    else
        peer_link_close(link, "the other side closed the connection");
}

/* ---- writing ---- */

/* With an empty queue, the time that the other side does not read is measured from now. */
static void peer_link_start_write_clock(struct peer_link *link)
{
    if (link->out.len == link->out_sent)
        link->written_ms = peer_link_now_ms(link);
}

/* Queues nothing when the queue has no space for the whole frame. */
static bool peer_link_queue_frame(struct peer_link *link, const struct slice *pieces, size_t count)
{
    peer_link_start_write_clock(link);
    if (!peer_frame_write(&link->out, pieces, count))
        return false;
    link->queued_ms = peer_link_now_ms(link);
    stream_want_write(&link->stream);
    return true;
}

bool peer_link_send(struct peer_link *link, const struct slice *pieces, size_t count)
{
    return link->state == OPEN && peer_link_queue_frame(link, pieces, count);
}

size_t peer_link_queued_bytes(const struct peer_link *link)
{
    return link->out.len - link->out_sent;
}

static size_t peer_link_gather_bytes(struct stream *stream, struct iovec *out, size_t max)
{
    struct peer_link *link = peer_link_of(stream);
    struct slice unsent = slice_after(buffer_slice(&link->out), link->out_sent);
    (void)max;
    *out = (struct iovec){(void *)unsent.data, unsent.len};
    return unsent.len > 0;
}

static bool on_peer_link_bytes_sent(struct stream *stream, size_t bytes)
{
    struct peer_link *link = peer_link_of(stream);
    link->written_ms = peer_link_now_ms(link);
    link->out_sent += bytes;
    if (link->out_sent == link->out.len) {
        link->out_sent = 0;
        link->out.len = 0;
        if (link->out.cap > BUFFER_BYTES_KEPT)
            buffer_free(&link->out);
        if (link->state == OPEN && link->owner->on_emptied)
            link->owner->on_emptied(link, link->arg);
    } else if (link->out_sent > link->out.len / 2) { /* so that each byte is moved at most once */
        buffer_consume(&link->out, link->out_sent);
        link->out_sent = 0;
    }
    return link->out.len > 0;
}

/* ---- reading ---- */

/* Passes on the whole frames at the front and returns the rest. */
static struct slice peer_link_pass_on_frames(struct peer_link *link, struct slice input)
{
    enum peer_frame_result result = PEER_FRAME_WHOLE;
    struct slice frame;
    while (link->state == OPEN && result == PEER_FRAME_WHOLE) {
        result = peer_frame_take(&input, &frame);
        if (result == PEER_FRAME_TOO_LONG)
            peer_link_close(link, "a frame is too long");
        else if (result == PEER_FRAME_WHOLE && frame.len > 0)
            link->owner->on_frame(link, link->arg, frame);
    }
    return input;
}

/* Returns how many bytes belonged to the handshake. */
static size_t peer_link_continue_handshake(struct peer_link *link, struct slice input)
{
    peer_link_start_write_clock(link);
    size_t taken = peer_handshake_take(&link->handshake, input, &link->out);
    if (link->out.len > 0)
        stream_want_write(&link->stream);
    if (link->out.failed) {
        peer_link_close(link, "out of memory");
    } else if (link->handshake.state == PEER_HANDSHAKE_REFUSED) {
        peer_link_close(link, link->handshake.why);
    } else if (link->handshake.state == PEER_HANDSHAKE_DONE) {
        link->state = OPEN;
        link->in = BUFFER_BOUNDED(PEER_FRAME_BYTES_MAX + PEER_FRAME_LENGTH_BYTES + LOOP_READ_BYTES);
        link->queued_ms = peer_link_now_ms(link);
        peer_link_set_timer(link, peer_link_now_ms(link) + PEER_KEEPALIVE_MS);
        link->owner->on_opened(link, link->arg, peer_handshake_peer_name(&link->handshake));
    }
    return taken;
}

static void on_peer_link_bytes(struct stream *stream, char *data, size_t len)
{
    struct peer_link *link = peer_link_of(stream);
    struct slice input = {data, len};
    link->received_ms = peer_link_now_ms(link);
    if (link->state == HANDSHAKE)
        input = slice_after(input, peer_link_continue_handshake(link, input));
    if (link->state != OPEN || input.len == 0)
        return;
    if (link->in.len > 0) {
        buffer_append_slice(&link->in, input);
        struct slice left = peer_link_pass_on_frames(link, buffer_slice(&link->in));
        buffer_consume(&link->in, link->in.len - left.len);
    } else {
        buffer_append_slice(&link->in, peer_link_pass_on_frames(link, input));
    }
    if (link->in.failed)
        peer_link_close(link, "out of memory");
    if (link->in.len == 0 && link->in.cap > BUFFER_BYTES_KEPT)
        buffer_free(&link->in);
}

void peer_link_pause(struct peer_link *link, bool paused)
{
    if (link->state != OPEN || link->stream.paused == paused)
        return;
    link->received_ms = peer_link_now_ms(link);
    stream_pause(&link->stream, paused);
}

/* ---- time ---- */

/* Cuts a link whose other side is silent or does not read; keeps the others alive. */
static void peer_link_watch(struct peer_link *link)
{
    int64_t now_ms = peer_link_now_ms(link);
    size_t queued_bytes = peer_link_queued_bytes(link);
    /* Bytes that have arrived and are not read yet show that the other side is not silent. */
    if (!link->stream.paused && !link->stream.readable &&
        now_ms - link->received_ms >= PEER_SILENCE_MS) {
        peer_link_close(link, "the other side is silent");
    } else if (queued_bytes > 0 && now_ms - link->written_ms >= PEER_SILENCE_MS) {
        peer_link_close(link, "the other side does not read");
    } else {
        /* Queued bytes serve as a keep-alive. */
        if (now_ms - link->queued_ms >= PEER_KEEPALIVE_MS && queued_bytes == 0)
            peer_link_queue_frame(link, NULL, 0);
        peer_link_set_timer(link, now_ms + PEER_KEEPALIVE_MS / 2);
    }
}

static void on_peer_link_timer(struct wheel_timer *timer)
{
    struct peer_link *link = CONTAINER_OF(timer, struct peer_link, timer);
    if (link->state == OPEN)
        peer_link_watch(link);
    else if (link->state == CLOSING)
        peer_link_free_closed(link);
    else
        peer_link_close(link, link->state == RESOLVING ? "timed out while looking up its address"
                                                       : "timed out while connecting");
}

/* ---- beginning ---- */

static const struct stream_owner PEER_LINK_STREAM_OWNER = {.on_bytes = on_peer_link_bytes,
                                                           .on_ended = on_peer_link_stream_ended,
                                                           .gather = peer_link_gather_bytes,
                                                           .on_sent = on_peer_link_bytes_sent,
                                                           .on_closed = on_peer_link_stream_closed};

static struct peer_link *peer_link_make(const struct peer_link_options *options,
                                        const struct peer_link_owner *owner, void *arg)
{
    struct peer_link *link = calloc(1, sizeof(*link));
    if (!link)
        return NULL;
    link->options = *options;
    link->owner = owner;
    link->arg = arg;
    link->out = BUFFER_BOUNDED(PEER_QUEUE_BYTES_MAX);
    link->timer.fire = on_peer_link_timer;
    peer_link_set_timer(link, peer_link_now_ms(link) + PEER_HANDSHAKE_LIMIT_MS);
    return link;
}

/* Takes the descriptor. Returns false, with errno; the caller then keeps it. */
static bool peer_link_open_stream(struct peer_link *link, int fd, enum peer_role role)
{
    struct tls_context *context = link->options.tls;
    struct tls_connection *tls = NULL;
    if (context)
        tls = role == PEER_DIALS ? tls_connection_make_client(context, fd, link->host)
                                 : tls_connection_make(context, fd);
    if (context && !tls)
        errno = ENOMEM;
    else if (stream_open(&link->stream, link->options.streams, &PEER_LINK_STREAM_OWNER, fd, tls))
        link->has_stream = true;
    if (!link->has_stream) {
        int reason = errno;
        tls_connection_free(&tls);
        errno = reason;
        return false;
    }
    link->state = HANDSHAKE;
    link->written_ms = peer_link_now_ms(link);
    peer_handshake_begin(&link->handshake, role, link->options.secret, link->options.name,
                         link->options.random, &link->out);
    stream_want_write(&link->stream);
    return true;
}

static void peer_link_connect(struct peer_link *link, const struct resolver_address *address)
{
    int fd = resolver_connect(address);
    if (fd >= 0 && peer_link_open_stream(link, fd, PEER_DIALS))
        return;
    peer_link_close(link, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void on_peer_link_resolved(void *arg, const struct resolver_address *addresses, size_t count,
                                  const char *error)
{
    struct peer_link *link = arg;
    link->lookup = NULL;
    if (count == 0)
        peer_link_close(link, error);
    else
        peer_link_connect(link, &addresses[random_below(link->options.random, count)]);
}

struct peer_link *peer_link_dial(const struct peer_link_options *options, const char *address,
                                 const struct peer_link_owner *owner, void *arg)
{
    struct address parsed;
    struct resolver_address numeric;
    struct peer_link *link = peer_link_make(options, owner, arg);
    if (!link)
        return NULL;
    if (!address_parse(slice_of(address), &parsed)) {
        peer_link_close(link, "its address is not HOST:PORT");
        return link;
    }
    snprintf(link->host, sizeof(link->host), "%.*s", SLICE_FORMAT(parsed.host));
    if (resolver_numeric(link->host, parsed.port, &numeric)) {
        peer_link_connect(link, &numeric);
        return link;
    }
    link->lookup =
        resolver_start(options->loop, link->host, parsed.port, on_peer_link_resolved, link);
    if (!link->lookup)
        peer_link_close(link, "cannot start a thread to look up its name");
    return link;
}

struct peer_link *peer_link_accept(const struct peer_link_options *options, int fd,
                                   const struct peer_link_owner *owner, void *arg)
{
    struct peer_link *link = peer_link_make(options, owner, arg);
    if (!link)
        return NULL;
    if (peer_link_open_stream(link, fd, PEER_ACCEPTS))
        return link;
    peer_link_free(link);
    return NULL;
}

void peer_link_drop(struct peer_link **link)
{
    struct peer_link *dropped = *link;
    *link = NULL;
    if (!dropped)
        return;
    if (dropped->has_stream)
        stream_drop(&dropped->stream);
    peer_link_free(dropped);
}
