/*
 * From a CONNECT packet to a session, and back: the part of a Socket.IO session's life in which nobody is
 * known yet.
 *
 *   socketio_join() ──► token verified ──► lease registered ──► session attached, "40{sid}", greeted
 *                          │ refused          │ not now
 *                          └──────────────────┴──► "44{message, data}"; the client may CONNECT again
 *
 * Who does not connect within socketio.connect_timeout_ms is closed; after a disconnect the time starts
 * anew. Of those who wait there are socketio.pending_sessions_max at most: who has waited longest gives way to
 * a newcomer, but nobody does who is just joining. What comes back from the verifier or the store for a session
 * that has gone meanwhile finds no session and undoes what was done. Used by socketio_session.c and commands
 * that end a session.
 */
#ifndef ROLLCALL_SOCKETIO_SOCKETIO_JOIN_H
#define ROLLCALL_SOCKETIO_SOCKETIO_JOIN_H

#include "socketio/socketio_session.h"

/* Makes OPENED of a session, with what the handshake brought. False: memory is short, or all places are taken
 * by those who join. */
bool socketio_waiting_make(struct socketio_session *socketio, struct slice token,
                           struct slice device);
void socketio_waiting_free(struct socketio_session *socketio);

bool socketio_is_joining(const struct socketio_session *socketio);

/* Closes it when it has waited too long; answers when to come again. */
int64_t socketio_waiting_tick(struct socketio_session *socketio);

/* CONNECT, with what authenticates as raw JSON or SLICE_NONE. */
void socketio_join(struct socketio_session *socketio, struct slice auth);

/* The user goes, the connection stays: CONNECTED → OPENED. */
void socketio_leave(struct socketio_session *socketio);

/* session_hooks.leave: tells the client, so that it does not connect again by itself, and leaves. */
void socketio_disconnect(struct session *session);

/* Queues a packet and frees its buffer. */
void socketio_send(struct socketio_session *socketio, struct buffer *packet);

#endif
