/*
 * GET /v1/ws and GET /v1/echo: from an HTTP request to a WebSocket.
 *
 *   handshake valid → origin allowed → somebody new can be taken → token good → lease registered → 101
 *
 * Each step has its status when it fails: 400/426, 403, 503, 401, 503. The lease comes before the 101,
 * since a connection that cannot be registered must not be accepted.
 */
#include "api/api_routes.h"
#include "api/handshake.h"
#include "http/http_session.h"
#include "log/log.h"
#include "session/echo.h"
#include "session/session.h"

#include <stdlib.h>

/* ---- /v1/ws ---- */

/* A verified user between the token and the lease. */
struct joining {
    struct exchange *exchange;
    struct ulid conn_id;
    size_t device_len;
    char device[DEVICE_ID_BYTES_MAX];
    char accept[WEBSOCKET_ACCEPT_BYTES + 1];
};

static bool read_device(struct joining *joining)
{
    struct slice device;
    struct slice name = SLICE("device_id");
    if (!http1_query_find(joining->exchange->head.target.query, name).data) {
        ulid_write(joining->device, &joining->conn_id);
        joining->device_len = ULID_TEXT_LEN;
        return true;
    }
    char text[EXCHANGE_PARAMETER_BYTES_MAX];
    if (!exchange_query(joining->exchange, name, text, sizeof(text), &device) ||
        !user_id_valid(device))
        return false;
    memcpy(joining->device, device.data, device.len);
    joining->device_len = device.len;
    return true;
}

static void registered(void *arg, bool taken)
{
    struct joining *joining = arg;
    struct exchange *exchange = joining->exchange;
    struct session_context *handlers = rest_of(exchange)->handlers;
    struct session *session = NULL;
    if (taken && exchange->session && !handlers->draining) { /* a drain has counted its heads */
        char text[HANDSHAKE_GREETING_BYTES_MAX];
        session =
            session_open(handlers, &exchange->session->stream,
                         handshake_greeting(text, exchange, joining->accept), &exchange->identity,
                         &joining->conn_id, (struct slice){joining->device, joining->device_len});
    }
    if (taken && !session)
        presence_close(handlers->presence, exchange_user(exchange), &joining->conn_id);
    if (session)
        handshake_end(&exchange);
    else
        handshake_refuse(&exchange, 503, ERROR_SERVICE_UNAVAILABLE,
                         "the connection cannot be registered");
    free(joining);
}

static void verified(void *arg, enum jwt_result result, const struct identity *identity)
{
    struct joining *joining = arg;
    struct session_context *handlers = rest_of(joining->exchange)->handlers;
    if (result != JWT_OK) {
        metrics_count(handlers->metrics, METRIC_AUTH_FAILURES);
        log_info("token_refused", "reason=%s", jwt_result_label(result));
        handshake_refuse(&joining->exchange, 401, ERROR_UNAUTHENTICATED, jwt_result_text(result));
        free(joining);
        return;
    }
    if (!joining->exchange->session || !handshake_check_room(&joining->exchange)) {
        if (joining->exchange) /* its peer went while it waited */
            exchange_reply_empty(&joining->exchange);
        free(joining);
        return;
    }
    joining->exchange->identity = *identity;
    int64_t wall_ms = handlers->loop->clock.wall_ms;
    struct lease lease = {
        .conn_id = joining->conn_id,
        .user_id = exchange_user(joining->exchange),
        .device_id = {joining->device, joining->device_len},
        .gateway_id = handlers->gateway_id,
        .connected_at_ms = ulid_time_ms(&joining->conn_id),
        .last_heartbeat_ms = wall_ms,
    };
    presence_open(handlers->presence, &lease, registered, joining);
}

void rest_websocket(struct exchange *exchange)
{
    struct session_context *handlers = rest_of(exchange)->handlers;
    struct joining *joining = calloc(1, sizeof(*joining));
    if (!joining) {
        handshake_refuse(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    joining->exchange = exchange;
    joining->conn_id = ulid_make(handlers->loop->clock.wall_ms, handlers->random);
    if (!handshake_check(&exchange, joining->accept) || !handshake_check_origin(&exchange) ||
        !handshake_check_room(&exchange))
        goto answered;
    struct slice token = exchange_token(exchange);
    if (!token.data)
        handshake_refuse(&exchange, 401, ERROR_UNAUTHENTICATED, "a bearer token is needed");
    else if (!read_device(joining))
        handshake_refuse(&exchange, 400, ERROR_INVALID_MESSAGE,
                         "device_id must be 1 to 128 bytes without control characters");
    else if (!session_context_verify(handlers, token, verified, joining))
        handshake_refuse(&exchange, 503, ERROR_SERVER_BUSY, "too many tokens wait to be verified");
    else
        return;
answered:
    free(joining);
}

/* ---- /v1/echo ---- */

void rest_echo(struct exchange *exchange)
{
    char accept[WEBSOCKET_ACCEPT_BYTES + 1];
    char text[HANDSHAKE_GREETING_BYTES_MAX];
    if (!rest_of(exchange)->handlers->config->debug.echo) {
        exchange_error(&exchange, 404, ERROR_NOT_FOUND, "there is nothing at this path");
        return;
    }
    if (!handshake_check(&exchange, accept))
        return;
    if (echo_open(&rest_of(exchange)->handlers->connections, &rest_of(exchange)->echoes,
                  &exchange->session->stream, handshake_greeting(text, exchange, accept)))
        handshake_end(&exchange);
    else
        handshake_refuse(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
}
