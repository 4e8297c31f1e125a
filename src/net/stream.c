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

static void queue_stream(struct stream *stream)
{
    if (stream->queued)
        return;
    stream->queued = true;
    stream->next_queued = stream->set->queue;
    stream->set->queue = stream;
    loop_defer(stream->set->loop, &stream->set->task);
}

/* `error` is an errno, or 0 when the other side closed in order. */
static void end_stream(struct stream *stream, int error)
{
    if (stream->ended)
        return;
    stream->ended = true;
    stream->error = error;
    stream->owner->on_ended(stream);
}

static void read_stream_bytes(struct stream *stream)
{
    char *buffer = stream->set->loop->read_buffer;
    size_t most = stream->sips ? STREAM_SIP_BYTES : LOOP_READ_BYTES;
    for (int reads = 0; reads < STREAM_READS_PER_TURN; reads++) {
        if (!stream->readable || stream->ended || stream->closing || stream->paused)
            return;
        ssize_t got = stream->tls ? tls_read(stream->tls, buffer, most)
                                  : recv(stream->source.fd, buffer, most, 0);
        if (got > 0) {
            bool is_drained = !stream->tls && !stream->hung_up && (size_t)got < most;
            if (is_drained)
                stream->readable = false; /* the socket is empty: the next byte makes a new edge */
            stream->owner->on_bytes(stream, buffer, (size_t)got);
            if (is_drained)
                return;
        } else if (got < 0 && errno == EINTR) {
            continue;
        } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            stream->readable = false;
        } else {
            stream->failed |= got < 0;
            stream->readable = false;
            end_stream(stream, got < 0 ? errno : 0);
        }
    }
    if (stream->readable && !stream->closing)
        queue_stream(stream);
}

/* Returns the bytes sent, or -1 with errno. TLS takes one piece at a time, so they are copied together. */
static ssize_t send_stream_pieces(struct stream *stream, struct iovec *pieces, size_t count)
{
    if (!stream->tls && count == 1)
        return send(stream->source.fd, pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL);
    if (!stream->tls) {
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
        return sendmsg(stream->source.fd, &message, MSG_NOSIGNAL);
    }
    char *pack = stream->set->pack;
    size_t len = 0;
    for (size_t i = 0; i < count && len < STREAM_PACK_BYTES; i++) {
        size_t space = STREAM_PACK_BYTES - len;
        size_t take = pieces[i].iov_len < space ? pieces[i].iov_len : space;
        memcpy(pack + len, pieces[i].iov_base, take);
        len += take;
    }
    return tls_write(stream->tls, pack, len);
}

static bool can_write_stream(const struct stream *stream)
{
    return !stream->closing && stream->want_write && stream->writable && !stream->failed &&
           !stream->in_batch;
}

/* `sent` is the number of bytes sent, or a negative errno. */
static void on_stream_written(struct stream *stream, size_t wanted, ssize_t sent)
{
    if (sent >= 0) {
        stream->want_write = stream->owner->on_sent(stream, (size_t)sent);
        if ((size_t)sent < wanted && !stream->tls)
            stream->writable = false;
    } else if (sent == -EAGAIN || sent == -EWOULDBLOCK) {
        stream->writable = false;
        if (stream->owner->batched && !stream->tls) /* TLS must be given the same bytes again */
            stream->owner->on_sent(stream, 0);
    } else if (sent != -EINTR) {
        stream->failed = true;
        stream->want_write = false;
        end_stream(stream, (int)-sent);
    }
}

/* Makes one system call per turn, besides that of a batch; the next turn sends the rest. */
static void write_stream(struct stream *stream)
{
    struct iovec pieces[STREAM_IOVECS_MAX];
    size_t count = stream->owner->gather(stream, pieces, STREAM_IOVECS_MAX);
    if (count == 0) {
        stream->want_write = false;
        return;
    }
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++)
        wanted += pieces[i].iov_len;
    ssize_t sent = send_stream_pieces(stream, pieces, count);
    on_stream_written(stream, wanted, sent < 0 ? -errno : sent);
}

/* ---- writing many streams in one system call ---- */

struct stream_writes {
    size_t count;
    struct stream *streams[SEND_BATCH_MAX];
    struct send sends[SEND_BATCH_MAX];
};

/* Collects streams from the list until there are enough for one system call. Returns the rest of the list.
 * Skips a stream with more than one piece, which makes its own system call. */
static struct stream *collect_stream_writes(struct stream_writes *writes, struct stream *stream)
{
    for (writes->count = 0; stream && writes->count < SEND_BATCH_MAX;
         stream = stream->next_queued) {
        struct iovec pieces[2];
        if (!stream->owner->batched || stream->tls || !can_write_stream(stream) ||
            stream->owner->gather(stream, pieces, 2) != 1)
            continue;
        stream->in_batch = true;
        writes->streams[writes->count] = stream;
        writes->sends[writes->count++] = (struct send){
            .fd = stream->source.fd, .data = pieces[0].iov_base, .len = pieces[0].iov_len};
    }
    return stream;
}

