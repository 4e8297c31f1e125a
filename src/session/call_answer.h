/*
 * Answering a call by who calls, as Socket.IO clients do (`call:accept {from}`): the call that rings from that user
 * is looked up and answered by its id. Another's, or none, is NOT_FOUND.
 */
#ifndef ROLLCALL_SESSION_CALL_ANSWER_H
#define ROLLCALL_SESSION_CALL_ANSWER_H

#include "calls/call_plane.h"
#include "session/pending_reply.h"

/* Owes the answer to `request`; `done` gets it, as that of call_plane_accept() or call_plane_reject(). */
void call_answer_from(struct pending_reply *request, struct slice from, bool accepts,
                      void (*done)(void *arg, const struct call_reply *reply));

#endif
