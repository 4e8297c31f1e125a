#include "session/call_answer.h"

#include <stdlib.h>
#include <string.h>

struct call_answering {
    struct pending_reply *pending;
    bool accepts;
    call_plane_done done;
    size_t from_len;
    char from[USER_ID_BYTES_MAX];
};

static void on_ringing_call_found(void *arg, const struct call_answer *answer)
{
    struct call_answering *answering = arg;
    struct session *session = answering->pending->session;
    bool rings = answer->result == CALL_DONE && answer->call->state == CALL_RINGING &&
                 slice_equal(answer->call->caller.user_id,
                             (struct slice){answering->from, answering->from_len});
    if (!session) {
        pending_reply_end(&answering->pending);
    } else if (answer->result == CALL_UNAVAILABLE) {
        pending_reply_error(&answering->pending, ERROR_SERVICE_UNAVAILABLE,
                            "the call cannot be looked up now");
    } else if (!rings) {
        pending_reply_error(&answering->pending, ERROR_NOT_FOUND, "no call rings from this user");
    } else {
        struct call_device device = session_device(session);
        (answering->accepts ? call_plane_accept
                            : call_plane_reject)(session->context->calls, &device, answer->call->id,
                                                 answering->done, answering->pending);
    }
    free(answering);
}

void call_answer_from(struct pending_reply *pending, struct slice from, bool accepts,
                      call_plane_done done)
{
    struct session *session = pending->session;
    struct call_answering *answering = malloc(sizeof(*answering));
    if (!answering) {
        pending_reply_error(&pending, ERROR_SERVER_BUSY, "out of memory");
        return;
    }
    *answering = (struct call_answering){
        .pending = pending, .accepts = accepts, .done = done, .from_len = from.len};
    memcpy(answering->from, from.data, from.len);
    call_store_get(session->context->calls->store, SLICE_NONE, session_user(session),
                   on_ringing_call_found, answering);
}
