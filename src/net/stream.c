#include "net/stream.h"

#include "base/container.h"
#include "net/send_batch.h"
#include "net/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FETCH_AHEAD = 8 }; /* streams */

static void put_on_pending(struct stream *stream)
{
    if (stream->on_pending)
        return;
    stream->on_pending = true;
    stream->next_pending = stream->set->pending;
    stream->set->pending = stream;
    loop_defer(stream->set->loop, &stream->set->task);
}

/* Bytes read; 0 at the end of the stream; -1 with EAGAIN or another errno. */
static ssize_t receive(struct stream *stream, char *out, size_t max)
{
    return stream->tls ? tls_read(stream->tls, out, max) : recv(stream->source.fd, out, max, 0);
}

/* `error` is an errno, or 0 where the peer ended in order. */
static void end(struct stream *stream, int error)
{
    if (stream->ended)
        return;
    stream->ended = true;
    stream->error = error;
    stream->owner->on_ended(stream);
}

static void read_some(struct stream *stream)
{
    char *buffer = stream->set->loop->read_buffer;
    for (int reads = 0; reads < STREAM_READS_PER_TURN; reads++) {
        if (!stream->readable || stream->ended || stream->closing || stream->paused)
            return;
        ssize_t got = receive(stream, buffer, LOOP_READ_BYTES);
        if (got > 0) {
            if (!stream->tls && !stream->hung_up && got < LOOP_READ_BYTES)
                stream->readable = false; /* drained: the next byte makes a new edge */
            stream->owner->on_bytes(stream, buffer, (size_t)got);
        } else if (got < 0 && errno == EINTR) {
            continue;
        } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            stream->readable = false;
        } else {
            stream->failed |= got < 0;
            stream->readable = false;
            end(stream, got < 0 ? errno : 0);
        }
    }
    if (stream->readable && !stream->closing)
        put_on_pending(stream);
}

static ssize_t transmit_tls(struct stream *stream, const struct iovec *pieces, size_t count)
{
    char *pack = stream->set->pack;
    size_t len = 0;
    for (size_t i = 0; i < count && len < STREAM_PACK_BYTES; i++) {
        size_t room = STREAM_PACK_BYTES - len;
        size_t take = pieces[i].iov_len < room ? pieces[i].iov_len : room;
        memcpy(pack + len, pieces[i].iov_base, take);
        len += take;
    }
    return tls_write(stream->tls, pack, len);
}

static ssize_t transmit(struct stream *stream, struct iovec *pieces, size_t count)
{
    if (stream->tls)
        return transmit_tls(stream, pieces, count);
    if (count == 1)
        return send(stream->source.fd, pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL);
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
    return sendmsg(stream->source.fd, &message, MSG_NOSIGNAL);
}

static size_t total_bytes(const struct iovec *pieces, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += pieces[i].iov_len;
    return total;
}

static bool can_write(const struct stream *stream)
{
    return !stream->closing && stream->want_write && stream->writable && !stream->failed &&
           !stream->in_batch;
}

/* What came of a write: the bytes that went, or an errno below 0. */
static void wrote(struct stream *stream, size_t wanted, ssize_t went)
{
    if (went >= 0) {
        stream->want_write = stream->owner->on_sent(stream, (size_t)went);
        if ((size_t)went < wanted && !stream->tls)
            stream->writable = false;
    } else if (went == -EAGAIN || went == -EWOULDBLOCK) {
        stream->writable = false;
        if (stream->owner->batched && !stream->tls) /* which has to be given the same bytes again */
            stream->owner->on_sent(stream, 0);
    } else if (went != -EINTR) {
        stream->failed = true;
        stream->want_write = false;
        end(stream, (int)-went);
    }
}

/* One call a turn, beside a batch's: a stream with more than one call's worth goes on in the next. */
static void write_some(struct stream *stream)
{
    struct iovec pieces[STREAM_IOVECS_MAX];
    size_t count = stream->owner->gather(stream, pieces, STREAM_IOVECS_MAX);
    if (count == 0) {
        stream->want_write = false;
        return;
    }
    size_t wanted = total_bytes(pieces, count);
    ssize_t went = transmit(stream, pieces, count);
    wrote(stream, wanted, went < 0 ? -errno : went);
}

/* ---- the writes of many streams in one call ---- */

struct writes {
    size_t count;
    struct stream *streams[SEND_BATCH_MAX];
    struct send sends[SEND_BATCH_MAX];
};

static void join(struct writes *writes, struct stream *stream)
{
    struct iovec pieces[2];
    if (stream->owner->gather(stream, pieces, 2) != 1)
        return; /* it sends for itself */
    stream->in_batch = true;
    writes->streams[writes->count] = stream;
    writes->sends[writes->count++] = (struct send){
        .fd = stream->source.fd, .data = pieces[0].iov_base, .len = pieces[0].iov_len};
}

/* Takes streams from the list until there are enough for a call; what is left of the list. */
static struct stream *collect(struct writes *writes, struct stream *stream)
{
    for (writes->count = 0; stream && writes->count < SEND_BATCH_MAX; stream = stream->next_pending)
        if (stream->owner->batched && !stream->tls && can_write(stream))
            join(writes, stream);
    return stream;
}

/* Writes as many of the list as one call takes; what is left of the list. No stream is freed by it, nor
 * does it leave the list. */
