/* call_request, call_accept, call_reject, call_end, call_signal; call:start, call:end */
#include "calls/call_events.h"
#include "calls/call_plane.h"
#include "session/call_answer.h"
#include "session/dispatch.h"
#include "session/pending_reply.h"

/* The answer to a command that was done: a ring to a request, `ok` to the others; to a signal, of which
 * there are many, only where the client gave an id. */
static void answer(struct pending_reply *request, const struct call *call)
{
    struct message message = {.type = MESSAGE_OK};
    if (request->type == MESSAGE_CALL_REQUEST)
        message = call_events_message(MESSAGE_CALL_RINGING, call);
    if (request->type == MESSAGE_CALL_SIGNAL && !request->id.data)
        pending_reply_end(&request);
    else
        pending_reply_reply(&request, &message);
}

static void replied(void *arg, const struct call_reply *reply)
{
    struct pending_reply *request = arg;
    if (reply->problem)
        pending_reply_error(&request, reply->code, reply->problem);
    else
        answer(request, reply->call);
}

void handle_call_request(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *request = pending_reply_open(session, message);
    if (request)
        call_plane_request(session->context->calls, &device, message->call.to,
                           message->call.call_id, replied, request);
}

/* Of the Socket.IO dialect: a call may be answered without its id, by who calls. */
static bool names_caller(const struct message *message)
{
    return message->call.from.data && !message->call.call_id.data;
}

void handle_call_accept(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *request = pending_reply_open(session, message);
    if (request && names_caller(message))
        call_answer_from(request, message->call.from, true, replied);
    else if (request)
        call_plane_accept(session->context->calls, &device, message->call.call_id, replied,
                          request);
}

void handle_call_reject(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *request = pending_reply_open(session, message);
    if (request && names_caller(message))
        call_answer_from(request, message->call.from, false, replied);
    else if (request)
        call_plane_reject(session->context->calls, &device, message->call.call_id, replied,
                          request);
}

void handle_call_end(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *request = pending_reply_open(session, message);
    if (request)
        call_plane_end(session->context->calls, &device, message->call.call_id, replied, request);
}

void handle_call_signal(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *request = pending_reply_open(session, message);
    if (request)
        call_plane_signal(session->context->calls, &device, message->call.call_id,
                          message->call.data, replied, request);
}

void handle_call_declare_start(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *request = pending_reply_open(session, message);
    if (request)
        call_plane_declare_start(session->context->calls, &device, replied, request);
}

void handle_call_declare_end(struct session *session, const struct message *message)
{
    struct call_device device = session_device(session);
    struct pending_reply *request = pending_reply_open(session, message);
    if (request)
        call_plane_declare_end(session->context->calls, &device, replied, request);
}
