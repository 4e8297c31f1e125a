#include "api/handshake.h"

#include "http/http_connection.h"
#include "session/admission.h"

#include <stdio.h>

#define SUBPROTOCOL "rollcall.v1"

void handshake_refuse(struct exchange **exchange, unsigned status, enum error_code code,
                      const char *text)
{
    metrics_count(api_context_of(*exchange)->sessions->metrics, METRIC_CONNECTIONS_REFUSED);
    exchange_error(exchange, status, code, text);
}

bool handshake_check(struct exchange **exchange, char accept[WEBSOCKET_ACCEPT_BYTES + 1])
{
    const struct http1_head *head = &(*exchange)->head;
    if (!head->upgrade_websocket ||
        !slice_is(http1_header(head, SLICE("Sec-WebSocket-Version")), "13")) {
        metrics_count(api_context_of(*exchange)->sessions->metrics, METRIC_CONNECTIONS_REFUSED);
        exchange_reply(exchange, 426, "application/json",
                       "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
                       SLICE("{\"error\":{\"code\":\"INVALID_MESSAGE\",\"message\":\"this is a "
                             "WebSocket, version 13\"}}"));
        return false;
    }
    /* a second key or version is refused even when it repeats the first (RFC 6455, 11.3.1 and 11.3.5) */
    if (head->version_minor == 0 || head->method != HTTP1_GET || (*exchange)->connection->in.len ||
        http1_header_count(head, SLICE("Sec-WebSocket-Version")) != 1 ||
        http1_header_count(head, SLICE("Sec-WebSocket-Key")) != 1 ||
        !websocket_accept_key(http1_header(head, SLICE("Sec-WebSocket-Key")), accept)) {
        handshake_refuse(exchange, 400, ERROR_INVALID_MESSAGE, "not a WebSocket handshake");
        return false;
    }
    return true;
}

bool handshake_check_origin(struct exchange **exchange)
{
    if (exchange_origin_allowed(*exchange))
        return true;
    metrics_count(api_context_of(*exchange)->sessions->metrics, METRIC_ORIGIN_REFUSED);
    handshake_refuse(exchange, 403, ERROR_FORBIDDEN, "this origin is not allowed");
    return false;
}

bool handshake_check_capacity(struct exchange **exchange)
{
    const struct api_context *context = api_context_of(*exchange);
    const char *refusal = admission_refusal(context->sessions);
    if (!refusal && context->shedding)
        refusal = API_SHEDDING_TEXT;
    if (refusal)
        handshake_refuse(exchange, 503, ERROR_SERVICE_UNAVAILABLE, refusal);
    return refusal == NULL;
}

bool handshake_read_device(const struct exchange *exchange, char text[EXCHANGE_PARAMETER_BYTES_MAX],
                           struct slice *device)
{
    struct slice name = SLICE("device_id");
    *device = SLICE_NONE;
    if (!http1_query_find(exchange->head.target.query, name).data)
        return true;
    return exchange_query(exchange, name, text, EXCHANGE_PARAMETER_BYTES_MAX, device) &&
           user_id_valid(*device);
}

struct slice handshake_greeting(char out[HANDSHAKE_GREETING_BYTES_MAX],
                                const struct exchange *exchange, const char *accept)
{
    bool named = http1_header_has_token(&exchange->head, SLICE("Sec-WebSocket-Protocol"),
                                        SLICE(SUBPROTOCOL));
    int len = snprintf(out, HANDSHAKE_GREETING_BYTES_MAX,
                       "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                       "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n%s\r\n",
                       accept, named ? "Sec-WebSocket-Protocol: " SUBPROTOCOL "\r\n" : "");
    return (struct slice){out, (size_t)len};
}

void handshake_end(struct exchange **exchange)
{
    if ((*exchange)->connection)
        (*exchange)->connection->exchange = NULL;
    (*exchange)->connection = NULL;
    exchange_reply_empty(exchange);
}
