/*
 * A peer link carries frames between two processes of one installation, over a stream of their own.
 *
 * Both sides prove that they have `peer.secret` before either sends anything else. The secret itself is never
 * sent, and a proof cannot be reused or sent back (peer_handshake.h). It covers the nonces and names of the
 * connection, not the keys of TLS. Use TLS where the network is not trusted: frames are not encrypted without
 * it.
 *
 *   RESOLVING ──► HANDSHAKE (connected, both sides prove) ──► OPEN
 *        └──────────────┴─── refused, cut, silent, or peer_link_close() ──┴──► CLOSING ──► freed
 *
 * All states before OPEN together last at most PEER_HANDSHAKE_LIMIT_MS, however slowly bytes arrive, and
 * allocate nothing that depends on what the other side sends (peer_handshake.h).
 *
 * On the wire: the handshake, then frames (peer_frame.h). An empty frame is a keep-alive, sent when nothing
 * else was sent for PEER_KEEPALIVE_MS. A link is cut when the other side was silent, or has not read, for
 * PEER_SILENCE_MS.
 *
 * A link is made by dialling or accepting and never reopens once it was closed; peer_dialer.h keeps dialling.
 * Everything is bounded: a frame by PEER_FRAME_BYTES_MAX, the send queue by PEER_QUEUE_BYTES_MAX.
 *
 * `on_opened` runs at most once. `on_closed` runs exactly once, in a later task than the function that caused
 * it; then the link is freed. One thread, that of the loop.
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
    /* The other side is authenticated; `name` is its name. */
    void (*on_opened)(struct peer_link *link, void *arg, struct slice name);
    /* `frame` is borrowed for the callback and never empty. */
    void (*on_frame)(struct peer_link *link, void *arg, struct slice frame);
    /* `why` is for people to read: "wrong secret", "connection refused", … */
    void (*on_closed)(struct peer_link *link, void *arg, const char *why);
    /* All queued bytes were sent. May be NULL. */
    void (*on_emptied)(struct peer_link *link, void *arg);
};

struct peer_link_options {
    struct loop *loop;
    struct stream_set *streams;
    struct random *random;
    struct slice secret; /* outlives the link */
    struct slice name;   /* ours, at most PEER_NAME_BYTES_MAX; outlives the link */
    /* Borrowed; NULL: plain. A client's context for dialling, a server's for accepting. */
    struct tls_context *tls;
};

/* Connects to HOST:PORT. Returns NULL when out of memory. */
struct peer_link *peer_link_dial(const struct peer_link_options *options, const char *address,
                                 const struct peer_link_owner *owner, void *arg);

/* Takes an accepted socket. Returns NULL when out of memory; the caller then keeps the descriptor. */
struct peer_link *peer_link_accept(const struct peer_link_options *options, int fd,
                                   const struct peer_link_owner *owner, void *arg);

/* Queues one frame made of the pieces, which are copied. Returns false, having queued nothing, when the link
 * is not open, the frame is longer than PEER_FRAME_BYTES_MAX, or the queue is full. An empty frame
 * does not reach the receiver's `on_frame`. */
bool peer_link_send(struct peer_link *link, const struct slice *pieces, size_t count);

/* Stops and resumes reading, so that TCP's backpressure slows the other side down. `on_frame` still
 * runs for whole frames that were read already. A paused link is not cut for silence. */
void peer_link_pause(struct peer_link *link, bool paused);

/* Returns the bytes that wait to be sent. */
size_t peer_link_queued_bytes(const struct peer_link *link);

/* Closes the link; `on_closed` follows, with the reason `why`, which is copied. Does nothing when repeated. */
void peer_link_close(struct peer_link *link, const char *why);

/* Closes and frees at once, without `on_closed`. Only while the loop makes no turn. */
void peer_link_drop(struct peer_link **link);

#endif
