/*
 * From a CONNECT packet to a session, and back: the states of a Socket.IO client in which its user is unknown.
 *
 *   socketio_join() ──► admitted (session/admission.h), what was missed is taken ──► session attached, "40{sid}"
 *                          │ refused
 *                          └──► "44{message, data}"; the client may CONNECT again
 *
 * A client that does not connect within socketio.connect_timeout_ms is closed; after a disconnect the time starts
 * again. At most socketio.pending_sessions_max clients wait: the longest waiting is cut off for a new one, except
 * those that are joining. An admission whose client has gone meanwhile is undone. Used by socketio_session.c and by
 * commands that end a session.
 */
#ifndef ROLLCALL_SOCKETIO_SOCKETIO_JOIN_H
#define ROLLCALL_SOCKETIO_SOCKETIO_JOIN_H

#include "socketio/socketio_session.h"

/* Makes a client OPENED, with the handshake's token and device. Returns false when out of memory, or when too many
 * clients are joining. */
bool socketio_waiting_make(struct socketio_session *socketio, struct slice token,
                           struct slice device);
void socketio_waiting_free(struct socketio_session *socketio);

bool socketio_is_joining(const struct socketio_session *socketio);

/* Closes a client that has waited too long. Returns when to run next. */
int64_t socketio_waiting_tick(struct socketio_session *socketio);

/* Handles CONNECT; `auth` is its credentials in raw JSON, or SLICE_NONE. */
void socketio_join(struct socketio_session *socketio, struct slice auth);

/* Ends the session and keeps the connection: CONNECTED → OPENED. */
void socketio_leave(struct socketio_session *socketio);

/* session_hooks.leave: sends a disconnect, so that the client does not connect again by itself, and leaves. */
void socketio_disconnect(struct session *session);

/* For a drain: ends clients that are not CONNECTED. The others are on a route and are ended like native ones. */
void socketio_end_waiting(struct socketio_context *context);

/* Cuts off the client that has been OPENED longest, to make space for a new one. Returns false when no client is
 * OPENED. */
bool socketio_displace_waiting(struct socketio_context *context);

#endif
