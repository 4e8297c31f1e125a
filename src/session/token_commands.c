/* refresh_token */
#include "session/dispatch.h"
#include "session/pending_reply.h"
#include "session/session_token.h"

static void on_new_token_verified(void *arg, enum jwt_result result,
                                  const struct identity *identity)
{
    struct pending_reply *pending = arg;
    struct session *session = pending->session;
    if (result != JWT_OK) {
        pending_reply_error(
            &pending, result == JWT_UNAVAILABLE ? ERROR_SERVICE_UNAVAILABLE : ERROR_UNAUTHENTICATED,
            jwt_result_text(result));
        return;
    }
    if (session && !slice_equal(identity_user(identity), session_user(session))) {
        pending_reply_error(&pending, ERROR_FORBIDDEN, "the token belongs to another user");
        return;
    }
    if (session)
        session_take_token(session, identity);
    pending_reply_send(&pending, &(struct message){.type = MESSAGE_OK});
}

void handle_refresh_token(struct session *session, const struct message *message)
{
    struct pending_reply *pending = pending_reply_open(session, message);
    if (pending &&
        !session_context_verify(session->context, message->token, on_new_token_verified, pending))
        pending_reply_error(&pending, ERROR_SERVER_BUSY, "too many tokens wait to be verified");
}
