/*
 * A door for HTTP: what the connections that came in by it share, and who answers them.
 *
 *   listener ──http_listener_accept()──► a session (http_session.h) ──each request──► an exchange (exchange.h)
 *                                                                                   │ owner->answer()
 *                                               the answer ◄──exchange_reply…()─────┘
 *
 * The owner embeds the door in its own struct, where it finds itself again by CONTAINER_OF, and knows what can
 * be asked for: a gateway's is api/api_context.h. Nothing here does.
 *
 * One thread, that of the loop.
 */
#ifndef ROLLCALL_HTTP_HTTP_LISTENER_H
#define ROLLCALL_HTTP_HTTP_LISTENER_H

#include "base/list.h"
#include "config/config.h"
#include "http/http_date.h"
#include "metrics/metrics.h"
#include "net/stream.h"
#include "net/tls.h"

#include <stdbool.h>
#include <stddef.h>

struct exchange;
struct http_listener;
struct http_session;

struct http_listener_owner {
    /* Whether one more may come in. Others may have to go for it, as with http_listener_displace(). */
    bool (*make_room)(struct http_listener *door);
    /* May be NULL. The head of a request was read, its body comes next. False: it is answered already, and
     * is the last of its connection. */
    bool (*announced)(struct exchange *exchange);
    /* How long the body of a request may be, by its head. */
    size_t (*body_bytes_max)(struct exchange *exchange);
    /* Answers a whole request, now or later. */
    void (*answer)(struct exchange *exchange);
    /* May be NULL. Whether a request, of which the head was read, is for somebody else: the session has gone
     * there then. */
    bool (*give_away)(struct http_session *session);
};

struct http_listener {
    const struct http_listener_owner *owner;
    struct loop *loop;
    struct stream_set *streams;
    struct metrics *metrics;
    const struct config *config;
    struct tls_context *tls; /* NULL: plain; may be replaced at any time */
    /* ---- its own: */
    struct list sessions;
    size_t session_count;
    struct list waiting; /* those that have no whole request, who has waited longest first */
    struct http_date date;
    bool draining; /* each answer is the last of its connection */
    bool shut;     /* nobody comes in any more, from wherever */
};

/* The owner has filled in its part. */
void http_listener_init(struct http_listener *door);

/* A connection was accepted: takes the descriptor. */
void http_listener_accept(struct http_listener *door, int fd);

/* Closes the connection that has waited longest for a request, whole or not: of all that are open it is the least
 * likely to be missed. Its place is free after this turn. False: none waits. */
bool http_listener_displace(struct http_listener *door);

/* From now on each answer is the last of its connection. */
void http_listener_drain(struct http_listener *door);

/* Closes those that wait for a request, and have not begun to send one. */
void http_listener_close_idle(struct http_listener *door);

/* Lets nobody in any more, nor those who are on their way from elsewhere. */
void http_listener_shut(struct http_listener *door);

/* Closes all of them at once. */
void http_listener_close_all(struct http_listener *door);

#endif
