#include "socketio/socketio_session.h"

#include "base/container.h"
#include "session/dispatch.h"
#include "socketio/codec/socketio_dialect.h"
#include "socketio/codec/socketio_packed.h"
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

static bool send_packet(struct connection *connection, struct slice text)
{
    struct buffer packed = BUFFER_INIT;
    if (!connection->dialect->pack)
        return connection_send_text(connection, text, 0);
    connection->dialect->pack((char *)text.data, text.len, &packed);
    bool sent = !packed.failed && connection_send_binary(connection, buffer_slice(&packed));
    buffer_free(&packed);
    return sent;
}

void socketio_send(struct socketio_session *socketio, struct buffer *packet)
{
    struct connection *connection = socketio_connection(socketio);
    if (packet->failed || !send_packet(connection, buffer_slice(packet)))
        connection_fail(connection);
    buffer_free(packet);
}

/* ---- in ---- */

/* As the reference server: what is no packet, or comes when it makes no sense, closes the connection. */
static void break_off(struct socketio_session *socketio, const char *problem)
{
    metrics_count(socketio->session.context->metrics, METRIC_PROTOCOL_ERRORS);
    if (socketio_is_connected(socketio))
        session_error(&socketio->session, SLICE_NONE, ERROR_INVALID_MESSAGE, problem);
    connection_close(socketio_connection(socketio), WEBSOCKET_CLOSE_PROTOCOL_ERROR,
                     slice_of(problem));
}

static void refuse_namespace(struct socketio_session *socketio, struct slice name)
{
    struct buffer packet = BUFFER_INIT;
    socketio_write_refused(&packet, name, "Invalid namespace", SLICE_NONE);
    socketio_send(socketio, &packet);
}

static void receive_event(struct socketio_session *socketio, const struct socketio_packet *packet)
{
    struct session *session = &socketio->session;
    struct message message;
    const char *problem;
    metrics_count(session->context->metrics, METRIC_MESSAGES_IN);
    socketio->attachments_left = (uint8_t)packet->attachments;
    if (packet->empty) /* passed over, as the reference does */
        return;
    if (!socketio_decode(&session->context->scratch, packet, &message, &problem))
        dispatch_invalid(session, &message, problem);
    else
        session_receive(session, &message);
}

static void receive_connected(struct socketio_session *socketio,
                              const struct socketio_packet *packet)
{
    switch (packet->type) {
    case SOCKETIO_EVENT:
    case SOCKETIO_BINARY_EVENT:
        receive_event(socketio, packet);
        break;
    case SOCKETIO_ACK: /* nothing of ours asks for one */
    case SOCKETIO_BINARY_ACK:
        socketio->attachments_left = (uint8_t)packet->attachments;
        break;
    case SOCKETIO_DISCONNECT:
        socketio_leave(socketio);
        break;
    default:
        break_off(socketio, "already connected");
        break;
    }
}

static void receive_packet(struct socketio_session *socketio, const struct socketio_packet *packet)
{
    bool connects = packet->type == SOCKETIO_CONNECT;
    if (!socketio_is_main(packet) && connects)
        refuse_namespace(socketio, packet->name_space);
    else if (!socketio_is_main(packet))
        break_off(socketio, "not connected to this namespace");
    else if (socketio_is_connected(socketio))
        receive_connected(socketio, packet);
    else if (connects && socketio->waiting && !socketio_is_joining(socketio))
        socketio_join(socketio, packet->argument);
    else
        break_off(socketio, "not connected");
}

static void receive_attachment(struct socketio_session *socketio)
{
    if (socketio->attachments_left == 0)
        break_off(socketio, "a binary message that belongs to no packet");
    else
        socketio->attachments_left--;
}

static void receive_packed(struct socketio_session *socketio, const struct engineio_packet *engine)
{
    struct buffer text = BUFFER_INIT;
    struct socketio_packet packet;
    const char *problem = "text from a client whose packets are binary";
    if (engine->binary &&
        socketio_unpack((struct slice){engine->data, engine->len}, &text, &packet, &problem))
        receive_packet(socketio, &packet);
    else
        break_off(socketio, problem);
    buffer_free(&text);
}

/* Attachments follow the events of who is connected: a binary message that comes before is a packet, and its
 * client packs them all. */
static bool begins_to_pack(const struct socketio_session *socketio,
                           const struct engineio_packet *engine)
{
    return engine->binary && !socketio_is_connected(socketio) && !socketio_is_joining(socketio);
}

static void receive_message(struct socketio_session *socketio, const struct engineio_packet *engine)
{
    struct connection *connection = socketio_connection(socketio);
    struct socketio_packet packet;
    const char *problem = "a packet whose attachments have not come yet";
    if (begins_to_pack(socketio, engine))
        connection->dialect = &DIALECT_TABLE_SOCKETIO_PACKED;
    if (connection->dialect->pack)
        receive_packed(socketio, engine);
    else if (engine->binary)
        receive_attachment(socketio);
    else if (socketio->attachments_left ||
             !socketio_parse(engine->data, engine->len, &packet, &problem))
        break_off(socketio, problem);
    else
        receive_packet(socketio, &packet);
}

/* ---- the connection's owner ---- */

static void payload(struct connection *connection, char *data, size_t len, bool binary)
{
    struct socketio_session *socketio = socketio_session_of(connection);
    struct engineio_packet packet;
    switch (engine_receive(&socketio->engine, connection, data, len, binary, &packet)) {
    case ENGINE_MESSAGE:
        receive_message(socketio, &packet);
        break;
    case ENGINE_LEAVES:
        socketio->peer_leaves = true;
        connection_close(connection, WEBSOCKET_CLOSE_NORMAL, SLICE_NONE);
        break;
    case ENGINE_BROKEN:
        break_off(socketio, "not a packet of Engine.IO 4");
        break;
    case ENGINE_HANDLED:
        break;
    }
}

static int64_t tick(struct connection *connection)
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

static void left(struct connection *connection)
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

static void gone(struct connection *connection)
{
    struct socketio_session *socketio = socketio_session_of(connection);
    backlog_free(&socketio->backlog);
    free(socketio);
}

static bool ping(struct connection *connection)
{
    return engine_ping(&socketio_session_of(connection)->engine, connection);
}

static const struct connection_owner OWNER = {
    .on_payload = payload,
    .on_tick = tick,
    .on_left = left,
    .owes_replies = session_owes_replies,
    .sync_from = session_sync_from,
    .on_recovered = session_on_recovered,
    .send_ping = ping,
    .user_id = session_user_of,
    .on_gone = gone,
};

/* ---- opening ---- */

/* Without its connection, which is opened next. */
static struct socketio_session *make(struct socketio_context *context,
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

static void begin(struct socketio_session *socketio, bool upgrades)
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
    struct socketio_session *socketio = make(context, handshake);
    if (!socketio)
        return NULL;
    if (!connection_open(socketio_connection(socketio), &context->sessions->connections, &OWNER,
                         &DIALECT_TABLE_SOCKETIO, from, greeting)) {
        socketio_waiting_free(socketio);
        free(socketio);
        return NULL;
    }
    begin(socketio, false);
    return socketio;
}

struct socketio_session *socketio_session_open_on(struct socketio_context *context,
                                                  const struct connection_transport *transport,
                                                  const struct socketio_handshake *handshake)
{
    struct socketio_session *socketio = make(context, handshake);
    if (!socketio)
        return NULL;
    connection_open_on(socketio_connection(socketio), &context->sessions->connections, &OWNER,
                       &DIALECT_TABLE_SOCKETIO, transport);
    begin(socketio, true);
    return socketio;
}
