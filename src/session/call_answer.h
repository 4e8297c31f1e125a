/*
 * Answers a call by its caller, as Socket.IO clients do (`call:accept {from}`): looks up the call that rings
 * from that user and answers it by its id. If there is none, the reply is NOT_FOUND.
 */
#ifndef ROLLCALL_SESSION_CALL_ANSWER_H
#define ROLLCALL_SESSION_CALL_ANSWER_H

#include "calls/call_plane.h"
#include "session/pending_reply.h"

/* Takes `pending`; `done` runs with it as after call_plane_accept() or call_plane_reject(). */
void call_answer_from(struct pending_reply *pending, struct slice from, bool accepts,
                      call_plane_done done);

#endif
