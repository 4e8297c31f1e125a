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

static struct message ended_message(const struct call *call, enum call_reason reason)
{
    struct message message = call_events_message(MESSAGE_CALL_ENDED, call);
    message.call.reason = call_reason_name(reason);
    return message;
}

static bool is_declared(const struct call *call)
{
    return !call->callee.user_id.data;
}

void call_events_ring(struct delivery *delivery, const struct call *call)
{
    struct message message = call_events_message(MESSAGE_CALL_INCOMING, call);
    delivery_send(delivery, &call->callee.user_id, 1, &message, NULL);
}

static void send_device(struct delivery *delivery, const struct call_device *device,
                        const struct message *message)
{
    delivery_send_device(delivery, device->user_id, device->device_id, message);
}

static void tell_device(struct delivery *delivery, const struct call_device *device,
                        enum message_type type, const struct call *call)
{
    struct message message = call_events_message(type, call);
    send_device(delivery, device, &message);
}

/* The peer hears what was done; so do the doer's other devices, for which the call ends with it. */
static void tell_done(struct delivery *delivery, const struct call *call,
                      const struct message *done, const struct message *ended,
                      const struct ulid *doing)
{
    send_device(delivery, &call->caller, done);
    delivery_send(delivery, &call->callee.user_id, 1, done, doing);
    delivery_send(delivery, &call->callee.user_id, 1, ended, doing);
}

void call_events_tell(struct delivery *delivery, const struct call *call,
                      const struct call_device *device)
{
    bool calls = slice_equal(device->user_id, call->caller.user_id);
    if (is_declared(call))
        return;
    if (call->state == CALL_RINGING)
        tell_device(delivery, device, calls ? MESSAGE_CALL_RINGING : MESSAGE_CALL_INCOMING, call);
    else if (call->state == CALL_ACCEPTED)
        tell_device(delivery, device, MESSAGE_CALL_ACCEPTED, call);
}

void call_events_answered(struct delivery *delivery, const struct call *call,
                          const struct ulid *answering)
{
    struct message accepted = call_events_message(MESSAGE_CALL_ACCEPTED, call);
    struct message elsewhere = ended_message(call, CALL_REASON_ANSWERED_ELSEWHERE);
    tell_done(delivery, call, &accepted, &elsewhere, answering);
}

void call_events_rejected(struct delivery *delivery, const struct call *call,
                          const struct ulid *rejecting)
{
    struct message ended = ended_message(call, call->reason);
    struct message rejected = ended;
    rejected.type = MESSAGE_CALL_REJECTED;
    tell_done(delivery, call, &rejected, &ended, rejecting);
}

void call_events_ended(struct delivery *delivery, const struct call *call,
                       const struct ulid *ending)
{
    struct slice both[] = {call->caller.user_id, call->callee.user_id};
    struct message ended = ended_message(call, call->reason);
    if (!is_declared(call))
        delivery_send(delivery, both, 2, &ended, ending);
}

void call_events_signal(struct delivery *delivery, const struct call *call, struct slice from,
                        struct slice data)
{
    const struct call_device *peer =
        slice_equal(from, call->caller.user_id) ? &call->callee : &call->caller;
    struct message message = {
        .type = MESSAGE_CALL_SIGNAL,
        .id = SLICE_NONE,
        .call = {.call_id = call->id, .from = from, .to = SLICE_NONE, .data = data}};
    if (peer->device_id.data)
        delivery_send_device(delivery, peer->user_id, peer->device_id, &message);
    else
        delivery_send(delivery, &peer->user_id, 1, &message, NULL);
}
