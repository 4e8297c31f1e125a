/*
 * A stream is one connected, non-blocking socket, plain or TLS, and the way its bytes take.
 *
 *   reading: the loop says readable → bytes are read into the loop's shared buffer, at most
 *            STREAM_READS_PER_TURN times → owner's `received` (which must take or copy all of it)
 *   writing: the owner has something → stream_want_write() → at the end of the turn the owner's
 *            `gather` names what is pending as an iovec, one system call sends it, `sent` says how
 *            much went. What the socket does not take waits until it is writable again.
 *            Streams of a `batched` owner share that call (send_batch.h) where each has one piece.
 *
 * So all that a turn produced for a connection leaves in one call, and an idle stream holds no buffer
 * at all (TLS gives its record buffers back as well).
 *
 *   OPEN ── peer ends, error ──► ENDED ──┐
 *     └───────── stream_close() ─────────┴──► CLOSED   (the owner's `closed` runs once, in a task:
 *                                                       then it may free the memory)
 *
 * `ended` tells the owner that no more bytes will come; the owner then calls stream_close(), at once
 * or after it has sent its last words. The struct is embedded in its owner's. One thread.
 */
#ifndef ROLLCALL_NET_STREAM_H
#define ROLLCALL_NET_STREAM_H

#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { STREAM_READS_PER_TURN = 4, STREAM_IOVECS_MAX = 64, STREAM_PACK_BYTES = 16 * 1024 };

struct stream;
struct send_batch;
struct tls_session;

struct stream_owner {
    void (*on_bytes)(struct stream *stream, char *data, size_t len);
    void (*on_ended)(struct stream *stream);
    size_t (*gather)(struct stream *stream, struct iovec *out, size_t max);
    bool (*on_sent)(struct stream *stream, size_t bytes); /* true: more is pending */
    void (*on_closed)(struct stream *stream);
    /* Other streams' callbacks may run between `gather` and `sent`: what was gathered stays as it is until
     * then. `sent` comes also when nothing went, with 0. */
    bool batched;
};

/* The streams of one loop: those that have something to write, to read on, or to be closed. */
struct stream_set {
    struct loop *loop;
    struct stream *pending;
    struct loop_task task;
    char *pack;               /* STREAM_PACK_BYTES for TLS, which takes one piece at a time */
    struct send_batch *batch; /* NULL: each stream sends for itself */
};

struct stream {
    struct loop_source source;
    const struct stream_owner *owner;
    struct stream_set *set;
    struct tls_session *tls; /* NULL: plain */
    struct stream *next_pending;
    bool on_pending : 1;
    bool readable : 1;
    bool hung_up : 1; /* the peer's end is on its way: read until it comes */
    bool writable : 1;
    bool want_write : 1;
    bool ended : 1;
    bool closing : 1;
    bool failed : 1;   /* nothing more can be sent */
    bool paused : 1;   /* the owner does not want bytes for now */
    bool in_batch : 1; /* what was gathered is with the kernel, or `sent` not told yet */
    int error;         /* errno of what ended it; 0: the peer's orderly end */
};

bool stream_set_init(struct stream_set *set, struct loop *loop);
void stream_set_free(struct stream_set *set);

/* Lets batched owners' streams share calls. False: no memory. */
bool stream_set_use_batches(struct stream_set *set);

/* Takes the descriptor. `tls` (taken too) may be NULL. False, with errno, leaves both the caller's. */
bool stream_open(struct stream *stream, struct stream_set *set, const struct stream_owner *owner,
                 int fd, struct tls_session *tls);

/* Moves socket, TLS session and readiness from one owner's stream to another's, which is not open
 * yet. `from` is then closed in the usual way, but for the socket. False: nothing was moved,
 * for want of memory or since `from` is closing. */
bool stream_move(struct stream *to, struct stream *from, const struct stream_owner *owner);

/* Gives socket and TLS session away, for a stream of another loop (stream_open_moved()). The stream is
 * then closed in the usual way, but for the socket. False: nothing was given, since it is closing. */
bool stream_detach(struct stream *stream, int *fd, struct tls_session **tls);

/* As stream_open(), for what was detached: bytes may wait inside the TLS session already. */
bool stream_open_moved(struct stream *stream, struct stream_set *set,
                       const struct stream_owner *owner, int fd, struct tls_session *tls);

/* Something is there to be gathered. */
void stream_want_write(struct stream *stream);

/* Sends now what the turn has gathered so far, if the socket takes it: for an owner whose queue fills
 * within one turn. The owner's `sent` or `ended` may run within. */
void stream_flush(struct stream *stream);

/* Stops and resumes reading, so that the peer meets TCP's own backpressure. */
void stream_pause(struct stream *stream, bool paused);

/* Ends it; nothing is called any more but, in a later task, `closed`. What was gathered and not sent
 * is lost. Harmless when called twice. */
void stream_close(struct stream *stream);

/* The same at once and without a word, `closed` included: the memory may go. Only while the loop makes no
 * turn, since a turn may hold events of it. */
void stream_drop(struct stream *stream);

/* What was sent is all: the peer sees the end once it has read it, while we still read what it sends.
 * Closing over unread bytes would reset the connection, and our last words might be lost with it. */
void stream_shutdown(struct stream *stream);

/* A stream with no bytes to come for a while: TLS frees its buffers. */
void stream_rest(struct stream *stream);

#endif
