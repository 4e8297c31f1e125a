#include "session/session.h"

#include "base/container.h"
#include "session/chat_commands.h"
#include "session/dispatch.h"
#include "session/missed_messages.h"
#include "session/pending_reply.h"
#include "session/presence_refresh.h"
#include "session/session_token.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void session_confirm(struct session *session, struct slice id)
{
    connection_send(&session->connection, &(struct message){.type = MESSAGE_OK, .id = id});
}

void session_error(struct session *session, struct slice id, enum error_code code, const char *text)
{
    connection_send(
        &session->connection,
        &(struct message){
            .type = MESSAGE_ERROR,
            .id = id,
            .error = {.code = code, .text = text, .retry_after_ms = -1, .grace_period_ms = -1}});
}

void session_refuse(struct session *session, const struct message *command, enum error_code code,
                    const char *text, int64_t retry_after_ms)
{
    struct message error = {
        .type = MESSAGE_ERROR,
        .id = command->id,
        .error = {
            .code = code, .text = text, .retry_after_ms = retry_after_ms, .grace_period_ms = -1}};
    if (command->type == MESSAGE_SEND_MESSAGE)
        error.error.client_message_id = command->send.client_message_id;
    connection_send(&session->connection, &error);
}

void session_refuse_rate(struct session *session, const struct message *command, const char *text,
                         int64_t retry_after_ms)
{
    session_refuse(session, command, ERROR_RATE_LIMITED, text, retry_after_ms);
    connection_exceed(&session->connection);
}

/* ---- finding sessions ---- */

struct session *session_find(struct session_context *context, struct slice user_id,
                             const struct ulid *conn_id)
{
    struct route *route = router_find(context->router, user_id);
    struct list *at = route ? route->endpoints.next : NULL;
    for (; at && at != &route->endpoints; at = at->next) {
        struct session *session = session_on_route(at);
        if (ulid_equal(&session->conn_id, conn_id))
            return session;
    }
    return NULL;
}

bool session_is_connection(const struct endpoint *endpoint, const struct ulid *conn_id)
{
    return ulid_equal(&CONTAINER_OF(endpoint, struct session, endpoint)->conn_id, conn_id);
}

bool session_is_device(const struct endpoint *endpoint, struct slice device_id)
{
    const struct session *session = CONTAINER_OF(endpoint, struct session, endpoint);
    return slice_equal((struct slice){session->device, session->device_len}, device_id);
}

bool session_is_connected(void *arg, struct slice user_id, const struct ulid *conn_id)
{
    return session_find(arg, user_id, conn_id) != NULL;
}

struct call_device session_device(const struct session *session)
{
    return (struct call_device){
        session_user(session), {session->device, session->device_len}, session->conn_id};
}

/* ---- messages ---- */

void session_deliver(struct endpoint *endpoint, struct broadcast *broadcast, uint64_t key)
{
    struct session *session = CONTAINER_OF(endpoint, struct session, endpoint);
    const struct message *message = broadcast->message;
    uint64_t event_id = message->type == MESSAGE_RELAY ? message->relay.event_id : 0;
    const struct dialect *dialect = session->connection.dialect;
    bool recovers = key == 0 && dialect->keeps_events;
    if (recovers && session->context->hooks->has_event(session, event_id))
        return;
    struct blob *blob = broadcast_blob(broadcast, session->context->encoder, dialect);
    bool queued = blob && connection_queue(&session->connection, blob_share(blob), key);
    if (!blob)
        connection_fail(&session->connection);
    if (recovers) /* events are kept as text, also if they are sent packed */
        session->context->hooks->on_event(
            session, queued ? broadcast->blobs[dialect_text(dialect)->slot] : NULL, event_id);
    if (!queued && message->type == MESSAGE_RELAY && message->relay.sequence)
        missed_messages_note(&session->missed, message->relay.chat_id, message->relay.sequence);
}

bool session_owes_replies(const struct connection *connection)
{
    return CONTAINER_OF(connection, struct session, connection)->pending_reply_count > 0;
}

void session_on_caught_up(struct connection *connection)
{
    presence_refresh(session_of_connection(connection));
    chat_commands_refresh(session_of_connection(connection));
}

size_t session_sync_from(const struct connection *connection, const struct sync_point **points)
{
    return missed_messages_points(CONTAINER_OF(connection, struct session, connection)->missed,
                                  points);
}

struct slice session_user_of(const struct connection *connection)
{
    const struct session *session = CONTAINER_OF(connection, struct session, connection);
    return session->endpoint.route ? session_user(session) : SLICE_NONE;
}

void session_receive(struct session *session, const struct message *message)
{
    if (session->connection.closing)
        session_refuse(session, message, ERROR_SERVICE_UNAVAILABLE,
                       "this connection is about to close", 0);
    else
        dispatch(session, message);
}

static void on_session_payload(struct connection *connection, char *data, size_t len, bool binary)
{
    struct session *session = session_of_connection(connection);
    struct message message = {.id = SLICE_NONE};
    const char *problem = "binary messages are not part of this protocol";
    metrics_count(session->context->metrics, METRIC_MESSAGES_IN);
    if (binary ||
        !connection->dialect->decode(&session->context->scratch, data, len, &message, &problem))
        dispatch_invalid(session, &message, problem);
    else
        session_receive(session, &message);
}

