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

enum state { RESOLVING, GREETING, OPEN, CLOSING };

struct peer_link {
    struct stream stream;
    bool has_stream; /* else it is closed by its timer */
    enum state state;
    const struct peer_link_owner *owner;
    void *arg;
    struct peer_link_options options;
    char host[ADDRESS_HOST_MAX + 1]; /* dialling: whom */
    struct resolver_lookup *lookup;
    struct wheel_timer timer; /* until open: the limit; open: the next look; closing: the end */
    struct peer_handshake handshake;
    struct buffer in; /* the beginning of a frame */
    struct buffer out;
    size_t out_sent; /* so many bytes of it */
    int64_t heard_ms;
    int64_t said_ms;  /* when a frame was queued last */
    int64_t taken_ms; /* when the socket took bytes last, or there were none to take */
    char why[PEER_REASON_TEXT_MAX];
};

static int64_t now_ms(const struct peer_link *link)
{
    return link->options.loop->clock.now_ms;
}

static void set_timer(struct peer_link *link, int64_t at_ms)
{
    loop_set_timer(link->options.loop, &link->timer, at_ms);
}

static struct peer_link *link_of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct peer_link, stream);
}

/* ---- ending ---- */

static void free_link(struct peer_link *link)
{
    loop_cancel_timer(link->options.loop, &link->timer);
    resolver_cancel(&link->lookup);
    buffer_free(&link->in);
    buffer_free(&link->out);
    free(link);
}

/* The first reason counts. */
static void end(struct peer_link *link, const char *why)
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
        set_timer(link, now_ms(link));
    }
}

static void tell_end(struct peer_link *link)
{
    link->owner->on_closed(link, link->arg, link->why);
    free_link(link);
}

static void closed(struct stream *stream)
{
    tell_end(link_of(stream));
}

static void ended(struct stream *stream)
{
    struct peer_link *link = link_of(stream);
    const char *distrust = stream->tls ? tls_distrust(stream->tls) : NULL;
    bool cut = stream->error == 0 || stream->error == ECONNRESET || stream->error == EPIPE;
    if (distrust)
        end(link, distrust);
    else if (link->state == GREETING && cut)
        end(link, peer_handshake_broken_off(&link->handshake));
    else if (stream->error)
        end(link, strerror(stream->error));
    else
        end(link, "the other side has ended it");
}

/* ---- writing ---- */

static void begin_writing(struct peer_link *link)
{
    if (link->out.len == link->out_sent)
        link->taken_ms = now_ms(link);
}

/* Nothing is queued of what there is no room for. */
static bool enqueue(struct peer_link *link, const struct slice *pieces, size_t count)
{
    begin_writing(link);
    if (!peer_frame_write(&link->out, pieces, count))
        return false;
    link->said_ms = now_ms(link);
    stream_want_write(&link->stream);
    return true;
}

bool peer_link_send(struct peer_link *link, const struct slice *pieces, size_t count)
{
    return link->state == OPEN && enqueue(link, pieces, count);
}

size_t peer_link_queued_bytes(const struct peer_link *link)
{
    return link->out.len - link->out_sent;
}

static size_t gather(struct stream *stream, struct iovec *out, size_t max)
{
    struct peer_link *link = link_of(stream);
    struct slice pending = slice_after(buffer_slice(&link->out), link->out_sent);
    (void)max;
    *out = (struct iovec){(void *)pending.data, pending.len};
    return pending.len > 0;
}

static bool sent(struct stream *stream, size_t bytes)
{
    struct peer_link *link = link_of(stream);
    link->taken_ms = now_ms(link);
    link->out_sent += bytes;
    if (link->out_sent == link->out.len) {
        link->out_sent = 0;
        link->out.len = 0;
        if (link->out.cap > BUFFER_BYTES_KEPT)
            buffer_free(&link->out);
        if (link->state == OPEN && link->owner->on_drained)
            link->owner->on_drained(link, link->arg);
    } else if (link->out_sent > link->out.len / 2) { /* moved at most once a byte */
        buffer_consume(&link->out, link->out_sent);
        link->out_sent = 0;
    }
    return link->out.len > 0;
}

