/* user:connect, user:disconnect: words that only the Socket.IO dialect has. */
#include "session/dispatch.h"
#include "socketio/codec/socketio.h"
#include "socketio/socketio_join.h"

#include "base/container.h"

static void confirm(struct session *session, const struct message *message)
{
    connection_send(&session->connection, &(struct message){.type = MESSAGE_OK, .id = message->id});
}

/* Connecting has done it. */
void handle_user_connect(struct session *session, const struct message *message)
{
    confirm(session, message);
}

/* A disconnect of ours, so that the client does not come back by itself. */
void handle_user_disconnect(struct session *session, const struct message *message)
{
    struct socketio_session *socketio = CONTAINER_OF(session, struct socketio_session, session);
    struct buffer packet = BUFFER_INIT;
    confirm(session, message);
    socketio_write_disconnect(&packet);
    socketio_send(socketio, &packet);
    socketio_leave(socketio);
}
