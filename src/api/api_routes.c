#include "api/api_routes.h"

#include "api/api_access.h"
#include "api/api_budget.h"
#include "api/service/service_routes.h"

#include <stdio.h>

static const struct http_route ROUTES[] = {
    {HTTP1_GET, "/v1/ws", REST_OPEN, rest_websocket}, /* verifies the token itself */
    {HTTP1_GET, "/v1/echo", REST_OPEN, rest_echo},
    {HTTP1_GET, "/v1/presence/{user}", REST_USER, rest_presence_one, BUDGET_READS},
    {HTTP1_GET, "/v1/presence", REST_USER, rest_presence_many, BUDGET_READS},
    {HTTP1_GET, "/v1/me", REST_USER, rest_me_get},
    {HTTP1_PATCH, "/v1/me", REST_USER, rest_me_patch, BUDGET_SETTINGS},
    {HTTP1_GET, "/v1/calls", REST_USER, rest_calls_get, BUDGET_READS},
    {HTTP1_GET, "/v1/ice", REST_USER, rest_ice_get},
    {HTTP1_GET, "/v1/friends", REST_USER, rest_friends_get, BUDGET_READS},
    {HTTP1_GET, "/v1/contact-requests", REST_USER, rest_contact_requests_get, BUDGET_READS},
    {HTTP1_POST, "/v1/contact-requests", REST_USER, rest_contact_requests_post,
     BUDGET_CONTACT_REQUESTS},
    {HTTP1_DELETE, "/v1/contact-requests/{id}", REST_USER, rest_contact_request_delete},
    {HTTP1_POST, "/v1/contact-requests/{id}/accept", REST_USER, rest_contact_request_accept},
    {HTTP1_POST, "/v1/contact-requests/{id}/decline", REST_USER, rest_contact_request_decline},
    {HTTP1_DELETE, "/v1/contacts/{user}", REST_USER, rest_contact_delete, BUDGET_SETTINGS},
    {HTTP1_GET, "/v1/blocks", REST_USER, rest_blocks_get, BUDGET_READS},
    {HTTP1_PUT, "/v1/blocks/{user}", REST_USER, rest_block_put, BUDGET_SETTINGS},
    {HTTP1_DELETE, "/v1/blocks/{user}", REST_USER, rest_block_delete, BUDGET_SETTINGS},
    {HTTP1_POST, "/v1/users/{user}/deliver", REST_DELIVER, rest_deliver},
    {HTTP1_GET, "/v1/chats", REST_USER, rest_chats_get, BUDGET_READS},
    {HTTP1_POST, "/v1/chats", REST_USER, rest_chats_post, BUDGET_CHATS},
    {HTTP1_GET, "/v1/chats/{chat}", REST_USER, rest_chat_get, BUDGET_READS},
    {HTTP1_PATCH, "/v1/chats/{chat}", REST_USER, rest_chat_patch, BUDGET_SETTINGS},
    {HTTP1_POST, "/v1/chats/{chat}/read", REST_USER, rest_chat_read_post, BUDGET_SIGNALS},
    {HTTP1_PUT, "/v1/chats/{chat}/admins/{user}", REST_USER, rest_chat_admin_put, BUDGET_SETTINGS},
    {HTTP1_DELETE, "/v1/chats/{chat}/admins/{user}", REST_USER, rest_chat_admin_delete,
     BUDGET_SETTINGS},
    {HTTP1_PUT, "/v1/chats/{chat}/members/{user}", REST_USER, rest_chat_member_put, BUDGET_CHATS},
    {HTTP1_DELETE, "/v1/chats/{chat}/members/{user}", REST_USER, rest_chat_member_delete},
    {HTTP1_GET, "/v1/chats/{chat}/messages", REST_USER, rest_messages_get, BUDGET_READS},
    {HTTP1_POST, "/v1/chats/{chat}/messages", REST_USER, rest_message_post},
    {HTTP1_GET, "/healthz", REST_OPEN, rest_health},
    {HTTP1_POST, "/dev/token", REST_OPEN, rest_dev_token},
};

/* For operators. With ops.listen these have a listener of their own. */
static const struct http_route OPERATIONS[] = {
    {HTTP1_GET, "/admin/v1/gateways", REST_ADMIN, rest_admin_gateways},
    {HTTP1_GET, "/admin/v1/connections", REST_ADMIN, rest_admin_connections},
    {HTTP1_DELETE, "/admin/v1/connections/{conn_id}", REST_ADMIN, rest_admin_connection_delete},
    {HTTP1_POST, "/admin/v1/drain", REST_ADMIN, rest_admin_drain},
    {HTTP1_POST, "/admin/v1/users/{user}/revoke", REST_ADMIN, rest_admin_revoke},
    {HTTP1_GET, "/admin/v1/explain/{user}", REST_ADMIN, rest_admin_explain},
    {HTTP1_GET, "/readyz", REST_OPEN, rest_ready},
    {HTTP1_GET, "/metrics", REST_OPEN, rest_metrics},
};

