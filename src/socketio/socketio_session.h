/*
 * A Socket.IO client on this gateway: an Engine.IO session (engine.h, which draws its states) and, once it has
 * connected to the namespace, a session like any other (session/session.h) with the same lease, routes, limits and
 * dispatch. Dispatch and the planes treat it like any other.
 *
 *   OPENED     waiting != NULL, waiting->joining == NULL    after the handshake; the user is unknown
 *   JOINING    waiting->joining != NULL                     the client is being admitted (session/admission.h)
 *   CONNECTED  waiting == NULL                              session.endpoint is on its user's route
 *
 * The handshake's token and device (from the URL or a header) wait in `waiting` for a CONNECT that names none. They
 * are freed on connecting, so that an idle client costs no more than a native one and the 40 bytes of the engine.
 *
 * A client that breaks the protocol is closed, as by the reference server, after an `error` event if it is
 * connected. An event that is merely wrong is answered with an error, and the connection stays. Binary events
 * are refused in this way: their attachments are counted and skipped.
 *
 * If a client's first packet is binary, it packs all of them (codec/socketio_packed.h): the connection uses that
 * dialect from then on, and a text packet closes it.
 *
 * Memory: one allocation, sized for the longest device id; freed by the connection's `on_gone`.
 */
#ifndef ROLLCALL_SOCKETIO_SOCKETIO_SESSION_H
#define ROLLCALL_SOCKETIO_SOCKETIO_SESSION_H

#include "session/session.h"
#include "socketio/engine.h"
#include "socketio/socketio_context.h"

enum { SOCKETIO_PID_BYTES = 16 };

struct backlog;
struct polling; /* carries packets without a WebSocket; for polling.h only */
struct socketio_waiting;

struct socketio_session {
    struct engine engine;
    struct socketio_waiting *waiting; /* NULL: CONNECTED, or out of memory and about to end */
    struct polling *polling;          /* NULL: a WebSocket carries the packets */
    struct backlog *backlog;          /* events sent lately; NULL: none */
    uint64_t floor;                   /* of the backlog before that one */
    struct ulid public_id;            /* the socket id; a recovered session keeps it */
    uint8_t pid[SOCKETIO_PID_BYTES];  /* the secret part of the private id */
    uint8_t attachments_left;         /* binary messages still to come for a refused event */
    bool client_leaves;               /* the client sent Engine.IO's close packet */
    bool device_is_made;              /* the client named no device */
    bool has_missed;        /* an event could not be kept, so the session cannot be recovered */
    struct session session; /* last: the device id follows it */
};

/* What the HTTP request of a handshake contains; borrowed until the function that takes it returns. */
struct socketio_handshake {
    struct slice sid;
    struct slice token;  /* SLICE_NONE: CONNECT brings it */
    struct slice device; /* SLICE_NONE: CONNECT brings it, or one is made */
};

/* Takes over the stream of a WebSocket handshake; `greeting` is the 101 answer, and the open packet follows it.
 * Returns NULL when out of memory, or when too many clients wait; the stream then still belongs to the caller. */
struct socketio_session *socketio_session_open(struct socketio_context *context,
                                               struct stream *from, struct slice greeting,
                                               const struct socketio_handshake *handshake);

/* The same by long polling; the caller sets `polling` afterwards. */
struct socketio_session *socketio_session_open_on(struct socketio_context *context,
                                                  const struct socketio_handshake *handshake);

static inline struct connection *socketio_connection(struct socketio_session *session)
{
    return &session->session.connection;
}

/* The client of a connection that one of these functions opened. */
struct socketio_session *socketio_session_of(struct connection *connection);

static inline bool socketio_is_connected(const struct socketio_session *session)
{
    return session->session.endpoint.route != NULL;
}

static inline struct socketio_context *socketio_context_of_session(
    const struct socketio_session *socketio)
{
    return socketio_context_of_sessions(socketio->session.context);
}

/* The user of a CONNECTED client, to whom its sid is bound; else SLICE_NONE. */
struct slice socketio_user(const struct socketio_session *socketio);

/* Whether the client has not answered a ping in time, or has been silent for the unhealthy time. */
bool socketio_fell_silent(const struct socketio_session *socketio);

/* Queues a packet and frees its buffer. */
void socketio_send(struct socketio_session *socketio, struct buffer *packet);

#endif
