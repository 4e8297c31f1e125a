/*
 * Engine.IO's polling transport: an Engine.IO session without a socket of its own, carried by HTTP requests.
 *
 *   GET  waits until something is queued, and takes all of it as one payload   (one at a time)
 *   POST brings a payload of packets, each handled like a frame (polling_post.h) (one at a time)
 *
 *   polling_open() ──► OPEN ──probe_open(): "2probe"──► OPEN, `probe` set: polls are answered at once
 *                       │                                 │ the probe closes    │ "5"
 *                       │                                 ▼                     ▼
 *                       │                                OPEN           the WebSocket carries packets;
 *                       │ the connection ends, a request is cut off,    this struct is freed
 *                       ▼ two GETs or two POSTs at a time, a malformed payload
 *                     CLOSING ──in a task──► the waiting poll is answered, connection_gone(), freed
 *
 * An Engine.IO session is found by its id, which is unguessable, names its worker (handover.h) and is bound to its
 * user: a request with a token must have one of that user.
 *
 * Bounds: clients that have not joined yet are limited as in socketio_join.h. A payload in either direction has at
 * most `socketio.max_payload_bytes`, before the user is known no more than a native message, and at most
 * ENGINEIO_PACKETS_MAX packets. Each Engine.IO session counts as a connection. One thread.
 */
#ifndef ROLLCALL_SOCKETIO_POLLING_H
#define ROLLCALL_SOCKETIO_POLLING_H

#include "base/table.h"
#include "socketio/socketio_context.h"
#include "socketio/socketio_session.h"

#include <stdbool.h>
#include <stddef.h>

/* A header of all answers to GETs and POSTs. */
#define POLLING_NO_STORE "Cache-Control: no-store\r\n"

struct probe;

struct polling {
    struct table_node node;
    struct loop_task task;
    struct socketio_context *context;
    struct socketio_session *session;
    struct exchange *poll; /* the waiting GET; NULL: none */
    struct exchange *post; /* the POST that is not answered yet; NULL: none */
    struct probe *probe;   /* the WebSocket that may take over; NULL: none */
    bool post_held;        /* the POST is handled and answered later, because its client floods */
    bool close_owed;       /* only the close packet is still to be sent */
    bool closing;
};

/* For the table `polling` in socketio_context.h. */
bool polling_match(const struct table_node *node, struct slice key);

/* Carries the sessions of polling clients. */
extern const struct connection_transport POLLING_TRANSPORT;

/* Opens an Engine.IO session and answers its handshake. `handshake` is as in socketio_session.h, without the sid. */
void polling_open(struct exchange *exchange, const struct socketio_handshake *handshake);

/* Serves a GET or POST of an Engine.IO session, or a WebSocket that may take it over. */
void polling_request(struct exchange *exchange, struct slice sid);

/* Finds an Engine.IO session on this worker; NULL: there is none, or it is closing. */
struct polling *polling_find(const struct socketio_context *context, struct slice sid);

/* api_transport.body_bytes_max: limits the body like a frame of the same client, or like any other request when there
 * is no such Engine.IO session. */
size_t polling_body_bytes_max(const struct exchange *exchange);

/* For the probe: answers a waiting GET, so that the client can upgrade. */
void polling_release(struct polling *polling);

/* For the probe: a WebSocket carries the packets from now on. Frees `polling`. */
void polling_upgraded(struct polling **polling);

/* Whether this Engine.IO session was carried by polling here and a WebSocket took over lately. */
bool polling_was_upgraded(const struct socketio_context *context, struct slice sid);

/* Ends the Engine.IO session after what is queued. */
void polling_end(struct polling *polling);

#endif
