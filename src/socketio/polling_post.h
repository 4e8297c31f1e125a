/*
 * The POSTs of a polling client, each with a payload of packets.
 *
 *   head read ──polling_post_begin()──► `post` is set ──body read──► polling_post_serve(), answered
 *
 * The order of packets matters, so a client sends a POST only after the previous one was answered. As with the
 * reference server, two POSTs at a time end the Engine.IO session, and so does one whose connection is closed before
 * its answer, since it is unknown which packets arrived.
 *
 * The answer to a client that floods is held back while it is throttled (connection.h), so that its next POST waits.
 *
 * A POST belongs to its HTTP connection; polling only refers to it, and forgets it when the Engine.IO session ends
 * first. One thread.
 */
#ifndef ROLLCALL_SOCKETIO_POLLING_POST_H
#define ROLLCALL_SOCKETIO_POLLING_POST_H

#include "socketio/polling.h"

/* The head of a POST was read. Returns false when another POST is not answered yet: this one is refused, and the
 * Engine.IO session ends. */
bool polling_post_begin(struct polling *polling, struct exchange *exchange);

/* The POST is complete: handles its packets and answers it. */
void polling_post_serve(struct polling *polling, struct exchange *exchange);

/* Answers a POST that was held back. */
void polling_post_resume(struct polling *polling);

/* Polling does not carry the Engine.IO session any more: the end of its POST does not matter. */
void polling_post_forget(struct polling *polling);

#endif
