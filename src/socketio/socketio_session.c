#include "socketio/socketio_session.h"

#include "base/container.h"
#include "session/dispatch.h"
#include "socketio/codec/socketio_dialect.h"
#include "socketio/codec/socketio_packed.h"
#include "socketio/polling.h"
#include "socketio/socketio_join.h"
#include "socketio/socketio_recovery.h"

#include <stdlib.h>

struct socketio_session *socketio_session_of(struct connection *connection)
{
    struct session *session = CONTAINER_OF(connection, struct session, connection);
    return CONTAINER_OF(session, struct socketio_session, session);
}

struct slice socketio_user(const struct socketio_session *socketio)
{
    return socketio_is_connected(socketio) ? session_user(&socketio->session) : SLICE_NONE;
}

bool socketio_fell_silent(const struct socketio_session *socketio)
{
    const struct connection *connection = &socketio->session.connection;
    int64_t now_ms = connection->context->loop->clock.now_ms;
    return (socketio->engine.awaits_pong && now_ms >= socketio->engine.ping_at_ms) ||
           !connection_healthy(connection, now_ms);
}

void socketio_send(struct socketio_session *socketio, struct buffer *packet)
{
    struct connection *connection = socketio_connection(socketio);
    struct buffer packed = BUFFER_INIT;
    bool sent = !packet->failed;
    if (sent && connection->dialect->pack) {
        connection->dialect->pack(packet->data, packet->len, &packed);
        sent = !packed.failed &&
               connection_send_frame(connection, WEBSOCKET_OPCODE_BINARY, buffer_slice(&packed), 0);
    } else if (sent) {
        sent = connection_send_frame(connection, WEBSOCKET_OPCODE_TEXT, buffer_slice(packet), 0);
    }
    if (!sent)
        connection_fail(connection);
    buffer_free(&packed);
    buffer_free(packet);
}

/* ---- incoming packets ---- */

/* Closes the connection after a malformed or unexpected packet, as the reference server does. */
static void break_off_socketio(struct socketio_session *socketio, const char *problem)
{
    metrics_count(socketio->session.context->metrics, METRIC_PROTOCOL_ERRORS);
    if (socketio_is_connected(socketio))
        session_error(&socketio->session, SLICE_NONE, ERROR_INVALID_MESSAGE, problem);
    connection_close(socketio_connection(socketio), WEBSOCKET_CLOSE_PROTOCOL_ERROR,
                     slice_of(problem));
}

static void receive_socketio_event(struct socketio_session *socketio,
                                   const struct socketio_packet *packet)
{
    struct session *session = &socketio->session;
    struct message message;
    const char *problem;
    metrics_count(session->context->metrics, METRIC_MESSAGES_IN);
    socketio->attachments_left = (uint8_t)packet->attachments;
    if (packet->empty) { /* ignored, as by the reference server */
        connection_exceed(&session->connection);
        return;
    }
    if (!socketio_decode(&session->context->scratch, packet, &message, &problem))
        dispatch_invalid(session, &message, problem);
    else
        session_receive(session, &message);
}

static void receive_connected_packet(struct socketio_session *socketio,
                                     const struct socketio_packet *packet)
{
    switch (packet->type) {
    case SOCKETIO_EVENT:
    case SOCKETIO_BINARY_EVENT:
        receive_socketio_event(socketio, packet);
        break;
    case SOCKETIO_ACK: /* we never request one */
    case SOCKETIO_BINARY_ACK:
        socketio->attachments_left = (uint8_t)packet->attachments;
        connection_exceed(&socketio->session.connection);
        break;
    case SOCKETIO_DISCONNECT:
        socketio_leave(socketio);
        break;
    default:
        break_off_socketio(socketio, "already connected");
        break;
    }
}

static void receive_socketio_packet(struct socketio_session *socketio,
                                    const struct socketio_packet *packet)
{
    bool connects = packet->type == SOCKETIO_CONNECT;
    struct buffer refusal = BUFFER_INIT;
    if (!socketio_is_main(packet) && connects) {
        socketio_write_refused(&refusal, packet->name_space, "Invalid namespace", SLICE_NONE);
        socketio_send(socketio, &refusal);
        connection_exceed(socketio_connection(socketio));
    } else if (!socketio_is_main(packet)) {
        break_off_socketio(socketio, "not connected to this namespace");
    } else if (socketio_is_connected(socketio)) {
        receive_connected_packet(socketio, packet);
    } else if (connects && socketio->waiting && !socketio_is_joining(socketio)) {
        socketio_join(socketio, packet->argument);
    } else {
        break_off_socketio(socketio, "not connected");
    }
}

static void receive_packed_message(struct socketio_session *socketio,
                                   const struct engineio_packet *engine)
{
    struct buffer text = BUFFER_INIT;
    struct socketio_packet packet;
    const char *problem = "text from a client whose packets are binary";
    if (engine->binary &&
        socketio_unpack((struct slice){engine->data, engine->len}, &text, &packet, &problem))
        receive_socketio_packet(socketio, &packet);
    else
        break_off_socketio(socketio, problem);
    buffer_free(&text);
}