/* Writes as many streams as one system call takes. Returns the rest of the list. It frees no stream and removes
 * none from the list. */
static struct stream *write_stream_batch(struct stream_set *set, struct stream *first)
{
    struct stream_writes writes;
    struct stream *rest = collect_stream_writes(&writes, first);
    send_batch_run(set->batch, writes.sends, writes.count);
    for (size_t i = 0; i < writes.count; i++) {
        struct stream *stream = writes.streams[i];
        if (i + FETCH_AHEAD < writes.count) /* the system call has evicted it from the cache */
            __builtin_prefetch(writes.streams[i + FETCH_AHEAD], 1);
        stream->in_batch = false;
        if (!stream->closing)
            on_stream_written(stream, writes.sends[i].len, writes.sends[i].result);
    }
    return rest;
}

static void release_stream(struct stream *stream)
{
    tls_connection_free(&stream->tls);
    if (stream->source.fd >= 0 && stream->set->on_release)
        stream->set->on_release(stream->set->release_arg, stream->source.fd);
    if (stream->source.fd >= 0)
        close(stream->source.fd); /* also removes it from epoll */
    stream->source.fd = -1;
}

static void handle_queued_stream(struct stream *stream)
{
    if (can_write_stream(stream))
        write_stream(stream);
    if (!stream->closing && stream->readable && !stream->ended && !stream->paused)
        read_stream_bytes(stream);
    if (stream->closing) {
        /* `on_closed` frees the stream, so it must be on no list by then */
        if (!stream->queued) {
            release_stream(stream);
            stream->owner->on_closed(stream);
        }
    } else if (can_write_stream(stream)) {
        queue_stream(stream);
    }
}

/* Handles the list in parts that share a system call, so that each stream is still in the CPU's cache. */
static void run_stream_queue(struct loop_task *task)
{
    struct stream_set *set = CONTAINER_OF(task, struct stream_set, task);
    struct stream *stream = set->queue;
    set->queue = NULL;
    while (stream) {
        struct stream *rest = set->batch ? write_stream_batch(set, stream) : NULL;
        while (stream != rest) {
            struct stream *next = stream->next_queued;
            stream->queued = false;
            handle_queued_stream(stream);
            stream = next;
        }
    }
}

static void on_stream_ready(struct loop_source *source, uint32_t events)
{
    struct stream *stream = CONTAINER_OF(source, struct stream, source);
    if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
        stream->writable = true;
        if (stream->want_write)
            queue_stream(stream);
    }
    /* a TLS handshake may have to write before it can continue to read */
    if (stream->tls || events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) {
        stream->readable = true;
        stream->hung_up |= (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0;
        read_stream_bytes(stream);
    }
}

bool stream_set_init(struct stream_set *set, struct loop *loop)
{
    *set = (struct stream_set){.loop = loop, .task = {.run = run_stream_queue}};
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
                 int fd, struct tls_connection *tls)
{
    *stream = (struct stream){
        .source = {.fd = fd, .on_ready = on_stream_ready},
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
    to->queued = false;
    to->in_batch = false;
    to->want_write = false;
    to->paused = false;
    if (!loop_rebind(to->set->loop, &to->source))
        return false;
    from->source.fd = -1;
    from->tls = NULL;
    stream_close(from);
    if (to->readable)
        queue_stream(to);
    return true;
}

bool stream_detach(struct stream *stream, int *fd, struct tls_connection **tls)
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
                       const struct stream_owner *owner, int fd, struct tls_connection *tls)
{
    if (!stream_open(stream, set, owner, fd, tls))
        return false;
    stream->readable = true;
    queue_stream(stream);
    return true;
}

void stream_want_write(struct stream *stream)
{
    if (stream->closing || stream->failed)
        return;
    stream->want_write = true;
    if (stream->writable)
        queue_stream(stream);
}

void stream_flush(struct stream *stream)
{
    if (can_write_stream(stream))
        write_stream(stream);
}

void stream_pause(struct stream *stream, bool paused)
{
    stream->paused = paused;
    if (!paused && stream->readable && !stream->closing)
        queue_stream(stream);
}

void stream_close(struct stream *stream)
{
    if (stream->closing)
        return;
    stream->closing = true;
    queue_stream(stream);
}

void stream_drop(struct stream *stream)
{
    struct stream **link = &stream->set->queue;
    while (*link && *link != stream)
        link = &(*link)->next_queued;
    if (*link)
        *link = stream->next_queued;
    stream->queued = false;
    stream->closing = true;
    release_stream(stream);
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
