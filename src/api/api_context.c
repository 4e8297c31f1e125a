#include "api/api_context.h"

#include "api/api_routes.h"
#include "http/http_connection.h"
#include "session/session.h"

#include <stdio.h>

static bool api_make_space(struct http_listener *listener)
{
    struct api_context *context = listener->arg;
    size_t count = listener->connection_count + context->sessions->connections.count;
    if (listener == &context->operations)
        return listener->connection_count < API_OPERATIONS_CONNECTIONS_MAX ||
               http_listener_displace(listener);
    if (context->shedding)
        return false;
    return count < context->connections_max || http_listener_displace(listener) ||
           (context->transport && context->transport->displace(context->transport)) ||
           (count < context->connections_max + API_OVERSHOOT_MAX && api_evict_busiest(context));
}

struct busiest_user {
    struct route *route;
    size_t connections;
};

static void compare_route_connections(struct table_node *node, void *arg)
{
    struct busiest_user *busiest = arg;
    struct route *route = CONTAINER_OF(node, struct route, node);
    size_t connections = 0;
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next)
        connections++;
    if (connections > busiest->connections)
        *busiest = (struct busiest_user){route, connections};
}

bool api_evict_busiest(struct api_context *context)
{
    struct session_context *sessions = context->sessions;
    int64_t now_ms = sessions->loop->clock.now_ms;
    struct busiest_user busiest = {NULL, 1};
    if (sessions->router->users_multi_device == 0 ||
        now_ms - context->evicted_at_ms < API_EVICTION_PERIOD_MS)
        return false;
    context->evicted_at_ms = now_ms;
    table_each(&sessions->router->routes, compare_route_connections, &busiest);
    if (!busiest.route)
        return false;
    struct session *silent = session_on_route(busiest.route->endpoints.next);
    for (struct list *at = busiest.route->endpoints.next; at != &busiest.route->endpoints;
         at = at->next)
        if (session_on_route(at)->connection.last_heard_ms < silent->connection.last_heard_ms)
            silent = session_on_route(at);
    connection_end(&silent->connection, CLOSING_TOO_MANY_CONNECTIONS, -1);
    return true;
}

static bool api_give_away(struct http_connection *connection)
{
    const struct api_transport *transport = api_context_of(connection->exchange)->transport;
    return transport && transport->give_away(connection);
}

const struct http_listener_owner api_listener_owner = {
    .make_space = api_make_space,
    .on_head = api_routes_check_head,
    .body_bytes_max = api_routes_body_bytes_max,
    .answer = api_routes_dispatch,
    .give_away = api_give_away,
};

void api_ledger_error(struct exchange **exchange, enum ledger_status status)
{
    switch (status) {
    case LEDGER_NOT_FOUND:
        exchange_error(exchange, 404, ERROR_NOT_FOUND, "there is no such object");
        break;
    case LEDGER_FORBIDDEN:
        exchange_error(exchange, 403, ERROR_FORBIDDEN, "you may not do this");
        break;
    case LEDGER_CONFLICT:
        exchange_error(exchange, 409, ERROR_INVALID_MESSAGE, "this id is in use");
        break;
    case LEDGER_INVALID:
    case LEDGER_LIMIT:
        exchange_error(exchange, 400, ERROR_INVALID_MESSAGE, ledger_status_name(status));
        break;
    default:
        exchange_error(exchange, 503, ERROR_SERVICE_UNAVAILABLE, "the ledger does not answer");
        break;
    }
}

static unsigned api_error_status(enum error_code code)
{
    switch (code) {
    case ERROR_MESSAGE_TOO_LARGE:
        return 413;
    case ERROR_FORBIDDEN:
        return 403;
    case ERROR_NOT_FOUND:
        return 404;
    case ERROR_CHAT_HALTED:
        return 409;
    case ERROR_RATE_LIMITED:
        return 429;
    case ERROR_SERVER_BUSY:
    case ERROR_SERVICE_UNAVAILABLE:
        return 503;
    default:
        return 400;
    }
}

void api_error(struct exchange **exchange, const struct message_error *error)
{
    char headers[64] = "";
    struct buffer json = BUFFER_INIT;
    struct message message = {.type = MESSAGE_ERROR, .error = *error};
    json_write_object(&json);
    json_write_key(&json, SLICE("error"));
    json_write_object(&json);
    fields_encode(&json, &message);
    json_write_object_end(&json);
    json_write_object_end(&json);
    if (error->retry_after_ms >= 0)
        snprintf(headers, sizeof(headers), "Retry-After: %lld\r\n",
                 (long long)(error->retry_after_ms + 999) / 1000);
    exchange_reply(exchange, api_error_status(error->code), "application/json", headers,
                   buffer_slice(&json));
    buffer_free(&json);
}

bool api_read_json(struct exchange **exchange)
{
    struct json json;
    const char *problem;
    struct buffer *body = &(*exchange)->body;
    json_init(&json, body->data, body->len);
    if (body->len && fields_scan(&api_context_of(*exchange)->sessions->scratch, &json, &problem) &&
        json_done(&json))
        return true;
    exchange_error(exchange, 400, ERROR_INVALID_MESSAGE, "the body must be one JSON object");
    return false;
}
