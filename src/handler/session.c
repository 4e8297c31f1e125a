#include "handler/session.h"

#include "base/container.h"
#include "base/log.h"
#include "handler/chat_commands.h"
#include "handler/dispatch.h"
#include "handler/missed.h"
#include "handler/presence_refresh.h"
#include "handler/request.h"
#include "handler/socketio_recovery.h"

#include <stdlib.h>

enum {
    LEASE_RENEWAL_PERCENT =
        75, /* of the window: what is left is for a store that is slow or away */
    LEASE_LATE_MS = 100,
    LEASE_RETRY_MS = 500,
    LEASES_RETRIED_PER_SECOND = 8000, /* so many renewals out of turn, at most, when all want one */
};

static struct session *session_of(struct connection *connection)
{
    return CONTAINER_OF(connection, struct session, connection);
}

static const struct clock *clock_of(const struct session *session)
{
    return &session->context->loop->clock;
}

struct lease session_lease(const struct session *session)
{
    const struct clock *clock = clock_of(session);
    return (struct lease){
        .conn_id = session->conn_id,
        .user_id = session_user(session),
        .device_id = {session->device, session->device_len},
        .gateway_id = session->context->gateway_id,
        .connected_at_ms = ulid_time_ms(&session->conn_id),
        .last_heartbeat_ms = clock->wall_ms - (clock->now_ms - session->connection.last_heard_ms),
        .idle = session->idle,
    };
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
    struct message answer = {
        .type = MESSAGE_ERROR,
        .id = command->id,
        .error = {
            .code = code, .text = text, .retry_after_ms = retry_after_ms, .grace_period_ms = -1}};
    if (command->type == MESSAGE_SEND_MESSAGE)
        answer.error.client_message_id = command->send.client_message_id;
    connection_send(&session->connection, &answer);
}

/* ---- activity and lease ---- */

static void set_idle(struct session *session, bool idle)
{
    if (session->idle == idle)
        return;
    session->idle = idle;
    presence_set_idle(session->context->presence, session_user(session), &session->conn_id, idle);
}

void session_set_activity(struct session *session, enum activity activity)
{
    if (activity == ACTIVITY_UNSAID)
        return;
    if (activity == ACTIVITY_ACTIVE) {
        session->active_at_ms = clock_of(session)->now_ms;
        connection_wake_at(&session->connection,
                           session->active_at_ms + session->context->config->presence.idle_ms);
    }
    set_idle(session, activity == ACTIVITY_IDLE);
}

static int64_t renewal_period_ms(const struct config *config)
{
    return config->presence.expiry_window_ms * LEASE_RENEWAL_PERCENT / 100;
}

/* With others, unless it is late: then what is left of the lease may not suffice. */
static void renew(struct session *session, int64_t now_ms)
{
    struct handler_context *context = session->context;
    struct lease lease = session_lease(session);
    bool late = now_ms - session->renew_at_ms > LEASE_LATE_MS;
    session->renew_at_ms = now_ms + renewal_period_ms(context->config);
    presence_renew(context->presence, lease.user_id, &lease.conn_id, lease.last_heartbeat_ms);
    if (late)
        presence_flush(context->presence);
    else
        context_flush_soon(context);
}

/* Answers when to come again. A connection that has been silent for the unhealthy time is renewed once more,
 * if it was heard after the last renewal, so that its lease lasts at least a window from its last sign of
 * life; then it keeps what is left. Its next sign of life brings us back at once. */
static int64_t renew_if_due(struct session *session, int64_t now_ms)
{
    int64_t renewed_at_ms = session->renew_at_ms - renewal_period_ms(session->context->config);
    if (!connection_healthy(&session->connection, now_ms)) {
        if (session->connection.last_heard_ms > renewed_at_ms)
            renew(session, now_ms);
        return INT64_MAX;
    }
    if (now_ms >= session->renew_at_ms)
        renew(session, now_ms);
    return session->renew_at_ms;
}

int64_t session_tick(struct connection *connection)
{
    struct session *session = session_of(connection);
    int64_t now_ms = clock_of(session)->now_ms;
    int64_t idle_at_ms = session->active_at_ms + session->context->config->presence.idle_ms;
    int64_t renew_at_ms = renew_if_due(session, now_ms);
    if (now_ms >= idle_at_ms)
        set_idle(session, true);
    return session->idle || renew_at_ms < idle_at_ms ? renew_at_ms : idle_at_ms;
}

/* ---- when the store lost something, or was away ---- */

