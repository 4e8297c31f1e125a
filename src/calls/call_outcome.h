/*
 * The effects of a call's transition besides its events (call_events.h): `in_call` of both sides, the call
 * history, metrics. The gateway that made the transition causes them, after the events.
 */
#ifndef ROLLCALL_CALLS_CALL_OUTCOME_H
#define ROLLCALL_CALLS_CALL_OUTCOME_H

#include "calls/call_command.h"

/* Returns whether the reply to the command that ended this call waits until it is recorded: when the application is to hear of it. */
bool call_outcome_holds_reply(const struct call_plane *plane, const struct call *call);

void call_outcome_started(struct call_plane *plane);
void call_outcome_answered(struct call_plane *plane, const struct call *call);
/* Replies to `held`, and frees it, when the call is recorded; NULL: nobody waits. */
void call_outcome_ended(struct call_plane *plane, const struct call *call,
                        struct call_command *held);

/* The callee was not there: no call was made, but the application hears that it was missed. */
void call_outcome_unavailable(struct call_plane *plane, struct slice id, struct slice caller,
                              struct slice callee);

/* A call request whose callee is in another call: it appears in the history of both users. */
void call_outcome_busy(struct call_plane *plane, struct slice id, struct slice caller,
                       struct slice callee);

#endif