static void receive_engine_message(struct socketio_session *socketio,
                                   const struct engineio_packet *engine)
{
    struct connection *connection = socketio_connection(socketio);
    struct socketio_packet packet;
    const char *problem = "a packet whose attachments have not come yet";
    /* Attachments follow events of connected clients. A binary message before CONNECT is a packet, so its client
     * packs all of them. */
    if (engine->binary && !socketio_is_connected(socketio) && !socketio_is_joining(socketio))
        connection->dialect = &DIALECT_TABLE_SOCKETIO_PACKED;
    if (connection->dialect->pack)
        receive_packed_message(socketio, engine);
    else if (engine->binary && socketio->attachments_left > 0)
        socketio->attachments_left--;
    else if (engine->binary)
        break_off_socketio(socketio, "a binary message that belongs to no packet");
    else if (socketio->attachments_left ||
             !socketio_parse(engine->data, engine->len, &packet, &problem))
        break_off_socketio(socketio, problem);
    else
        receive_socketio_packet(socketio, &packet);
}

/* ---- connection_owner ---- */

static void on_socketio_payload(struct connection *connection, char *data, size_t len, bool binary)
{
    struct socketio_session *socketio = socketio_session_of(connection);
    struct engineio_packet packet;
    switch (engine_receive(&socketio->engine, connection, data, len, binary, &packet)) {
    case ENGINE_MESSAGE:
        receive_engine_message(socketio, &packet);
        break;
    case ENGINE_LEAVES:
        socketio->client_leaves = true;
        connection_close(connection, WEBSOCKET_CLOSE_NORMAL, SLICE_NONE);
        break;
    case ENGINE_BROKEN:
        break_off_socketio(socketio, "not a packet of Engine.IO 4");
        break;
    case ENGINE_HANDLED:
        connection_exceed(connection);
        break;
    }
}

static int64_t on_socketio_tick(struct connection *connection)
{
    struct socketio_session *socketio = socketio_session_of(connection);
    int64_t engine_ms = engine_tick(&socketio->engine, connection);
    socketio_recovery_tick(socketio);
    if (!connection_is_open(connection))
        return INT64_MAX;
    int64_t own_ms = socketio_is_connected(socketio) ? session_on_tick(connection)
                                                     : socketio_waiting_tick(socketio);
    return engine_ms < own_ms ? engine_ms : own_ms;
}

static void on_socketio_left(struct connection *connection)
{
    struct socketio_session *socketio = socketio_session_of(connection);
    metrics_add(socketio->session.context->metrics, METRIC_SOCKETIO_CONNECTIONS, -1);
    if (socketio_is_connected(socketio)) {
        socketio_recovery_park(socketio);
        session_detach(&socketio->session);
    } else {
        socketio_waiting_free(socketio);
    }
}

static void on_socketio_gone(struct connection *connection)
{
    struct socketio_session *socketio = socketio_session_of(connection);
    backlog_free(&socketio->backlog);
    free(socketio);
}

static bool send_socketio_ping(struct connection *connection)
{
    return engine_ping(&socketio_session_of(connection)->engine, connection);
}

static void send_socketio_disconnect(struct connection *connection)
{
    struct socketio_session *socketio = socketio_session_of(connection);
    struct buffer packet = BUFFER_INIT;
    if (!socketio_is_connected(socketio))
        return;
    socketio_write_disconnect(&packet);
    socketio_send(socketio, &packet);
}

static const struct connection_owner SOCKETIO_OWNER = {
    .on_payload = on_socketio_payload,
    .on_tick = on_socketio_tick,
    .on_left = on_socketio_left,
    .owes_replies = session_owes_replies,
    .sync_from = session_sync_from,
    .on_caught_up = session_on_caught_up,
    .send_ping = send_socketio_ping,
    .send_disconnect = send_socketio_disconnect,
    .user_id = session_user_of,
    .on_gone = on_socketio_gone,
    .transport = &POLLING_TRANSPORT,
};

/* ---- opening ---- */

/* Makes a client; its connection is opened next. */
static struct socketio_session *make_socketio_session(struct socketio_context *context,
                                                      const struct socketio_handshake *handshake)
{
    struct socketio_session *socketio = malloc(sizeof(*socketio) + DEVICE_ID_BYTES_MAX);
    if (!socketio)
        return NULL;
    *socketio = (struct socketio_session){0};
    session_init(&socketio->session, context->sessions);
    memcpy(socketio->engine.sid, handshake->sid.data, ENGINE_SID_LEN);
    if (socketio_waiting_make(socketio, handshake->token, handshake->device))
        return socketio;
    free(socketio);
    return NULL;
}

static void begin_socketio_session(struct socketio_session *socketio, bool upgrades)
{
    struct connection *connection = socketio_connection(socketio);
    metrics_add(socketio->session.context->metrics, METRIC_SOCKETIO_CONNECTIONS, 1);
    connection->silent = true;
    engine_open(&socketio->engine, connection, upgrades);
    connection_wake_at(connection, socketio_waiting_tick(socketio));
}

struct socketio_session *socketio_session_open(struct socketio_context *context,
                                               struct stream *from, struct slice greeting,
                                               const struct socketio_handshake *handshake)
{
    struct socketio_session *socketio = make_socketio_session(context, handshake);
    if (!socketio)
        return NULL;
    if (!connection_open(socketio_connection(socketio), &context->sessions->connections,
                         &SOCKETIO_OWNER, &DIALECT_TABLE_SOCKETIO, from, greeting)) {
        socketio_waiting_free(socketio);
        free(socketio);
        return NULL;
    }
    begin_socketio_session(socketio, false);
    return socketio;
}

struct socketio_session *socketio_session_open_on(struct socketio_context *context,
                                                  const struct socketio_handshake *handshake)
{
    struct socketio_session *socketio = make_socketio_session(context, handshake);
    if (!socketio)
        return NULL;
    connection_open_on(socketio_connection(socketio), &context->sessions->connections,
                       &SOCKETIO_OWNER, &DIALECT_TABLE_SOCKETIO);
    begin_socketio_session(socketio, true);
    return socketio;
}