/* No page may show these answers in a frame. */
#define OPERATIONS_HEADERS "Content-Security-Policy: frame-ancestors 'none'\r\n"

enum {
    ROUTE_COUNT = sizeof(ROUTES) / sizeof(ROUTES[0]),
    OPERATION_COUNT = sizeof(OPERATIONS) / sizeof(OPERATIONS[0]),
    PREFLIGHT_NAMES_BYTES_MAX = 512,
    PREFLIGHT_BYTES_MAX = PREFLIGHT_NAMES_BYTES_MAX + 256,
};

static const struct http_route *find_api_route(struct exchange *exchange, struct buffer *allowed)
{
    const struct http_route *route = http_route_find(ROUTES, ROUTE_COUNT, exchange, allowed);
    if (!route)
        route = http_route_find(SERVICE_ROUTES, SERVICE_ROUTE_COUNT, exchange, allowed);
    if (route || api_operations_are_hidden(exchange))
        return route;
    route = http_route_find(OPERATIONS, OPERATION_COUNT, exchange, allowed);
    if (route)
        exchange->route_headers = OPERATIONS_HEADERS;
    return route;
}

static const struct http_route *find_transport_route(struct exchange *exchange,
                                                     struct buffer *allowed)
{
    const struct api_transport *transport = api_context_of(exchange)->transport;
    return transport ? http_route_find(transport->routes, transport->route_count, exchange, allowed)
                     : NULL;
}

size_t api_routes_body_bytes_max(struct exchange *exchange)
{
    const struct config_gateway *gateway = &api_context_of(exchange)->sessions->config->gateway;
    const struct api_transport *transport = api_context_of(exchange)->transport;
    const struct http_route *route = exchange->route;
    if (transport && route >= transport->routes &&
        route < transport->routes + transport->route_count)
        return transport->body_bytes_max(exchange);
    if (!route || route->access == REST_OPEN)
        return API_OPEN_BODY_BYTES_MAX;
    bool takes_list = route->handle == rest_chats_post || route->access == REST_SERVICE;
    return takes_list && gateway->http.max_list_body_bytes > gateway->http.max_body_bytes
               ? gateway->http.max_list_body_bytes
               : gateway->http.max_body_bytes;
}

/* A page may send any headers; those without a meaning here are ignored. */
static void reply_preflight(struct exchange *exchange)
{
    struct slice names = http1_header(&exchange->head, SLICE("Access-Control-Request-Headers"));
    char headers[PREFLIGHT_BYTES_MAX];
    if (names.len == 0 || names.len > PREFLIGHT_NAMES_BYTES_MAX)
        names = SLICE("authorization, content-type");
    snprintf(headers, sizeof(headers),
             "Access-Control-Allow-Methods: GET, POST, PUT, PATCH, DELETE\r\n"
             "Access-Control-Allow-Headers: %.*s\r\n"
             "Access-Control-Max-Age: 600\r\n",
             SLICE_FORMAT(names));
    exchange_reply(&exchange, 204, "", headers, SLICE_NONE);
}

/* Answers a request without a route. */
static void answer_unrouted_request(struct exchange *exchange, const struct buffer *allowed)
{
    if (exchange->head.method == HTTP1_OPTIONS)
        reply_preflight(exchange);
    else if (allowed->failed)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
    else if (allowed->len)
        http_route_not_allowed(exchange, buffer_slice(allowed));
    else
        rest_asset(exchange);
}

enum http_head_verdict api_routes_check_head(struct exchange *exchange)
{
    const struct api_transport *transport = api_context_of(exchange)->transport;
    struct buffer allowed = BUFFER_INIT;
    enum http_head_verdict verdict = HTTP_READ_BODY;
    exchange->route = find_api_route(exchange, &allowed);
    if (!exchange->route)
        exchange->route = find_transport_route(exchange, &allowed);
    if (!exchange->route) {
        answer_unrouted_request(exchange, &allowed);
        verdict = HTTP_HEAD_ANSWERED;
    } else if (http1_header_count(&exchange->head, SLICE("Authorization")) > 1) { /* ambiguous */
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "more than one Authorization header");
        verdict = HTTP_HEAD_ANSWERED;
    } else if (exchange->route->access != REST_OPEN) {
        api_access_check(exchange);
        verdict = HTTP_HEAD_WAITS;
    } else if (transport && !transport->on_head(exchange)) {
        verdict = HTTP_HEAD_ANSWERED;
    }
    buffer_free(&allowed);
    return verdict;
}

void api_routes_dispatch(struct exchange *exchange)
{
    if (exchange->route->access == REST_OPEN)
        exchange->route->handle(exchange);
    else
        api_budget_serve(exchange);
}
