/*
 * The POSTs of a polling client, each with a payload of packets.
 *
 *   head read ──polling_post_announced()──► `post` is set ──body read──► polling_post_serve(), answered
 *
 * The order of packets matters, so a client sends a POST only after the previous one was answered. As with the
 * reference server, two POSTs at a time end the session, and so does one whose connection is closed before its
 * answer, since it is unknown which packets arrived.
 *
 * A POST belongs to its connection; the session only refers to it, and forgets it when the session ends first.
 * One thread.
 */
#ifndef ROLLCALL_SOCKETIO_POLLING_POST_H
#define ROLLCALL_SOCKETIO_POLLING_POST_H

#include "socketio/polling.h"

/* A POST to the session begins. Returns false when another is under way: this one is refused, and the session
 * ends. */
bool polling_post_announced(struct polling *polling, struct exchange *exchange);

/* The POST is complete: handles its packets and answers it. */
void polling_post_serve(struct polling *polling, struct exchange *exchange);

/* The session is not carried by polling any more: the end of its POST does not matter. */
void polling_post_forget(struct polling *polling);

#endif