static void on_session_left(struct connection *connection)
{
    session_detach(session_of_connection(connection));
}

static void on_session_gone(struct connection *connection)
{
    free(session_of_connection(connection));
}

static const struct connection_owner SESSION_OWNER = {
    .on_payload = on_session_payload,
    .on_tick = session_on_tick,
    .on_left = on_session_left,
    .owes_replies = session_owes_replies,
    .sync_from = session_sync_from,
    .on_caught_up = session_on_caught_up,
    .user_id = session_user_of,
    .on_gone = on_session_gone,
};

/* ---- life ---- */

void session_init(struct session *session, struct session_context *context)
{
    /* not the padding at the end, where the device id begins */
    memset(session, 0, offsetof(struct session, device));
    session->context = context;
}

bool session_attach(struct session *session, const struct identity *identity,
                    const struct ulid *conn_id, struct slice device_id)
{
    struct session_context *context = session->context;
    const struct config_gateway *gateway = &context->config->gateway;
    session->endpoint = (struct endpoint){0};
    if (!router_attach(context->router, &session->endpoint, identity_user(identity)))
        return false;
    session->conn_id = *conn_id;
    session->lifetime_ends_at_ms = INT64_MAX;
    if (gateway->max_lifetime_ms) {
        /* the last byte of the connection id is random enough for the jitter */
        int64_t jitter_ms = gateway->max_lifetime_ms * gateway->max_lifetime_jitter_percent / 100;
        int64_t cut_ms = jitter_ms * conn_id->bytes[15] / UINT8_MAX;
        session->lifetime_ends_at_ms =
            context->loop->clock.now_ms + gateway->max_lifetime_ms - cut_ms;
    }
    session_start_lease(session);
    session->device_len = (uint8_t)device_id.len;
    memcpy(session->device, device_id.data, device_id.len);
    return true;
}

void session_begin(struct session *session, const struct identity *identity,
                   struct slice display_name)
{
    struct session_context *context = session->context;
    const struct config *config = context->config;
    char conn_id[ULID_TEXT_LEN];
    context->session_count++;
    metrics_add(context->metrics, METRIC_CONNECTIONS_ACTIVE, 1);
    metrics_count(context->metrics, METRIC_CONNECTIONS_OPENED);
    ulid_write(conn_id, &session->conn_id);
    connection_send(&session->connection,
                    &(struct message){
                        .type = MESSAGE_CONNECTION_ESTABLISHED,
                        .established = {
                            .conn_id = {conn_id, sizeof(conn_id)},
                            .server_id = context->gateway_id,
                            .user_id = session_user(session),
                            .heartbeat_interval_ms = config->gateway.timeouts.heartbeat_interval_ms,
                            .expiry_window_ms = config->presence.expiry_window_ms,
                            .server_time_ms = context->loop->clock.wall_ms,
                            .display_name = display_name,
                        }});
    if (context->on_change)
        context->on_change(context->on_change_arg, session, true);
    session_take_token(session, identity);
    connection_wake_at(&session->connection, session->renew_at_ms);
    connection_wake_at(&session->connection, session->active_at_ms + config->presence.idle_ms);
    struct call_device device = session_device(session);
    call_plane_attach(context->calls, &device);
}

void session_detach(struct session *session)
{
    struct session_context *context = session->context;
    if (context->on_change)
        context->on_change(context->on_change_arg, session, false);
    pending_reply_orphan_all(session);
    chat_leave(context->chats, &session->endpoint);
    metrics_add(context->metrics, METRIC_SUBSCRIPTIONS,
                -(int64_t)session->endpoint.subscription_count);
    metrics_add(context->metrics, METRIC_CONNECTIONS_ACTIVE, -1);
    metrics_count(context->metrics, METRIC_CONNECTIONS_CLOSED);
    context->session_count--;
    char user[USER_ID_BYTES_MAX];
    struct slice user_id = session_user(session);
    memcpy(user, user_id.data, user_id.len);
    router_detach(context->router, &session->endpoint);
    presence_close(context->presence, (struct slice){user, user_id.len}, &session->conn_id);
    call_plane_detach(context->calls, (struct slice){user, user_id.len}, &session->conn_id);
    missed_messages_free(&session->missed);
}

struct session *session_open(struct session_context *context, struct stream *from,
                             struct slice greeting, const struct identity *identity,
                             const struct ulid *conn_id, struct slice device_id,
                             struct slice display_name)
{
    struct session *session = malloc(offsetof(struct session, device) + device_id.len);
    if (!session)
        return NULL;
    session_init(session, context);
    if (!session_attach(session, identity, conn_id, device_id)) {
        free(session);
        return NULL;
    }
    if (!connection_open(&session->connection, &context->connections, &SESSION_OWNER,
                         &DIALECT_TABLE_NATIVE, from, greeting)) {
        router_detach(context->router, &session->endpoint);
        free(session);
        return NULL;
    }
    session_begin(session, identity, display_name);
    return session;
}
