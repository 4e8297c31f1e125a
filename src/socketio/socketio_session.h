/*
 * A Socket.IO client on this gateway: an Engine.IO session (socketio/engine.h, which draws its life)
 * and, once it has connected to the namespace, a session like any other (session.h): the same lease,
 * routes, limits, dispatch. Nothing above dispatch and nothing in the planes knows the difference.
 *
 *   OPENED     waiting != NULL, waiting->joining == NULL    a handshake, nobody is known yet
 *   JOINING    waiting->joining != NULL                     the token is verified, the lease registered
 *   CONNECTED  waiting == NULL                              session.endpoint is on its user's route
 *
 * What the handshake brought (a token and a device in the URL or a header) waits in `waiting` for a
 * CONNECT that names none. It is freed on connecting, so that an idle client costs what a native one does
 * and the engine's 40 bytes.
 *
 * What breaks the protocol closes the connection, as the reference server does, after an `error` event
 * if somebody is connected. An event that is merely wrong is answered with an error and the connection
 * stays. Binary events are refused like that: their attachments are counted and passed over.
 *
 * A client whose first packet is binary packs them all (socketio/codec/socketio_packed.h): from then on the connection
 * speaks that dialect, and text closes it.
 *
 * Memory: one allocation, with room for the longest device id; freed by the connection's `gone`.
 */
#ifndef ROLLCALL_SOCKETIO_SOCKETIO_SESSION_H
#define ROLLCALL_SOCKETIO_SOCKETIO_SESSION_H

#include "session/session.h"
#include "socketio/engine.h"
#include "socketio/socketio_context.h"

enum { SOCKETIO_PID_BYTES = 16 };

struct backlog;
struct polling; /* what carries it when it has no WebSocket; of the transport alone */
struct socketio_waiting;

struct socketio_session {
    struct engine engine;
    struct socketio_waiting *waiting; /* NULL: CONNECTED, or there was no memory to go on */
    struct polling *polling;          /* NULL: a WebSocket */
    struct backlog *backlog;          /* owed events sent lately; NULL: none */
    uint64_t floor;                   /* of the backlog it had before that one */
    struct ulid public_id;            /* what others know it by; of a recovered one, the old */
    uint8_t pid[SOCKETIO_PID_BYTES];  /* the secret part of its private id */
    uint8_t attachments_left;         /* binary messages that belong to a refused event */
    bool peer_leaves;                 /* Engine.IO's close packet came */
    bool device_is_made;              /* its client named none */
    bool has_missed;                  /* an owed event found no room: it cannot be recovered */
    struct session session;           /* last: the device id follows it */
};

/* What an HTTP request said of the client; borrowed for the call. */
struct socketio_handshake {
    struct slice sid;
    struct slice token;  /* SLICE_NONE: it comes with CONNECT */
    struct slice device; /* likewise, or one is made */
};

/* Takes over the stream of a WebSocket handshake; `greeting` is the 101 answer. The open packet follows.
 * NULL when memory is short; the stream is then still the caller's. */
struct socketio_session *socketio_session_open(struct socketio_context *context,
                                               struct stream *from, struct slice greeting,
                                               const struct socketio_handshake *handshake);

/* The same, carried by another transport, which may set `polling` afterwards. */
struct socketio_session *socketio_session_open_on(struct socketio_context *context,
                                                  const struct connection_transport *transport,
                                                  const struct socketio_handshake *handshake);

static inline struct connection *socketio_connection(struct socketio_session *session)
{
    return &session->session.connection;
}

/* The Socket.IO session of such a connection. */
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

/* The user, once known: a sid is bound to its owner. SLICE_NONE before. */
struct slice socketio_user(const struct socketio_session *socketio);

/* Whether it has not answered a ping in time, or was not heard for the unhealthy time. */
bool socketio_fell_silent(const struct socketio_session *socketio);

/* Draining: ends those who are not connected; the others have a route and are told like everybody. */
void socketio_end_waiting(struct socketio_context *context);

/* Cuts off who has waited longest to be connected, for a newcomer's sake. False: nobody waits, or all join. */
bool socketio_displace_waiting(struct socketio_context *context);

#endif
