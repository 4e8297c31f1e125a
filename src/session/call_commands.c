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

void handle_call_command(struct session *session, const struct message *message)
{
    const struct call_fields *fields = &message->call;
    struct call_plane *calls = session->context->calls;
    struct call_device device = session_device(session);
    struct pending_reply *pending = pending_reply_open(session, message);
    if (!pending)
        return;
    switch (message->type) {
    case MESSAGE_CALL_REQUEST:
        call_plane_request(calls, &device, fields->to, fields->call_id, on_call_command_done,
                           pending);
        break;
    case MESSAGE_CALL_ACCEPT:
    case MESSAGE_CALL_REJECT: {
        bool accepts = message->type == MESSAGE_CALL_ACCEPT;
        /* The Socket.IO dialect allows a call to be answered without its id, by its caller. */
        if (fields->from.data && !fields->call_id.data)
            call_answer_from(pending, fields->from, accepts, on_call_command_done);
        else
            (accepts ? call_plane_accept : call_plane_reject)(calls, &device, fields->call_id,
                                                              on_call_command_done, pending);
        break;
    }
    case MESSAGE_CALL_END:
        call_plane_end(calls, &device, fields->call_id, on_call_command_done, pending);
        break;
    case MESSAGE_CALL_SIGNAL:
        call_plane_signal(calls, &device, fields->call_id, fields->data, on_call_command_done,
                          pending);
        break;
    case MESSAGE_CALL_DECLARE_START:
        call_plane_declare_start(calls, &device, on_call_command_done, pending);
        break;
    default:
        call_plane_declare_end(calls, &device, on_call_command_done, pending);
        break;
    }
}
