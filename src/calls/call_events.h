/*
 * The events about a call, sent to the devices of both sides wherever they are connected.
 *
 *   it rings         call_incoming   all devices of the callee
 *   it is accepted   call_accepted   the caller's device and the callee's other devices
 *                    call_ended      then the callee's other devices (answered_elsewhere)
 *   it is rejected   call_rejected   the caller's device and the callee's other devices
 *                    call_ended      then the callee's other devices (rejected)
 *   it ends          call_ended      all devices of both sides, except the one that ended it
 *   a signal         call_signal     the other side's device; before there is one, all the callee's
 *
 * `from` and `to` of every event except a signal are the call's caller and callee. A declared call has no
 * other side; other users see only `in_call`.
 */
#ifndef ROLLCALL_CALLS_CALL_EVENTS_H
#define ROLLCALL_CALLS_CALL_EVENTS_H

#include "protocol/message.h"
#include "routing/delivery.h"
#include "store/call_store.h"

/* Returns a message of this type about the call; it borrows from the call. */
struct message call_events_message(enum message_type type, const struct call *call);

/* Sends call_incoming to all devices of the callee. */
void call_events_ring(struct delivery *delivery, const struct call *call);

/* Sends the state of the call to one device of the caller or the callee. */
void call_events_send_state(struct delivery *delivery, const struct call *call,
                            const struct call_device *device);

/* `answering` and `rejecting` are the connections that sent the command. */
void call_events_answered(struct delivery *delivery, const struct call *call,
                          const struct ulid *answering);
void call_events_rejected(struct delivery *delivery, const struct call *call,
                          const struct ulid *rejecting);

/* `ending` NULL: the call ended without a command. */
void call_events_ended(struct delivery *delivery, const struct call *call,
                       const struct ulid *ending);

/* The same, to one device. */
void call_events_ended_for(struct delivery *delivery, const struct call *call,
                           const struct call_device *device);

/* The same, to the devices of one user except the connection `except` (NULL: none). */
void call_events_ended_for_user(struct delivery *delivery, const struct call *call,
                                struct slice user_id, const struct ulid *except);

/* Relays a signal from one side to the other. */
void call_events_signal(struct delivery *delivery, const struct call *call, struct slice from,
                        struct slice data);

#endif