/* ---- reading ---- */

/* Tells the whole frames at the front; answers what is left. */
static struct slice tell_frames(struct peer_link *link, struct slice input)
{
    enum peer_frame_result result = PEER_FRAME_WHOLE;
    struct slice frame;
    while (link->state == OPEN && result == PEER_FRAME_WHOLE) {
        result = peer_frame_take(&input, &frame);
        if (result == PEER_FRAME_TOO_LONG)
            end(link, "a frame is too long");
        else if (result == PEER_FRAME_WHOLE && frame.len > 0)
            link->owner->on_frame(link, link->arg, frame);
    }
    return input;
}

static void read_frames(struct peer_link *link, struct slice input)
{
    if (link->in.len > 0) {
        buffer_append_slice(&link->in, input);
        struct slice left = tell_frames(link, buffer_slice(&link->in));
        buffer_consume(&link->in, link->in.len - left.len);
    } else {
        buffer_append_slice(&link->in, tell_frames(link, input));
    }
    if (link->in.failed)
        end(link, "out of memory");
    if (link->in.len == 0 && link->in.cap > BUFFER_BYTES_KEPT)
        buffer_free(&link->in);
}

static void open_link(struct peer_link *link)
{
    link->state = OPEN;
    link->in = BUFFER_BOUNDED(PEER_FRAME_BYTES_MAX + PEER_FRAME_LENGTH_BYTES + LOOP_READ_BYTES);
    link->said_ms = now_ms(link);
    set_timer(link, now_ms(link) + PEER_KEEPALIVE_MS);
    link->owner->on_opened(link, link->arg, peer_handshake_peer_name(&link->handshake));
}

/* Answers how many bytes were of the handshake. */
static size_t greet(struct peer_link *link, struct slice input)
{
    begin_writing(link);
    size_t taken = peer_handshake_take(&link->handshake, input, &link->out);
    if (link->out.len > 0)
        stream_want_write(&link->stream);
    if (link->out.failed)
        end(link, "out of memory");
    else if (link->handshake.state == PEER_HANDSHAKE_REFUSED)
        end(link, link->handshake.why);
    else if (link->handshake.state == PEER_HANDSHAKE_DONE)
        open_link(link);
    return taken;
}

static void received(struct stream *stream, char *data, size_t len)
{
    struct peer_link *link = link_of(stream);
    struct slice input = {data, len};
    link->heard_ms = now_ms(link);
    if (link->state == GREETING)
        input = slice_after(input, greet(link, input));
    if (link->state == OPEN && input.len > 0)
        read_frames(link, input);
}

void peer_link_pause(struct peer_link *link, bool paused)
{
    if (link->state != OPEN || link->stream.paused == paused)
        return;
    link->heard_ms = now_ms(link);
    stream_pause(&link->stream, paused);
}

/* ---- time ---- */

/* Bytes that have come and are not read yet are a sign of life. */
static bool is_silent(const struct peer_link *link)
{
    return !link->stream.paused && !link->stream.readable &&
           now_ms(link) - link->heard_ms >= PEER_SILENCE_MS;
}

static bool is_not_read(const struct peer_link *link)
{
    return peer_link_queued_bytes(link) > 0 && now_ms(link) - link->taken_ms >= PEER_SILENCE_MS;
}

static void watch(struct peer_link *link)
{
    if (is_silent(link)) {
        end(link, "the other side is silent");
    } else if (is_not_read(link)) {
        end(link, "the other side does not read");
    } else {
        /* bytes that still wait say as much */
        if (now_ms(link) - link->said_ms >= PEER_KEEPALIVE_MS && peer_link_queued_bytes(link) == 0)
            enqueue(link, NULL, 0);
        set_timer(link, now_ms(link) + PEER_KEEPALIVE_MS / 2);
    }
}

