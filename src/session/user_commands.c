/* user:connect, user:disconnect: commands of dialects whose connections outlive their sessions. */
#include "session/dispatch.h"

static void confirm_user_command(struct session *session, const struct message *message)
{
    connection_send(&session->connection, &(struct message){.type = MESSAGE_OK, .id = message->id});
}

/* There is nothing left to do: a session is a connected user. */
void handle_user_connect(struct session *session, const struct message *message)
{
    confirm_user_command(session, message);
}

void handle_user_disconnect(struct session *session, const struct message *message)
{
    confirm_user_command(session, message);
    session->context->hooks->leave(session);
}