static struct stream *write_batch(struct stream_set *set, struct stream *pending)
{
    struct writes writes;
    struct stream *rest = collect(&writes, pending);
    send_batch_run(set->batch, writes.sends, writes.count);
    for (size_t i = 0; i < writes.count; i++) {
        struct stream *stream = writes.streams[i];
        if (i + FETCH_AHEAD < writes.count) /* the kernel has taken the cache */
            __builtin_prefetch(writes.streams[i + FETCH_AHEAD], 1);
        stream->in_batch = false;
        if (!stream->closing)
            wrote(stream, writes.sends[i].len, writes.sends[i].went);
    }
    return rest;
}

static void release(struct stream *stream)
{
    tls_session_free(&stream->tls);
    if (stream->source.fd >= 0)
        close(stream->source.fd); /* which takes it out of epoll */
    stream->source.fd = -1;
}

static void finish_close(struct stream *stream)
{
    release(stream);
    stream->owner->on_closed(stream);
}

static void handle_pending(struct stream *stream)
{
    if (can_write(stream))
        write_some(stream);
    if (!stream->closing && stream->readable && !stream->ended && !stream->paused)
        read_some(stream);
    if (stream->closing) {
        /* `closed` frees the stream, so it must be on no list by then */
        if (!stream->on_pending)
            finish_close(stream);
    } else if (can_write(stream)) {
        put_on_pending(stream);
    }
}

/* By parts of the list that share a call, so that a stream is still in the cache when its turn comes. */
static void run_pending(struct loop_task *task)
{
    struct stream_set *set = CONTAINER_OF(task, struct stream_set, task);
    struct stream *stream = set->pending;
    set->pending = NULL;
    while (stream) {
        struct stream *rest = set->batch ? write_batch(set, stream) : NULL;
        while (stream != rest) {
            struct stream *next = stream->next_pending;
            stream->on_pending = false;
            handle_pending(stream);
            stream = next;
        }
    }
}

static void ready(struct loop_source *source, uint32_t events)
{
    struct stream *stream = CONTAINER_OF(source, struct stream, source);
    if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
        stream->writable = true;
        if (stream->want_write)
            put_on_pending(stream);
    }
    /* a TLS handshake may have to write before it can read on */
    if (stream->tls || events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) {
        stream->readable = true;
        stream->hung_up |= (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0;
        read_some(stream);
    }
}

bool stream_set_init(struct stream_set *set, struct loop *loop)
{
    *set = (struct stream_set){.loop = loop, .task = {.run = run_pending}};
    set->pack = malloc(STREAM_PACK_BYTES);
    return set->pack != NULL;
}

bool stream_set_use_batches(struct stream_set *set)
{
    set->batch = send_batch_make();
    return set->batch != NULL;
}

void stream_set_free(struct stream_set *set)
{
    send_batch_free(&set->batch);
    free(set->pack);
    set->pack = NULL;
}

bool stream_open(struct stream *stream, struct stream_set *set, const struct stream_owner *owner,
                 int fd, struct tls_session *tls)
{
    *stream = (struct stream){
        .source = {.fd = fd, .on_ready = ready},
        .owner = owner,
        .set = set,
        .tls = tls,
        .writable = true,
    };
    return loop_add(set->loop, &stream->source);
}

bool stream_move(struct stream *to, struct stream *from, const struct stream_owner *owner)
{
    if (from->closing || from->failed)
        return false;
    *to = *from;
    to->owner = owner;
    to->on_pending = false;
    to->in_batch = false;
    to->want_write = false;
    to->paused = false;
    if (!loop_rebind(to->set->loop, &to->source))
        return false;
    from->source.fd = -1;
    from->tls = NULL;
    stream_close(from);
    if (to->readable)
        put_on_pending(to);
    return true;
}

bool stream_detach(struct stream *stream, int *fd, struct tls_session **tls)
{
    if (stream->closing || stream->failed)
        return false;
    loop_remove(stream->set->loop, &stream->source);
    *fd = stream->source.fd;
    *tls = stream->tls;
    stream->source.fd = -1;
    stream->tls = NULL;
    stream_close(stream);
    return true;
}

bool stream_open_moved(struct stream *stream, struct stream_set *set,
                       const struct stream_owner *owner, int fd, struct tls_session *tls)
{
    if (!stream_open(stream, set, owner, fd, tls))
        return false;
    stream->readable = true;
    put_on_pending(stream);
    return true;
}

void stream_want_write(struct stream *stream)
{
    if (stream->closing || stream->failed)
        return;
    stream->want_write = true;
    if (stream->writable)
        put_on_pending(stream);
}

void stream_flush(struct stream *stream)
{
    if (can_write(stream))
        write_some(stream);
}

void stream_pause(struct stream *stream, bool paused)
{
    stream->paused = paused;
    if (!paused && stream->readable && !stream->closing)
        put_on_pending(stream);
}

void stream_close(struct stream *stream)
{
    if (stream->closing)
        return;
    stream->closing = true;
    put_on_pending(stream);
}

void stream_drop(struct stream *stream)
{
    struct stream **link = &stream->set->pending;
    while (*link && *link != stream)
        link = &(*link)->next_pending;
    if (*link)
        *link = stream->next_pending;
    stream->on_pending = false;
    stream->closing = true;
    release(stream);
}

void stream_shutdown(struct stream *stream)
{
    if (stream->closing || stream->failed)
        return;
    if (stream->tls)
        tls_shutdown(stream->tls);
    shutdown(stream->source.fd, SHUT_WR);
}

void stream_rest(struct stream *stream)
{
    if (stream->tls)
        tls_rest(stream->tls);
}
