/*
 * GET /v1/ws and GET /v1/echo: from an HTTP request to a WebSocket.
 *
 *   handshake valid → origin allowed → sessions are taken → admitted (session/admission.h) → 101
 *
 * Each step has its status when it fails: 400/426, 403, 503; 401, 403 or 503.
 */
#include "api/api_routes.h"
#include "api/handshake.h"
#include "base/container.h"
#include "http/http_connection.h"
#include "session/admission.h"
#include "session/echo.h"
#include "session/session.h"

#include <stdlib.h>

/* ---- /v1/ws ---- */

/* A handshake that waits for its admission. */
struct websocket_join {
    struct admission admission;
    struct exchange *exchange;
    char accept[WEBSOCKET_ACCEPT_BYTES + 1];
};

static struct websocket_join *websocket_join_of(const struct admission *admission)
{
    return CONTAINER_OF(admission, struct websocket_join, admission);
}

static bool websocket_is_present(const struct admission *admission)
{
    return websocket_join_of(admission)->exchange->connection != NULL;
}

static const char *websocket_refusal(const struct admission *admission)
{
    return api_context_of(websocket_join_of(admission)->exchange)->shedding ? API_SHEDDING_TEXT
                                                                            : NULL;
}

static bool websocket_open_session(struct admission *admission)
{
    const struct websocket_join *join = websocket_join_of(admission);
    char greeting[HANDSHAKE_GREETING_BYTES_MAX];
    return session_open(admission->context, &join->exchange->connection->stream,
                        handshake_greeting(greeting, join->exchange, join->accept),
                        &admission->identity, &admission->conn_id, admission_device(admission),
                        admission_display_name(admission));
}

static void websocket_on_admission_end(struct admission *admission, enum admission_result result,
                                       const char *text)
{
    struct websocket_join *join = websocket_join_of(admission);
    struct exchange *exchange = join->exchange;
    if (result == ADMISSION_ADMITTED)
        handshake_end(&exchange);
    else if (result == ADMISSION_CLIENT_GONE)
        exchange_reply_empty(&exchange);
    else if (result == ADMISSION_TOKEN_REFUSED)
        handshake_refuse(&exchange, 401, ERROR_UNAUTHENTICATED, text);
    else if (result == ADMISSION_REFUSED)
        handshake_refuse(&exchange, 403, ERROR_FORBIDDEN, text);
    else
        handshake_refuse(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, text);
    free(join);
}

static const struct admission_hooks WEBSOCKET_ADMISSION = {
    .is_present = websocket_is_present,
    .refusal = websocket_refusal,
    .open_session = websocket_open_session,
    .on_end = websocket_on_admission_end,
};

void rest_websocket(struct exchange *exchange)
{
    char text[EXCHANGE_PARAMETER_BYTES_MAX];
    struct slice device;
    struct websocket_join *join = calloc(1, sizeof(*join));
    if (!join) {
        handshake_refuse(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    join->exchange = exchange;
    if (!handshake_check(&exchange, join->accept) || !handshake_check_origin(&exchange) ||
        !handshake_check_capacity(&exchange))
        goto answered;
    struct slice token = exchange_token(exchange);
    if (!token.data)
        handshake_refuse(&exchange, 401, ERROR_UNAUTHENTICATED, "a bearer token is needed");
    else if (!handshake_read_device(exchange, text, &device))
        handshake_refuse(&exchange, 400, ERROR_INVALID_MESSAGE,
                         "device_id must be 1 to 128 bytes without control characters");
    else if (!admission_begin(&join->admission, api_context_of(exchange)->sessions,
                              &WEBSOCKET_ADMISSION, token, device))
        handshake_refuse(&exchange, 503, ERROR_SERVER_BUSY, "too many tokens wait to be verified");
    else
        return;
answered:
    free(join);
}

/* ---- /v1/echo ---- */

void rest_echo(struct exchange *exchange)
{
    char accept[WEBSOCKET_ACCEPT_BYTES + 1];
    char text[HANDSHAKE_GREETING_BYTES_MAX];
    if (!api_context_of(exchange)->sessions->config->debug.echo) {
        exchange_error(&exchange, 404, ERROR_NOT_FOUND, "there is nothing at this path");
        return;
    }
    if (!handshake_check(&exchange, accept))
        return;
    if (echo_open(&api_context_of(exchange)->sessions->connections,
                  &api_context_of(exchange)->echoes, &exchange->connection->stream,
                  handshake_greeting(text, exchange, accept)))
        handshake_end(&exchange);
    else
        handshake_refuse(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
}
