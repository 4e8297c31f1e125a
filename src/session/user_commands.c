/* user_connect, user_disconnect: commands of dialects whose connections outlive their sessions. */
#include "session/dispatch.h"

/* A user who has a session is connected already. */
void handle_user_connect(struct session *session, const struct message *message)
{
    session_confirm(session, message->id);
}

void handle_user_disconnect(struct session *session, const struct message *message)
{
    session_confirm(session, message->id);
    session->context->hooks->leave(session);
}