/* Out of turn, at a time of its own: a store that has just come back is not stormed. */
static void renew_soon(struct session *session)
{
    struct handler_context *context = session->context;
    uint64_t spread_ms = context->session_count * 1000 / LEASES_RETRIED_PER_SECOND;
    session->renew_at_ms = context->loop->clock.now_ms + LEASE_RETRY_MS +
                           (int64_t)random_below(context->random, spread_ms + 1);
    connection_wake_at(&session->connection, session->renew_at_ms);
}

void session_renew_again(void *arg, struct slice user_id, const struct ulid *conn_id)
{
    struct session *session = session_find(arg, user_id, conn_id);
    if (session)
        renew_soon(session);
}

static void renew_route(struct table_node *node, void *arg)
{
    struct route *route = CONTAINER_OF(node, struct route, node);
    (void)arg;
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next)
        renew_soon(
            CONTAINER_OF(CONTAINER_OF(at, struct endpoint, of_route), struct session, endpoint));
}

void session_renew_all(struct handler_context *context)
{
    table_each(&context->router->routes, renew_route, NULL);
}

static void reopened(void *arg, bool registered)
{
    (void)arg;
    if (!registered)
        log_warn("lease_not_registered", "reason=state_store_unavailable");
}

void session_lease_lost(void *arg, struct slice user_id, const struct ulid *conn_id)
{
    struct handler_context *context = arg;
    struct session *session = session_find(context, user_id, conn_id);
    if (!session)
        return;
    struct lease lease = session_lease(session);
    lease.known_since_ms = lease.connected_at_ms;
    renew_soon(session); /* and so see whether it was taken */
    presence_open(context->presence, &lease, reopened, NULL);
    struct call_device device = session_device(session);
    call_plane_attach(context->calls, &device); /* what was forgotten may have been in a call */
}

int64_t session_known_since(void *arg, struct slice user_id)
{
    const struct handler_context *context = arg;
    const struct route *route = router_find(context->router, user_id);
    if (!route)
        return 0;
    const struct endpoint *first = CONTAINER_OF(route->endpoints.next, struct endpoint, of_route);
    return ulid_time_ms(&CONTAINER_OF(first, struct session, endpoint)->conn_id);
}

