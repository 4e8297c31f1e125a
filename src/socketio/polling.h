/*
 * Engine.IO's polling transport: a session that has no socket of its own and is carried by requests.
 *
 *   GET  waits until something is queued, and takes all of it as one payload   (one at a time)
 *   POST brings a payload of packets, each read as a frame (polling_post.h)     (one at a time)
 *
 *   polling_open() ──► OPEN ──probe_open(): "2probe"──► OPEN, `probe` set: polls are released at once
 *                       │                                 │ the probe goes      │ "5"
 *                       │                                 ▼                     ▼
 *                       │                                OPEN           carried by the WebSocket;
 *                       │ the session ends, the peer of a poll goes,    this is freed
 *                       ▼ or of a POST, or leaves, two of a kind at a time, a payload that is none
 *                     CLOSING ──in a task──► the poll that waits is answered, connection_gone(), freed
 *
 * Sessions are found by their id, which is unguessable, names its worker (handover.h) and is bound to its
 * owner: a request that also carries a token must carry one of the session's own user.
 *
 * Bounds: sessions that have not joined yet, as in socketio_join.h; bytes of a payload either way,
 * `socketio.max_payload_bytes`, and of a stranger's no more than a native message has; packets of one,
 * ENGINEIO_PACKETS_MAX; all sessions together count as connections. One thread.
 */
#ifndef ROLLCALL_SOCKETIO_POLLING_H
#define ROLLCALL_SOCKETIO_POLLING_H

#include "base/table.h"
#include "socketio/socketio_context.h"
#include "socketio/socketio_session.h"

#include <stdbool.h>
#include <stddef.h>

/* A header of what answers GETs and POSTs. */
#define POLLING_NO_STORE "Cache-Control: no-store\r\n"

struct probe;

struct polling {
    struct table_node node;
    struct loop_task task;
    struct socketio_context *context;
    struct socketio_session *session;
    struct exchange *poll; /* the GET that waits; NULL: none */
    struct exchange *post; /* the POST that is being read, or waits for its token; NULL: none */
    struct probe *probe;   /* the WebSocket that may take over; NULL: none */
    bool close_owed;       /* all is said but the close packet */
    bool closing;
};

/* For the table of a worker's sessions (socketio_context.h). */
bool polling_match(const struct table_node *node, struct slice key);

/* Opens a session and answers its handshake. `handshake` as in socketio_session.h, but for the sid. */
void polling_open(struct exchange *exchange, const struct socketio_handshake *handshake);

/* A GET or POST of a session, or a WebSocket that may take it over. */
void polling_request(struct exchange *exchange, struct slice sid);

/* The session of that id on this worker; NULL: none, or it is closing. */
struct polling *polling_find(const struct socketio_context *context, struct slice sid);

/* How long the body of a request to a session may be: of one that is not there, no more than of any; of one that
 * has not joined, no more than connection_frames() takes. */
size_t polling_body_bytes_max(const struct exchange *exchange);

/* For the probe: lets go of a GET that waits, so that the client can change over. */
void polling_release(struct polling *polling);

/* For the probe: a WebSocket carries the session from now on. Frees it. */
void polling_upgraded(struct polling **polling);

/* Ends the session without a word beyond what is queued. */
void polling_end(struct polling *polling);

#endif
