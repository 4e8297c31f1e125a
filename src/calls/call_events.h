/*
 * What the devices of the two sides hear of a call, wherever they are connected.
 *
 *   it rings         call_incoming   all devices of the callee
 *   it is answered   call_accepted   the caller's device and the callee's other devices
 *                    call_ended      then the callee's other devices (answered_elsewhere)
 *   it is rejected   call_rejected   the caller's device and the callee's other devices
 *                    call_ended      then the callee's other devices (rejected)
 *   it ends          call_ended      all devices of both, but the one that ended it
 *   a signal         call_signal     the other side's device; before there is one, all the callee's
 *
 * `from` and `to` of every event but a signal are the call's caller and callee. A declared call has no
 * other side, and nobody hears of it but by `in_call`.
 */
#ifndef ROLLCALL_CALLS_CALL_EVENTS_H
#define ROLLCALL_CALLS_CALL_EVENTS_H

#include "protocol/message.h"
#include "routing/delivery.h"
#include "store/call_store.h"

/* The call as messages of `type` show it. Borrows from it. */
struct message call_events_message(enum message_type type, const struct call *call);

/* To all devices of the callee. */
void call_events_ring(struct delivery *delivery, const struct call *call);

/* To one device, which is `caller`, `callee`, or a further device of the callee: how the call stands. */
void call_events_tell(struct delivery *delivery, const struct call *call,
                      const struct call_device *device);

/* `answering` is the connection that answered. */
void call_events_answered(struct delivery *delivery, const struct call *call,
                          const struct ulid *answering);
void call_events_rejected(struct delivery *delivery, const struct call *call,
                          const struct ulid *rejecting);

/* `ending` NULL: nobody asked for it. */
void call_events_ended(struct delivery *delivery, const struct call *call,
                       const struct ulid *ending);

/* From one side to the other. */
void call_events_signal(struct delivery *delivery, const struct call *call, struct slice from,
                        struct slice data);

#endif
