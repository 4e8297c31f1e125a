/* refresh_token */
#include "log/log.h"
#include "session/dispatch.h"
#include "session/pending_reply.h"

static void verified(void *arg, enum jwt_result result, const struct identity *identity)
{
    struct request *request = arg;
    struct session *session = request->session;
    if (result != JWT_OK) {
        request_error(&request, ERROR_UNAUTHENTICATED, jwt_result_text(result));
        return;
    }
    if (session && !slice_equal(identity_user(identity), session_user(session))) {
        request_error(&request, ERROR_FORBIDDEN, "the token belongs to another user");
        return;
    }
    if (session)
        session_limit_token(session, identity->expires_at_wall_ms);
    request_reply(&request, &(struct message){.type = MESSAGE_OK});
}

void handle_refresh_token(struct session *session, const struct message *message)
{
    struct request *request = request_open(session, message);
    if (request && !context_verify(session->context, message->token, verified, request))
        request_error(&request, ERROR_SERVER_BUSY, "too many tokens wait to be verified");
}
