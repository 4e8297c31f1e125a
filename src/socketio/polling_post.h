/*
 * What a polling client sends: POSTs, each with a payload of packets, one after the other.
 *
 *   its head is read ──polling_post_announced()──► the session has a POST ──► polling_post_serve(), answered
 *
 * Packets count in their order, so a client sends the next POST when the last was answered. Two at a time, and one
 * whose peer goes before its answer, end the session, as with the reference server: what was said is not known.
 *
 * A POST is its connection's; the session only knows of it, and lets go of it when it ends first. One thread.
 */
#ifndef ROLLCALL_SOCKETIO_POLLING_POST_H
#define ROLLCALL_SOCKETIO_POLLING_POST_H

#include "socketio/polling.h"

/* A POST to the session begins. False: there is one already; it was refused, and the session ends. */
bool polling_post_announced(struct polling *polling, struct exchange *exchange);

/* It is whole: takes its packets and answers it. */
void polling_post_serve(struct polling *polling, struct exchange *exchange);

/* The session has no more to do with polling: nobody is told how its POST ends. */
void polling_post_forget(struct polling *polling);

#endif
