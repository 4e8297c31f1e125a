/*
 * A wire is one connection to a Redis server, from its name to its end: bytes in and out, the handshake,
 * and whole replies. It does not keep time, does not try again and does not know which question a reply
 * answers; redis_link.h does.
 *
 *   IDLE ── redis_wire_open() ──► RESOLVING ──address──► CONNECTING ──handshake──► OPEN
 *    ▲                                │                      │                      │
 *    └─── redis_wire_close(), _cut() ─┴◄───── CLOSING ◄──────┴──────────────────────┘
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

enum redis_wire_state {
    REDIS_WIRE_IDLE,
    REDIS_WIRE_RESOLVING,
    REDIS_WIRE_CONNECTING,
    REDIS_WIRE_OPEN,
    REDIS_WIRE_CLOSING,
};

struct redis_wire;

/* Each may write to the wire and may close it. */
struct redis_wire_owner {
    void (*opened)(struct redis_wire *wire);
    void (*reply)(struct redis_wire *wire, const struct resp_value *reply);
    void (*broken)(struct redis_wire *wire, enum redis_problem problem, const char *detail);
    void (*closed)(struct redis_wire *wire); /* the memory may go */
};

struct redis_wire {
    struct stream stream; /* open while CONNECTING, OPEN and CLOSING */
    const struct redis_wire_owner *owner;
    struct stream_set *streams;
    struct tls_context *tls; /* NULL: plain */
    const struct redis_identity *identity;
    struct redis_endpoint endpoint;
    enum redis_wire_state state;
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
void redis_wire_init(struct redis_wire *wire, struct stream_set *streams, struct tls_context *tls,
                     const struct redis_identity *identity, const struct redis_endpoint *endpoint,
                     const struct redis_wire_owner *owner);

/* Frees its buffers; it must be idle, or the loop makes no turn any more. */
void redis_wire_free(struct redis_wire *wire);

/* Starts to connect an idle wire. `broken` may be called from within. A name with several addresses:
 * each attempt takes the next. */
void redis_wire_open(struct redis_wire *wire);

/* Forgets what was not sent. Idle at once, or after `closed`, which comes at the end of a turn. */
void redis_wire_close(struct redis_wire *wire);

/* The same, and what the server has not received yet it never will. An orderly end would go on sending it: after a
 * disturbance of the network perhaps later than what the next connection brings. */
void redis_wire_cut(struct redis_wire *wire);

/* Appends bytes, all or none. False: REDIS_OUT_BYTES_MAX or memory. */
bool redis_wire_write(struct redis_wire *wire, struct slice first, struct slice second);

/* Bytes have come that are not read yet. */
static inline bool redis_wire_has_unread(const struct redis_wire *wire)
{
    return wire->stream.readable;
}

#endif
