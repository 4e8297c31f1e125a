/* call_request, call_accept, call_reject, call_end, call_signal, and the declared start and end of a call. */
#include "calls/call_events.h"
#include "calls/call_plane.h"
#include "session/dispatch.h"
#include "session/pending_reply.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- answering by the caller's id ---- */

struct answer_by_caller {
    struct pending_reply *pending;
    bool accepts;
    size_t from_len;
    char from[USER_ID_BYTES_MAX];
};

static void on_ringing_call_found(void *arg, const struct call_answer *found)
{
    struct answer_by_caller *answer = arg;
    struct session *session = answer->pending->session;
    struct slice from = {answer->from, answer->from_len};
    bool rings = found->result == CALL_DONE && found->call->state == CALL_RINGING &&
                 slice_equal(found->call->caller.user_id, from);
    if (!session) {
        pending_reply_end(&answer->pending);
    } else if (found->result == CALL_UNAVAILABLE) {
        pending_reply_error(&answer->pending, ERROR_SERVICE_UNAVAILABLE,
                            "the call cannot be looked up now");
    } else if (!rings) {
        pending_reply_error(&answer->pending, ERROR_NOT_FOUND, "no call rings from this user");
    } else {
        struct call_device device = session_device(session);
        (answer->accepts ? call_plane_accept
                         : call_plane_reject)(session->context->calls, &device, found->call->id,
                                              on_call_command_done, answer->pending);
    }
    free(answer);
}

/* Looks up the call that rings from this user and answers it by its id. */
static void answer_call_from(struct pending_reply *pending, struct slice from, bool accepts)
{
    struct session *session = pending->session;
    struct answer_by_caller *answer = malloc(sizeof(*answer));
    if (!answer) {
        pending_reply_error(&pending, ERROR_SERVER_BUSY, "out of memory");
        return;
    }
    *answer =
        (struct answer_by_caller){.pending = pending, .accepts = accepts, .from_len = from.len};
    memcpy(answer->from, from.data, from.len);
    call_store_get(session->context->calls->store, SLICE_NONE, session_user(session),
                   on_ringing_call_found, answer);
}

/* ---- the commands ---- */

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
        /* a dialect may allow a call to be answered without its id, by its caller */
        if (fields->from.data && !fields->call_id.data)
            answer_call_from(pending, fields->from, accepts);
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
