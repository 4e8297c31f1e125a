/*
 * A wire is one connection to a Redis server, from its name to its end: bytes in and out, the handshake,
 * and whole replies. It does not keep time, does not try again and does not know which question a reply
 * answers; redis_connection.h does.
 *
 *   IDLE ── redis_socket_open() ──► RESOLVING ──address──► CONNECTING ──handshake──► OPEN
 *    ▲                                │                      │                      │
 *    └─── redis_socket_close(), _cut() ─┴◄───── CLOSING ◄──────┴──────────────────────┘
 *
 * When something fails the owner is told (`broken`), once, and then closes it. Everything a turn wrote
 * leaves in one system call. Bytes may be written before the wire is open: they follow the handshake.
 * Embedded in its owner's memory, which it must not outlive. One thread.
 */
#ifndef ROLLCALL_REDIS_REDIS_SOCKET_H
#define ROLLCALL_REDIS_REDIS_SOCKET_H

#include "net/stream.h"
#include "redis/protocol/redis_handshake.h"
#include "redis/protocol/redis_url.h"
#include "redis/protocol/resp.h"

#include <stdbool.h>

enum {
    REDIS_OUT_BYTES_MAX = 32 * 1024 * 1024,   /* not sent */
    REDIS_REPLY_BYTES_MAX = 32 * 1024 * 1024, /* of one reply */
};

enum redis_socket_state {
    REDIS_SOCKET_IDLE,
    REDIS_SOCKET_RESOLVING,
    REDIS_SOCKET_CONNECTING,
    REDIS_SOCKET_OPEN,
    REDIS_SOCKET_CLOSING,
};

struct redis_socket;

/* Each may write to the wire and may close it. */
struct redis_socket_owner {
    void (*opened)(struct redis_socket *wire);
    void (*reply)(struct redis_socket *wire, const struct resp_value *reply);
    void (*broken)(struct redis_socket *wire, enum redis_problem problem, const char *detail);
    void (*closed)(struct redis_socket *wire); /* the memory may go */
};

struct redis_socket {
    struct stream stream; /* open while CONNECTING, OPEN and CLOSING */
    const struct redis_socket_owner *owner;
    struct stream_set *streams;
    struct tls_context *tls; /* NULL: plain */
    const struct redis_identity *identity;
    struct redis_endpoint endpoint;
    enum redis_socket_state state;
    unsigned attempts;
    struct resolver_lookup *lookup;
    struct redis_handshake handshake;
    struct buffer greeting; /* the handshake's words that are not sent yet */
    struct resp_parser parser;
    struct buffer in; /* the beginning of a reply */
    struct buffer out;
    size_t out_sent;  /* so many bytes of it */
    int64_t heard_ms; /* when bytes came last */
};

/* The identity is borrowed for the wire's life; `tls` too. */
void redis_socket_init(struct redis_socket *wire, struct stream_set *streams,
                       struct tls_context *tls, const struct redis_identity *identity,
                       const struct redis_endpoint *endpoint,
                       const struct redis_socket_owner *owner);

/* Frees its buffers; it must be idle, or the loop makes no turn any more. */
void redis_socket_free(struct redis_socket *wire);

/* Starts to connect an idle wire. `broken` may be called from within. A name with several addresses:
 * each attempt takes the next. */
void redis_socket_open(struct redis_socket *wire);

/* Forgets what was not sent. Idle at once, or after `closed`, which comes at the end of a turn. */
void redis_socket_close(struct redis_socket *wire);

/* The same, and what the server has not received yet it never will. An orderly end would go on sending it: after a
 * disturbance of the network perhaps later than what the next connection brings. */
void redis_socket_cut(struct redis_socket *wire);

/* Appends bytes, all or none. False: REDIS_OUT_BYTES_MAX or memory. */
bool redis_socket_write(struct redis_socket *wire, struct slice first, struct slice second);

/* Bytes have come that are not read yet. */
static inline bool redis_socket_has_unread(const struct redis_socket *wire)
{
    return wire->stream.readable;
}

#endif
