#include "session/call_answer.h"

#include <stdlib.h>
#include <string.h>

struct answering {
    struct pending_reply *request;
    bool accepts;
    void (*done)(void *arg, const struct call_reply *reply);
    size_t from_len;
    char from[USER_ID_BYTES_MAX];
};

static bool rings_from(const struct call_answer *answer, struct slice from)
{
    return answer->result == CALL_DONE && answer->call->state == CALL_RINGING &&
           slice_equal(answer->call->caller.user_id, from);
}

static void pass_on(const struct answering *answering, struct slice call_id)
{
    const struct session *session = answering->request->session;
    struct call_device device = session_device(session);
    if (answering->accepts)
        call_plane_accept(session->context->calls, &device, call_id, answering->done,
                          answering->request);
    else
        call_plane_reject(session->context->calls, &device, call_id, answering->done,
                          answering->request);
}

static void found(void *arg, const struct call_answer *answer)
{
    struct answering *answering = arg;
    struct session *session = answering->request->session;
    if (!session) {
        pending_reply_end(&answering->request);
    } else if (answer->result == CALL_UNAVAILABLE) {
        pending_reply_error(&answering->request, ERROR_SERVICE_UNAVAILABLE,
                            "the call cannot be looked up now");
    } else if (!rings_from(answer, (struct slice){answering->from, answering->from_len})) {
        pending_reply_error(&answering->request, ERROR_NOT_FOUND, "no call rings from this user");
    } else {
        pass_on(answering, answer->call->id);
    }
    free(answering);
}

void call_answer_from(struct pending_reply *request, struct slice from, bool accepts,
                      void (*done)(void *arg, const struct call_reply *reply))
{
    struct session *session = request->session;
    struct answering *answering = malloc(sizeof(*answering));
    if (!answering) {
        pending_reply_error(&request, ERROR_SERVER_BUSY, "out of memory");
        return;
    }
    *answering = (struct answering){
        .request = request, .accepts = accepts, .done = done, .from_len = from.len};
    memcpy(answering->from, from.data, from.len);
    call_store_get(session->context->calls->store, SLICE_NONE, session_user(session), found,
                   answering);
}
