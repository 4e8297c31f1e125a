/*
 * A stream is one connected, non-blocking socket, plain or TLS, and how its bytes are read and written.
 *
 *   reading: the socket is readable → the stream reads into the loop's shared buffer, at most
 *            STREAM_READS_PER_TURN times → the owner's `on_bytes`, which must use or copy all of it
 *   writing: the owner has something to send → stream_want_write() → at the end of the turn the owner's
 *            `gather` fills an iovec with the unsent bytes, one system call sends them, `on_sent` gets the
 *            number of bytes sent. The rest waits until the socket is writable again.
 *            Streams of a `batched` owner with one piece each share that system call (send_batch.h).
 *
 * So all bytes that a turn produced for a connection leave in one system call, and an idle stream holds no
 * buffer at all (TLS frees its record buffers as well).
 *
 *   OPEN ── other side ends, error ──► ENDED ──┐
 *     └─────────── stream_close() ─────────────┴──► CLOSED   (the owner's `on_closed` runs once, in a task:
 *                                                             then it may free the memory)
 *
 * `on_ended` runs when no more bytes will come; the owner then calls stream_close(), at once or after it
 * has sent its last bytes. The owner embeds the struct. One thread.
 */
#ifndef ROLLCALL_NET_STREAM_H
#define ROLLCALL_NET_STREAM_H

#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    STREAM_READS_PER_TURN = 4,
    STREAM_IOVECS_MAX = 64,
    STREAM_PACK_BYTES = 16 * 1024,
    STREAM_SIP_BYTES = 4 * 1024,
};

struct stream;
struct send_batch;
struct tls_connection;

struct stream_owner {
    void (*on_bytes)(struct stream *stream, char *data, size_t len);
    void (*on_ended)(struct stream *stream);
    size_t (*gather)(struct stream *stream, struct iovec *out, size_t max);
    bool (*on_sent)(struct stream *stream, size_t bytes); /* true: more bytes wait */
    void (*on_closed)(struct stream *stream);
    /* Other streams' callbacks may run between `gather` and `on_sent`, so the gathered bytes must not change
     * until then. `on_sent` runs also when nothing was sent, with 0. */
    bool batched;
};

/* The streams of one loop; `queue` holds those with something to write, to read, or to be closed. */
struct stream_set {
    struct loop *loop;
    struct stream *queue;
    struct loop_task task;
    char *pack;               /* STREAM_PACK_BYTES for TLS, which writes one piece at a time */
    struct send_batch *batch; /* NULL: each stream makes its own system calls */
    /* The descriptor of a stream is about to be closed. May be NULL. */
    void (*on_release)(void *arg, int fd);
    void *release_arg;
};

struct stream {
    struct loop_source source;
    const struct stream_owner *owner;
    struct stream_set *set;
    struct tls_connection *tls; /* NULL: plain */
    struct stream *next_queued;
    bool queued : 1; /* in the set's queue */
    bool readable : 1;
    bool hung_up : 1; /* the other side has ended: read until the end is reached */
    bool writable : 1;
    bool want_write : 1;
    bool ended : 1;
    bool closing : 1;
    bool failed : 1;   /* nothing more can be sent */
    bool paused : 1;   /* the owner takes no bytes for now */
    bool sips : 1;     /* reads STREAM_SIP_BYTES at a time, so that a pause takes effect soon */
    bool in_batch : 1; /* gathered, and `on_sent` has not run yet */
    int error;         /* errno that ended it; 0: the other side closed in order */
};

bool stream_set_init(struct stream_set *set, struct loop *loop);
void stream_set_free(struct stream_set *set);

/* Lets streams of batched owners share system calls. Returns false when out of memory. */
bool stream_set_use_batches(struct stream_set *set);

/* Takes the descriptor and `tls`, which may be NULL. Returns false, with errno; the caller then keeps both. */
bool stream_open(struct stream *stream, struct stream_set *set, const struct stream_owner *owner,
                 int fd, struct tls_connection *tls);

/* Moves socket, TLS connection and readiness from one owner's stream to another's, which is not open
 * yet. `from` is then closed as usual, without the socket. Returns false, having moved nothing, when out of
 * memory or when `from` is closing. */
bool stream_move(struct stream *to, struct stream *from, const struct stream_owner *owner);

/* Moves socket and TLS connection out, for a stream of another loop (stream_open_moved()). The stream is
 * then closed as usual, without the socket. Returns false, having moved nothing, when it is closing. */
bool stream_detach(struct stream *stream, int *fd, struct tls_connection **tls);

/* Like stream_open(), for a detached socket: bytes may already wait inside its TLS connection. */
bool stream_open_moved(struct stream *stream, struct stream_set *set,
                       const struct stream_owner *owner, int fd, struct tls_connection *tls);

/* Requests a write at the end of the turn: there are bytes to gather. */
void stream_want_write(struct stream *stream);

/* Sends unsent bytes at once, if the socket is writable: for an owner whose queue fills within one turn.
 * The owner's `on_sent` or `on_ended` may run inside. */
void stream_flush(struct stream *stream);

/* Stops and resumes reading, so that TCP's backpressure slows the other side down. */
void stream_pause(struct stream *stream, bool paused);

/* Closes the stream; no callback runs any more except, in a later task, `on_closed`. Unsent bytes are lost.
 * Does nothing when the stream is closing already. */
void stream_close(struct stream *stream);

/* Closes at once without any callback, not even `on_closed`: the memory may then be freed. Only while the
 * loop makes no turn, because a turn may hold events of it. */
void stream_drop(struct stream *stream);

/* Sends the end of the stream after the bytes sent so far, while we still read what the other side sends.
 * Closing with unread bytes would reset the connection, and our last bytes might be lost with it. */
void stream_shutdown(struct stream *stream);

/* For a stream that expects no bytes for a while: TLS frees its buffers. */
void stream_rest(struct stream *stream);

#endif