static void fire(struct wheel_timer *timer)
{
    struct peer_link *link = CONTAINER_OF(timer, struct peer_link, timer);
    if (link->state == OPEN)
        watch(link);
    else if (link->state == CLOSING)
        tell_end(link);
    else
        end(link, link->state == RESOLVING ? "the time to find its address is over"
                                           : "the time to connect and greet is over");
}

/* ---- beginning ---- */

static const struct stream_owner stream_owner = {received, ended, gather, sent, closed};

static struct peer_link *make(const struct peer_link_options *options,
                              const struct peer_link_owner *owner, void *arg)
{
    struct peer_link *link = calloc(1, sizeof(*link));
    if (!link)
        return NULL;
    link->options = *options;
    link->owner = owner;
    link->arg = arg;
    link->out = BUFFER_BOUNDED(PEER_QUEUE_BYTES_MAX);
    link->timer.fire = fire;
    set_timer(link, now_ms(link) + PEER_HANDSHAKE_LIMIT_MS);
    return link;
}

/* Takes the descriptor, unless it answers false, with errno. */
static bool open_stream(struct peer_link *link, int fd, enum peer_role role)
{
    struct tls_context *context = link->options.tls;
    struct tls_session *tls = NULL;
    if (context)
        tls = role == PEER_DIALS ? tls_session_make_client(context, fd, link->host)
                                 : tls_session_make(context, fd);
    if (context && !tls)
        errno = ENOMEM;
    else if (stream_open(&link->stream, link->options.streams, &stream_owner, fd, tls))
        link->has_stream = true;
    if (!link->has_stream) {
        int reason = errno;
        tls_session_free(&tls);
        errno = reason;
        return false;
    }
    link->state = GREETING;
    link->taken_ms = now_ms(link);
    peer_handshake_begin(&link->handshake, role, link->options.secret, link->options.name,
                         link->options.random, &link->out);
    stream_want_write(&link->stream);
    return true;
}

static void connect_to(struct peer_link *link, const struct resolver_address *address)
{
    int fd = resolver_connect(address);
    if (fd >= 0 && open_stream(link, fd, PEER_DIALS))
        return;
    end(link, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void resolved(void *arg, const struct resolver_address *addresses, size_t count,
                     const char *error)
{
    struct peer_link *link = arg;
    link->lookup = NULL;
    if (count == 0)
        end(link, error);
    else
        connect_to(link, &addresses[random_below(link->options.random, count)]);
}

struct peer_link *peer_link_dial(const struct peer_link_options *options, const char *address,
                                 const struct peer_link_owner *owner, void *arg)
{
    struct address parsed;
    struct resolver_address numeric;
    struct peer_link *link = make(options, owner, arg);
    if (!link)
        return NULL;
    if (!address_parse(slice_of(address), &parsed)) {
        end(link, "its address is not HOST:PORT");
        return link;
    }
    snprintf(link->host, sizeof(link->host), "%.*s", SLICE_FORMAT(parsed.host));
    if (resolver_numeric(link->host, parsed.port, &numeric)) {
        connect_to(link, &numeric);
        return link;
    }
    link->lookup = resolver_start(options->loop, link->host, parsed.port, resolved, link);
    if (!link->lookup)
        end(link, "no thread to look its name up");
    return link;
}

struct peer_link *peer_link_accept(const struct peer_link_options *options, int fd,
                                   const struct peer_link_owner *owner, void *arg)
{
    struct peer_link *link = make(options, owner, arg);
    if (!link)
        return NULL;
    if (open_stream(link, fd, PEER_ACCEPTS))
        return link;
    free_link(link);
    return NULL;
}

void peer_link_close(struct peer_link *link)
{
    end(link, "closed");
}

void peer_link_refuse(struct peer_link *link, const char *why)
{
    end(link, why);
}

void peer_link_drop(struct peer_link **link)
{
    struct peer_link *dropped = *link;
    *link = NULL;
    if (!dropped)
        return;
    if (dropped->has_stream)
        stream_drop(&dropped->stream);
    free_link(dropped);
}
