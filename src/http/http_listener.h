/*
 * An HTTP listener: what the HTTP connections of one listening address share, and the owner that answers them.
 *
 *   socket accepted ──http_listener_accept()──► http_connection.h ──each request──► exchange.h
 *                                                                              │ owner->answer()
 *                                                answer ◄──exchange_reply…()───┘
 *
 * The owner finds its own struct by `arg`, or by CONTAINER_OF if it embeds the listener, and serves the resources: a
 * gateway's are in api/api_context.h. This folder has none.
 *
 * One thread, that of the loop.
 */
#ifndef ROLLCALL_HTTP_HTTP_LISTENER_H
#define ROLLCALL_HTTP_HTTP_LISTENER_H

#include "base/ip_address.h"
#include "base/list.h"
#include "base/memory_account.h"
#include "config/config.h"
#include "http/http_date.h"
#include "metrics/metrics.h"
#include "net/client_addresses.h"
#include "net/stream.h"
#include "net/tls.h"

#include <stdbool.h>
#include <stddef.h>

struct exchange;
struct http_listener;
struct http_connection;

/* What becomes of a request whose head was read. */
enum http_head_verdict {
    HTTP_READ_BODY,
    HTTP_HEAD_ANSWERED,
    HTTP_HEAD_WAITS, /* the owner answers it, or calls http_connection_read_body(), in a later turn */
};

struct http_listener_owner {
    /* Whether one more connection is taken; may close others for it, as http_listener_displace() does. */
    bool (*make_space)(struct http_listener *listener);
    /* May be NULL. The head of a request was read; its body comes next, unless the owner answers first. The connection
     * is closed after an answer that comes before the body, if there is a body. */
    enum http_head_verdict (*on_head)(struct exchange *exchange);
    /* How long the body of a request may be, judging by its head. */
    size_t (*body_bytes_max)(struct exchange *exchange);
    /* Answers a complete request, now or later. */
    void (*answer)(struct exchange *exchange);
    /* May be NULL. Returns true when a request, of which only the head was read, belongs to another worker: the
     * connection has moved there. */
    bool (*give_away)(struct http_connection *connection);
};

struct http_listener {
    const struct http_listener_owner *owner;
    void *arg; /* the owner's */
    struct loop *loop;
    struct stream_set *streams;
    struct metrics *metrics;
    const struct config *config;
    struct tls_context *tls;            /* NULL: no TLS; may be replaced at any time */
    struct memory_account *memory;      /* counts bodies; NULL: nobody counts */
    struct client_addresses *addresses; /* NULL: they are neither limited nor named by proxies */
    /* ---- internal: */
    struct list connections;
    size_t connection_count;
    struct list waiting;  /* connections without a complete request, the longest waiting first */
    struct list prefaces; /* see proxy_preface.h */
    size_t preface_count;
    struct http_date date;
    bool draining; /* each answer closes its connection */
    bool shut;     /* no connection is taken any more, accepted or moved */
};

/* The owner has filled in the fields above the internal ones. */
void http_listener_init(struct http_listener *listener);

/* Takes the descriptor of an accepted connection. */
void http_listener_accept(struct http_listener *listener, int fd);

/* The same for a connection whose client is known: it is counted for this address, and answered with 429 when that has
 * too many. `proxied`: the address is a trusted proxy's, and X-Forwarded-For names the client of each request. */
void http_listener_accept_from(struct http_listener *listener, int fd,
                               const struct ip_address *address, bool proxied);

/* Refuses an accepted connection with a ready answer. Best effort: if the socket is not writable, or TLS is spoken on it,
 * it is closed without an answer. */
void http_listener_refuse(struct http_listener *listener, int fd, struct slice answer);

/* Closes the connection that has waited longest for a complete request, since it is the least likely to be
 * missed. Its place is free after this turn. Returns false when none waits. */
bool http_listener_displace(struct http_listener *listener);

/* Returns the connection whose unfinished body holds most memory, and how much; NULL: there is none. */
struct http_connection *http_listener_largest_body(struct http_listener *listener, size_t *bytes);

/* From now on each answer closes its connection. */
void http_listener_drain(struct http_listener *listener);

/* Closes the connections on which no request has begun. */
void http_listener_close_idle(struct http_listener *listener);

/* From now on no connection is taken, not even one that is being moved here. */
void http_listener_shut(struct http_listener *listener);

/* Closes all connections at once; answers that are ready go out as far as the sockets take them. */
void http_listener_close_all(struct http_listener *listener);

#endif
