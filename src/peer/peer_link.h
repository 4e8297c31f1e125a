/*
 * A peer link: frames between two processes of one installation, over a stream of their own.
 *
 * Both sides prove that they know `peer.secret` before either says anything else; the secret itself never
 * crosses the wire, and neither side is a help in answering for the other. Over TLS the proof is bound to
 * nothing but the connection it came on: use TLS where the network is not trusted, since frames are not
 * encrypted without it.
 *
 *   RESOLVING ──► GREETING (connected, proofs exchanged) ──► OPEN
 *        └──────────────┴─── refused, cut, silent, or peer_link_close() ──┴──► CLOSING ──► gone
 *
 * Everything before OPEN together takes PEER_HANDSHAKE_LIMIT_MS at most, however slowly bytes come, and
 * allocates nothing that depends on what the other side says (peer_handshake.h).
 *
 * On the wire: the handshake, then frames (peer_frame.h). An empty frame is a sign of life, sent when nothing
 * else was for PEER_KEEPALIVE_MS. A link that was silent for PEER_SILENCE_MS is cut, and so is one whose other
 * side has not read for so long.
 *
 * A link is made dialling or accepting and never comes back once it was closed: who wants it again dials
 * again (peer_dialer.h keeps one up). Everything is bounded: a frame by PEER_FRAME_BYTES_MAX, what waits to
 * be sent by PEER_QUEUE_BYTES_MAX.
 *
 * `opened` runs once at most, `closed` exactly once, in a later task than the call that caused it; then the
 * link is gone. One thread, that of the loop.
 */
#ifndef ROLLCALL_PEER_PEER_LINK_H
#define ROLLCALL_PEER_PEER_LINK_H

#include "base/random.h"
#include "base/slice.h"
#include "net/stream.h"
#include "peer/peer_frame.h"
#include "peer/peer_handshake.h"

#include <stdbool.h>
#include <stddef.h>

struct tls_context;

enum {
    PEER_QUEUE_BYTES_MAX = 64 << 20,
    PEER_HANDSHAKE_LIMIT_MS = 3000,
    PEER_SILENCE_MS = 9000,
    PEER_KEEPALIVE_MS = PEER_SILENCE_MS / 3,
    PEER_REASON_TEXT_MAX = 160,
};

struct peer_link;

struct peer_link_owner {
    /* Authenticated. `name` is what the other side calls itself. */
    void (*on_opened)(struct peer_link *link, void *arg, struct slice name);
    /* One frame; lasts the call. */
    void (*on_frame)(struct peer_link *link, void *arg, struct slice frame);
    /* For people to read: "wrong secret", "connection refused", … */
    void (*on_closed)(struct peer_link *link, void *arg, const char *why);
    /* May be NULL: all that was queued has been sent. */
    void (*on_drained)(struct peer_link *link, void *arg);
};

struct peer_link_options {
    struct loop *loop;
    struct stream_set *streams;
    struct random *random;
    struct slice secret; /* borrowed for the link's life */
    struct slice name;   /* ours, at most PEER_NAME_BYTES_MAX; borrowed likewise */
    struct tls_context
        *tls; /* borrowed; NULL: plain. A client's for dialling, a server's for accepting */
};

/* Connects to HOST:PORT. NULL when memory is short. */
struct peer_link *peer_link_dial(const struct peer_link_options *options, const char *address,
                                 const struct peer_link_owner *owner, void *arg);

/* Takes an accepted socket. NULL when memory is short; the descriptor is then still the caller's. */
struct peer_link *peer_link_accept(const struct peer_link_options *options, int fd,
                                   const struct peer_link_owner *owner, void *arg);

/* Queues a frame of the given pieces (copied). False: the link is not open, the frame is longer than
 * PEER_FRAME_BYTES_MAX, or the queue is full; nothing was queued then. An empty frame is never told. */
bool peer_link_send(struct peer_link *link, const struct slice *pieces, size_t count);

/* Stops and resumes reading, so that the other side meets TCP's own backpressure. Whole frames that were
 * read already are still told. A paused link is not cut for silence. */
void peer_link_pause(struct peer_link *link, bool paused);

/* Bytes that wait to be sent. */
size_t peer_link_queued_bytes(const struct peer_link *link);

/* Ends it; `closed` follows. */
void peer_link_close(struct peer_link *link);

/* Likewise, and says why. */
void peer_link_refuse(struct peer_link *link, const char *why);

/* Ends and frees at once, without `closed`: only while the loop makes no turn. */
void peer_link_drop(struct peer_link **link);

#endif
