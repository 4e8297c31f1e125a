#include "calls/call_events.h"

struct message call_events_message(enum message_type type, const struct call *call)
{
    return (struct message){.type = type,
                            .id = SLICE_NONE,
                            .call = {.call_id = call->id,
                                     .from = call->caller.user_id,
                                     .to = call->callee.user_id,
                                     .data = SLICE_NONE}};
}

static struct message call_events_ended_message(const struct call *call, enum call_reason reason)
{
    struct message message = call_events_message(MESSAGE_CALL_ENDED, call);
    message.call.reason = call_reason_name(reason);
    return message;
}

static bool call_events_is_declared(const struct call *call)
{
    return !call->callee.user_id.data;
}

void call_events_ring(struct delivery *delivery, const struct call *call)
{
    struct message message = call_events_message(MESSAGE_CALL_INCOMING, call);
    if (!call->unheard)
        delivery_send(delivery, &call->callee.user_id, 1, &message, NULL);
}

/* The answer goes to the caller and to the callee's other devices, for which the call ends with it. */
static void call_events_send_answer(struct delivery *delivery, const struct call *call,
                                    const struct message *answer, const struct message *ended,
                                    const struct ulid *answering)
{
    delivery_send_device(delivery, call->caller.user_id, call->caller.device_id, answer);
    delivery_send(delivery, &call->callee.user_id, 1, answer, answering);
    delivery_send(delivery, &call->callee.user_id, 1, ended, answering);
}

void call_events_send_state(struct delivery *delivery, const struct call *call,
                            const struct call_device *device)
{
    bool is_caller = slice_equal(device->user_id, call->caller.user_id);
    bool is_ringing = call->state == CALL_RINGING;
    if (call_events_is_declared(call) || (!is_ringing && call->state != CALL_ACCEPTED))
        return;
    enum message_type ringing = is_caller ? MESSAGE_CALL_RINGING : MESSAGE_CALL_INCOMING;
    struct message message =
        call_events_message(is_ringing ? ringing : MESSAGE_CALL_ACCEPTED, call);
    delivery_send_device(delivery, device->user_id, device->device_id, &message);
}

void call_events_answered(struct delivery *delivery, const struct call *call,
                          const struct ulid *answering)
{
    struct message accepted = call_events_message(MESSAGE_CALL_ACCEPTED, call);
    struct message elsewhere = call_events_ended_message(call, CALL_REASON_ANSWERED_ELSEWHERE);
    call_events_send_answer(delivery, call, &accepted, &elsewhere, answering);
}

void call_events_rejected(struct delivery *delivery, const struct call *call,
                          const struct ulid *rejecting)
{
    struct message ended = call_events_ended_message(call, call->reason);
    struct message rejected = ended;
    rejected.type = MESSAGE_CALL_REJECTED;
    call_events_send_answer(delivery, call, &rejected, &ended, rejecting);
}

void call_events_ended(struct delivery *delivery, const struct call *call,
                       const struct ulid *ending)
{
    struct slice both[] = {call->caller.user_id, call->callee.user_id};
    struct message ended = call_events_ended_message(call, call->reason);
    if (!call_events_is_declared(call))
        delivery_send(delivery, both, call->unheard ? 1 : 2, &ended, ending);
}

void call_events_ended_for(struct delivery *delivery, const struct call *call,
                           const struct call_device *device)
{
    struct message ended = call_events_ended_message(call, call->reason);
    if (!call_events_is_declared(call))
        delivery_send_device(delivery, device->user_id, device->device_id, &ended);
}

void call_events_ended_for_user(struct delivery *delivery, const struct call *call,
                                struct slice user_id, const struct ulid *except)
{
    struct message ended = call_events_ended_message(call, call->reason);
    delivery_send(delivery, &user_id, 1, &ended, except);
}

void call_events_signal(struct delivery *delivery, const struct call *call, struct slice from,
                        struct slice data)
{
    const struct call_device *other =
        slice_equal(from, call->caller.user_id) ? &call->callee : &call->caller;
    struct message message = {
        .type = MESSAGE_CALL_SIGNAL,
        .id = SLICE_NONE,
        .call = {.call_id = call->id, .from = from, .to = SLICE_NONE, .data = data}};
    if (other->device_id.data)
        delivery_send_device(delivery, other->user_id, other->device_id, &message);
    else if (!call->unheard)
        delivery_send(delivery, &other->user_id, 1, &message, NULL);
}
