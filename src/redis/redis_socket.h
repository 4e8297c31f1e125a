/*
 * One socket to a Redis server, from the name lookup to the end: bytes in and out, the handshake, and whole
 * replies. It keeps no time limits, does not reconnect and does not match replies to commands;
 * redis_connection.h does.
 *
 *   IDLE ── redis_socket_open() ──► RESOLVING ──address──► CONNECTING ──handshake──► OPEN
 *    ▲                                │                      │                      │
 *    └─── redis_socket_close(), _cut() ─┴◄───── CLOSING ◄──────┴──────────────────────┘
 *
 * When something fails, `on_broken` runs once, and the owner then closes the socket. All bytes that a turn
 * wrote leave in one system call. Bytes may be written before the socket is open: they follow the handshake.
 * The owner embeds the struct. One thread.
 */
#ifndef ROLLCALL_REDIS_REDIS_SOCKET_H
#define ROLLCALL_REDIS_REDIS_SOCKET_H

#include "net/stream.h"
#include "redis/protocol/redis_handshake.h"
#include "redis/protocol/redis_url.h"
#include "redis/protocol/resp.h"

#include <stdbool.h>

enum {
    REDIS_OUT_BYTES_MAX = 32 * 1024 * 1024,   /* unsent */
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

/* Each callback may write to the socket and may close it. */
struct redis_socket_owner {
    void (*on_opened)(struct redis_socket *socket);
    void (*on_reply)(struct redis_socket *socket, const struct resp_value *reply);
    void (*on_broken)(struct redis_socket *socket, enum redis_problem problem, const char *detail);
    void (*on_closed)(struct redis_socket *socket); /* the memory may be freed */
};

struct redis_socket {
    struct stream stream; /* open while CONNECTING, OPEN and CLOSING */
    const struct redis_socket_owner *owner;
    struct stream_set *streams;
    struct tls_context *tls; /* NULL: plain */
    const struct redis_identity *identity;
    struct redis_address address;
    enum redis_socket_state state;
    unsigned attempts;
    struct resolver_lookup *lookup;
    struct redis_handshake handshake;
    struct buffer handshake_out; /* unsent bytes of the handshake */
    struct resp_parser parser;
    struct buffer in; /* an incomplete reply */
    struct buffer out;
    size_t out_sent;  /* bytes of `out` */
    int64_t heard_ms; /* when bytes last arrived */
    uint64_t gathers; /* how often bytes of `out` were given to the system */
};

/* `identity` and `tls` outlive the socket. */
void redis_socket_init(struct redis_socket *socket, struct stream_set *streams,
                       struct tls_context *tls, const struct redis_identity *identity,
                       const struct redis_address *address, const struct redis_socket_owner *owner);

/* Frees its buffers. It must be idle, or the loop makes no turn any more. */
void redis_socket_free(struct redis_socket *socket);

/* Starts to connect an idle socket. `on_broken` may run inside. When a name has several addresses, each
 * attempt takes the next. */
void redis_socket_open(struct redis_socket *socket);

/* Drops unsent bytes. The socket is idle at once, or after `on_closed`, which runs at the end of a turn. */
void redis_socket_close(struct redis_socket *socket);

/* Closes, and drops bytes that the server has not received. An orderly close would go on sending them: after
 * a network failure perhaps later than the commands of the next connection. */
void redis_socket_cut(struct redis_socket *socket);

/* Appends both slices or nothing. Returns false at REDIS_OUT_BYTES_MAX, or when out of memory. */
bool redis_socket_write(struct redis_socket *socket, struct slice first, struct slice second);

/* Whether bytes have arrived that are not read yet. */
static inline bool redis_socket_has_unread(const struct redis_socket *socket)
{
    return socket->stream.readable;
}

#endif
