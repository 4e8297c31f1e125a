/*
 * /socket.io/: checks Engine.IO requests in the order of the reference server and passes them on.
 *
 *             without sid, a handshake      with sid
 *   polling   polling_open()                polling_request()
 *   websocket open_socketio_websocket()     polling_request(), which probes
 */
#include "socketio/socketio_resource.h"

#include "api/api_routes.h"
#include "api/handshake.h"
#include "http/http_connection.h"
#include "socketio/engine_refusal.h"
#include "socketio/polling.h"
#include "socketio/polling_post.h"
#include "socketio/probe.h"
#include "socketio/socketio_session.h"

static struct slice socketio_query(const struct exchange *exchange, struct slice name)
{
    return http1_query_find(exchange->head.target.query, name);
}

static bool check_socketio_origin(struct exchange **exchange)
{
    if (exchange_origin_allowed(*exchange))
        return true;
    struct metrics *metrics = api_context_of(*exchange)->sessions->metrics;
    metrics_count(metrics, METRIC_ORIGIN_REFUSED);
    metrics_count(metrics, METRIC_CONNECTIONS_REFUSED);
    engine_refuse_with_text(exchange, ENGINE_FORBIDDEN, "this origin is not allowed");
    return false;
}

static void open_socketio_websocket(struct exchange *exchange,
                                    const struct socketio_handshake *handshake)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct socketio_handshake named = *handshake;
    char accept[WEBSOCKET_ACCEPT_BYTES + 1];
    char greeting[HANDSHAKE_GREETING_BYTES_MAX];
    char sid[ENGINE_SID_LEN];
    if (!handshake_check(&exchange, accept))
        return;
    named.sid = (struct slice){sid, sizeof(sid)};
    if (engine_make_sid(sid, sessions->random, &socketio_context_of(exchange)->place) &&
        socketio_session_open(socketio_context_of(exchange), &exchange->connection->stream,
                              handshake_greeting(greeting, exchange, accept), &named))
        handshake_end(&exchange);
    else
        handshake_refuse(&exchange, 503, ERROR_SERVER_BUSY, "there are too many sessions");
}

/* The handshake's token and device are used when CONNECT names none. */
static void open_socketio_session(struct exchange *exchange, bool by_websocket)
{
    char device[EXCHANGE_PARAMETER_BYTES_MAX];
    struct socketio_handshake handshake = {
        .sid = SLICE_NONE, .token = exchange_token(exchange), .device = SLICE_NONE};
    if (!check_socketio_origin(&exchange) || !handshake_check_capacity(&exchange))
        return;
    if (!handshake_read_device(exchange, device, &handshake.device))
        engine_refuse_with_text(&exchange, ENGINE_BAD_REQUEST,
                                "device_id must be 1 to 128 bytes without control characters");
    else if (by_websocket)
        open_socketio_websocket(exchange, &handshake);
    else
        polling_open(exchange, &handshake);
}

/* Whether a request has what every request of an Engine.IO session needs. */
static bool is_engine_session_request(const struct exchange *exchange, bool by_websocket)
{
    enum http1_method method = exchange->head.method;
    return (method == HTTP1_GET || method == HTTP1_POST) &&
           by_websocket == exchange->head.upgrade_websocket &&
           slice_is(socketio_query(exchange, SLICE("EIO")), ENGINEIO_PROTOCOL);
}

static void serve_socketio_request(struct exchange *exchange)
{
    struct slice transport = socketio_query(exchange, SLICE("transport"));
    struct slice sid = socketio_query(exchange, SLICE("sid"));
    bool by_websocket = slice_is(transport, "websocket");
    if (!by_websocket && !slice_is(transport, "polling")) {
        engine_refuse(&exchange, ENGINE_UNKNOWN_TRANSPORT);
    } else if (sid.len) {
        bool is_known = polling_find(socketio_context_of(exchange), sid);
        if (!is_known && by_websocket && exchange->head.upgrade_websocket &&
            polling_was_upgraded(socketio_context_of(exchange), sid))
            probe_open_surplus(exchange);
        else if (!is_known)
            engine_refuse(&exchange, ENGINE_UNKNOWN_SID);
        else if (!is_engine_session_request(exchange, by_websocket))
            engine_refuse(&exchange, ENGINE_BAD_REQUEST);
        else if (check_socketio_origin(&exchange))
            polling_request(exchange, sid);
    } else if (exchange->head.method != HTTP1_GET) {
        engine_refuse(&exchange, ENGINE_BAD_HANDSHAKE_METHOD);
    } else if (by_websocket != exchange->head.upgrade_websocket) {
        engine_refuse(&exchange, ENGINE_BAD_REQUEST);
    } else if (!slice_is(socketio_query(exchange, SLICE("EIO")), ENGINEIO_PROTOCOL)) {
        engine_refuse(&exchange, ENGINE_UNSUPPORTED_VERSION);
    } else {
        open_socketio_session(exchange, by_websocket);
    }
}

/* Methods other than GET and POST are routed too: Engine.IO refuses them with an error of its own. */
const struct http_route SOCKETIO_ROUTES[SOCKETIO_ROUTE_COUNT] = {
    {HTTP1_GET, "/socket.io/", REST_OPEN, serve_socketio_request},
    {HTTP1_POST, "/socket.io/", REST_OPEN, serve_socketio_request},
    {HTTP1_PUT, "/socket.io/", REST_OPEN, serve_socketio_request},
    {HTTP1_PATCH, "/socket.io/", REST_OPEN, serve_socketio_request},
    {HTTP1_DELETE, "/socket.io/", REST_OPEN, serve_socketio_request},
};

bool socketio_on_head(struct exchange *exchange)
{
    if (exchange->head.method != HTTP1_POST ||
        !slice_is(exchange->head.target.path, "/socket.io/") ||
        !slice_is(socketio_query(exchange, SLICE("transport")), "polling") ||
        !is_engine_session_request(exchange, false) || !exchange_origin_allowed(exchange))
        return true;
    struct slice sid = socketio_query(exchange, SLICE("sid"));
    struct polling *polling = polling_find(socketio_context_of(exchange), sid);
    if (!polling && sid.len) /* now, before its body is read */
        engine_refuse(&exchange, ENGINE_UNKNOWN_SID);
    return polling ? polling_post_begin(polling, exchange) : sid.len == 0;
}