struct session *session_find(struct handler_context *context, struct slice user_id,
                             const struct ulid *conn_id)
{
    struct route *route = router_find(context->router, user_id);
    struct list *at = route ? route->endpoints.next : NULL;
    for (; at && at != &route->endpoints; at = at->next) {
        struct session *session =
            CONTAINER_OF(CONTAINER_OF(at, struct endpoint, of_route), struct session, endpoint);
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

/* ---- limits ---- */

/* The jitter comes from the connection's id, which is random enough. */
static int64_t lifetime_end_ms(const struct config_gateway *gateway, const struct ulid *conn_id,
                               int64_t now_ms)
{
    if (gateway->max_lifetime_ms == 0)
        return INT64_MAX;
    int64_t jitter_ms = gateway->max_lifetime_ms * gateway->max_lifetime_jitter_percent / 100;
    int64_t cut_ms = jitter_ms * conn_id->bytes[15] / UINT8_MAX;
    return now_ms + gateway->max_lifetime_ms - cut_ms;
}

void session_limit_token(struct session *session, int64_t expires_at_wall_ms)
{
    const struct clock *clock = clock_of(session);
    connection_unlimit(&session->connection, CLOSING_TOKEN_EXPIRED);
    connection_limit(&session->connection, CLOSING_MAX_LIFETIME, session->lifetime_ends_at_ms);
    connection_limit(&session->connection, CLOSING_TOKEN_EXPIRED,
                     clock->now_ms + expires_at_wall_ms - clock->wall_ms);
}

/* ---- messages ---- */

void session_deliver(struct endpoint *endpoint, struct broadcast *broadcast, uint64_t key)
{
    struct session *session = CONTAINER_OF(endpoint, struct session, endpoint);
    const struct message *message = broadcast->message;
    uint64_t event_id = message->type == MESSAGE_RELAY ? message->relay.event_id : 0;
    bool recovers = key == 0 && session->connection.dialect->id == DIALECT_SOCKETIO;
    if (recovers && socketio_recovery_has(session, event_id))
        return;
    struct blob *blob =
        broadcast_blob(broadcast, session->context->encoder, session->connection.dialect);
    bool queued = blob && connection_queue(&session->connection, blob_share(blob), key);
    if (!blob)
        connection_fail(&session->connection);
    if (recovers)
        socketio_recovery_note(session, queued ? blob : NULL, event_id);
    if (!queued && message->type == MESSAGE_RELAY && message->relay.sequence)
        missed_note(&session->missed, message->relay.chat_id, message->relay.sequence);
}

bool session_owes(const struct connection *connection)
{
    return CONTAINER_OF(connection, struct session, connection)->request_count > 0;
}

void session_recovered(struct connection *connection)
{
    presence_refresh(session_of(connection));
    chat_commands_refresh(session_of(connection));
}

size_t session_sync_from(const struct connection *connection, const struct sync_point **points)
{
    return missed_points(CONTAINER_OF(connection, struct session, connection)->missed, points);
}

void session_receive(struct session *session, const struct message *message)
{
    if (session->connection.closing)
        session_refuse(session, message, ERROR_SERVICE_UNAVAILABLE,
                       "this connection is about to close", 0);
    else
        dispatch(session, message);
}

static void payload(struct connection *connection, char *data, size_t len, bool binary)
{
    struct session *session = session_of(connection);
    struct message message = {.id = SLICE_NONE};
    const char *problem = "binary messages are not part of this protocol";
    metrics_count(session->context->metrics, METRIC_MESSAGES_IN);
    if (binary ||
        !connection->dialect->decode(&session->context->scratch, data, len, &message, &problem))
        dispatch_invalid(session, &message, problem);
    else
        session_receive(session, &message);
}

static void left(struct connection *connection)
{
    session_detach(session_of(connection));
}

static void gone(struct connection *connection)
{
    free(session_of(connection));
}

static const struct connection_owner OWNER = {
    .payload = payload,
    .tick = session_tick,
    .left = left,
    .owes = session_owes,
    .sync_from = session_sync_from,
    .recovered = session_recovered,
    .gone = gone,
};

/* ---- a user comes and goes ---- */

void session_init(struct session *session, struct handler_context *context)
{
    *session = (struct session){.context = context};
}

bool session_attach(struct session *session, const struct identity *identity,
                    const struct ulid *conn_id, struct slice device_id)
{
    struct handler_context *context = session->context;
    int64_t now_ms = context->loop->clock.now_ms;
    session->endpoint = (struct endpoint){0};
    if (!router_attach(context->router, &session->endpoint, identity_user(identity)))
        return false;
    session->conn_id = *conn_id;
    session->active_at_ms = now_ms;
    session->idle = false;
    session->lifetime_ends_at_ms = lifetime_end_ms(&context->config->gateway, conn_id, now_ms);
    session->renew_at_ms = now_ms + renewal_period_ms(context->config);
    session->device_len = (uint8_t)device_id.len;
    memcpy(session->device, device_id.data, device_id.len);
    return true;
}

static void greet(struct session *session)
{
    char conn_id[ULID_TEXT_LEN];
    ulid_write(conn_id, &session->conn_id);
    const struct config *config = session->context->config;
    connection_send(&session->connection,
                    &(struct message){
                        .type = MESSAGE_CONNECTION_ESTABLISHED,
                        .established = {
                            .conn_id = {conn_id, sizeof(conn_id)},
                            .server_id = session->context->gateway_id,
                            .user_id = session_user(session),
                            .heartbeat_interval_ms = config->gateway.timeouts.heartbeat_interval_ms,
                            .expiry_window_ms = config->presence.expiry_window_ms,
                            .server_time_ms = clock_of(session)->wall_ms,
                        }});
}

void session_begin(struct session *session, const struct identity *identity)
{
    struct handler_context *context = session->context;
    context->session_count++;
    metrics_add(context->metrics, METRIC_CONNECTIONS_ACTIVE, 1);
    metrics_count(context->metrics, METRIC_CONNECTIONS_OPENED);
    greet(session);
    session_limit_token(session, identity->expires_at_wall_ms);
    connection_wake_at(&session->connection, session->renew_at_ms);
    connection_wake_at(&session->connection,
                       session->active_at_ms + context->config->presence.idle_ms);
    struct call_device device = session_device(session);
    call_plane_attach(context->calls, &device);
}

void session_detach(struct session *session)
{
    struct handler_context *context = session->context;
    request_orphan_all(session);
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
    missed_free(&session->missed);
}

struct session *session_open(struct handler_context *context, struct stream *from,
                             struct slice greeting, const struct identity *identity,
                             const struct ulid *conn_id, struct slice device_id)
{
    struct session *session = malloc(sizeof(*session) + device_id.len);
    if (!session)
        return NULL;
    session_init(session, context);
    if (!session_attach(session, identity, conn_id, device_id)) {
        free(session);
        return NULL;
    }
    if (!connection_open(&session->connection, &context->connections, &OWNER, &DIALECT_TABLE_NATIVE,
                         from, greeting)) {
        router_detach(context->router, &session->endpoint);
        free(session);
        return NULL;
    }
    session_begin(session, identity);
    return session;
}
