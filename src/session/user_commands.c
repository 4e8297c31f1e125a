/* user:connect, user:disconnect: commands of dialects whose connections outlive their sessions. */
#include "session/dispatch.h"

/* There is nothing left to do: a session is a connected user. */
void handle_user_connect(struct session *session, const struct message *message)
{
    session_confirm(session, message->id);
}

void handle_user_disconnect(struct session *session, const struct message *message)
{
    session_confirm(session, message->id);
    session->context->hooks->leave(session);
}
