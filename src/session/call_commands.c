/* call_request, call_accept, call_reject, call_end, call_signal; call:start, call:end */
#include "calls/call_events.h"
#include "calls/call_plane.h"
#include "session/call_answer.h"
#include "session/dispatch.h"
#include "session/pending_reply.h"

/* Replies call_ringing to call_request and ok to the others. A call_signal, of which there are many, is
 * confirmed only if the client gave an id. */
static void on_call_command_done(void *arg, const struct call_reply *result)
{
    struct pending_reply *pending = arg;
    struct message reply = {.type = MESSAGE_OK};
    if (result->problem) {
        pending_reply_error(&pending, result->code, result->problem);
        return;
    }
    if (pending->type == MESSAGE_CALL_REQUEST)
        reply = call_events_message(MESSAGE_CALL_RINGING, result->call);
    if (pending->type == MESSAGE_CALL_SIGNAL && !pending->id.data)
        pending_reply_end(&pending);
    else
        pending_reply_send(&pending, &reply);
}

void handle_call_request(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *pending = pending_reply_open(session, message);
    if (pending)
        call_plane_request(session->context->calls, &device, message->call.to,
                           message->call.call_id, on_call_command_done, pending);
}

/* The Socket.IO dialect allows a call to be answered without its id, by its caller. */
static bool names_caller(const struct message *message)
{
    return message->call.from.data && !message->call.call_id.data;
}

void handle_call_accept(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *pending = pending_reply_open(session, message);
    if (pending && names_caller(message))
        call_answer_from(pending, message->call.from, true, on_call_command_done);
    else if (pending)
        call_plane_accept(session->context->calls, &device, message->call.call_id,
                          on_call_command_done, pending);
}

void handle_call_reject(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *pending = pending_reply_open(session, message);
    if (pending && names_caller(message))
        call_answer_from(pending, message->call.from, false, on_call_command_done);
    else if (pending)
        call_plane_reject(session->context->calls, &device, message->call.call_id,
                          on_call_command_done, pending);
}

void handle_call_end(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *pending = pending_reply_open(session, message);
    if (pending)
        call_plane_end(session->context->calls, &device, message->call.call_id,
                       on_call_command_done, pending);
}

void handle_call_signal(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *pending = pending_reply_open(session, message);
    if (pending)
        call_plane_signal(session->context->calls, &device, message->call.call_id,
                          message->call.data, on_call_command_done, pending);
}

void handle_call_declare_start(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *pending = pending_reply_open(session, message);
    if (pending)
        call_plane_declare_start(session->context->calls, &device, on_call_command_done, pending);
}

void handle_call_declare_end(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *pending = pending_reply_open(session, message);
    if (pending)
        call_plane_declare_end(session->context->calls, &device, on_call_command_done, pending);
}
