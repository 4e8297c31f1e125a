#include "socketio/polling.h"

#include "api/handshake.h"
#include "base/container.h"
#include "socketio/engine_refusal.h"
#include "socketio/polling_post.h"
#include "socketio/probe.h"

#include <stdlib.h>

bool polling_match(const struct table_node *node, struct slice key)
{
    const struct polling *polling = CONTAINER_OF(node, struct polling, node);
    return slice_equal(engine_sid(&polling->session->engine), key);
}

struct polling *polling_find(const struct socketio_context *context, struct slice sid)
{
    struct table_node *node = table_find(&context->polling, sid);
    struct polling *polling = node ? CONTAINER_OF(node, struct polling, node) : NULL;
    return polling && !polling->closing ? polling : NULL;
}

static struct connection *connection_of(const struct polling *polling)
{
    return socketio_connection(polling->session);
}

static void run_soon(struct polling *polling)
{
    loop_defer(polling->context->sessions->loop, &polling->task);
}

/* ---- out ---- */

static void reply(struct exchange **exchange, struct slice payload)
{
    exchange_reply(exchange, 200, "text/plain; charset=UTF-8", POLLING_NO_STORE, payload);
}

void polling_release(struct polling *polling)
{
    if (polling->poll)
        reply(&polling->poll, SLICE("6"));
}

/* A client throws away what comes in one payload with the close packet. So that last words are heard, the
 * close waits for the next poll; the connection's own time for an end bounds that. While draining there
 * will be none. */
static void put_close_off(struct polling *polling, struct buffer *payload)
{
    struct slice end = SLICE("\x1e"
                             "1");
    if (payload->len <= end.len ||
        !slice_equal(slice_after(buffer_slice(payload), payload->len - end.len), end))
        return;
    payload->len -= end.len;
    polling->close_owed = true;
    polling->closing = polling->context->sessions->draining;
}

/* Answers the poll that waits, if there is something to answer it with. */
static void flush(struct polling *polling)
{
    struct connection *connection = connection_of(polling);
    struct buffer payload = BUFFER_INIT;
    if (!polling->poll || connection->outbound.count == 0)
        return;
    connection_take_payload(connection, &payload,
                            polling->context->sessions->config->socketio.max_payload_bytes);
    if (payload.failed) {
        exchange_error(&polling->poll, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        polling_end(polling); /* what was taken is lost */
    } else {
        put_close_off(polling, &payload);
        reply(&polling->poll, payload.len ? buffer_slice(&payload) : SLICE("6"));
    }
    buffer_free(&payload);
}

/* ---- life ---- */

/* Takes it out of the set and lets go of it; the session stays. */
static void forget(struct polling *polling)
{
    polling->closing = true;
    table_remove(&polling->context->polling, &polling->node);
    if (polling->probe)
        probe_abandon(&polling->probe);
    polling_post_forget(polling);
}

/* Who neither answers pings nor polls is not there to be told of the end. */
static bool nobody_listens(const struct polling *polling)
{
    return !polling->poll && !polling->close_owed && !connection_is_open(connection_of(polling)) &&
           socketio_fell_silent(polling->session);
}

static void work(struct loop_task *task)
{
    struct polling *polling = CONTAINER_OF(task, struct polling, task);
    if (!polling->session) { /* a WebSocket has it by now */
        free(polling);
        return;
    }
    flush(polling);
    if (nobody_listens(polling))
        polling->closing = true;
    if (!polling->closing || polling->task.queued) /* what was taken was the last: once more */
        return;
    if (polling->poll)
        reply(&polling->poll, SLICE("1"));
    struct connection *connection = connection_of(polling);
    forget(polling);
    polling->session->polling = NULL;
    free(polling);
    connection_gone(connection);
}

void polling_end(struct polling *polling)
{
    polling->closing = true;
    run_soon(polling);
}

void polling_upgraded(struct polling **polling)
{
    struct polling *freed = *polling;
    *polling = NULL;
    freed->probe = NULL;
    polling_release(freed);
    freed->session->polling = NULL;
    forget(freed);
    freed->session = NULL;
    run_soon(freed); /* its task may be queued */
}

static void peer_of_poll_went(void *arg)
{
    struct polling *polling = arg;
    exchange_reply_empty(&polling->poll);
    polling_end(polling);
}

/* ---- the transport, as the connection sees it ---- */

static void want_write(struct connection *connection)
{
    struct polling *polling = socketio_session_of(connection)->polling;
    if (polling && (polling->poll || socketio_fell_silent(polling->session)))
        run_soon(polling);
}

static void over(struct connection *connection)
{
    struct polling *polling = socketio_session_of(connection)->polling;
    if (polling)
        polling_end(polling);
}

/* A close frame becomes the close packet; other control frames mean nothing here. */
static void append_frame(struct buffer *out, enum websocket_opcode opcode, struct slice payload)
{
    if (opcode == WEBSOCKET_OPCODE_TEXT)
        engineio_payload_append(out, payload);
    else if (opcode == WEBSOCKET_OPCODE_BINARY)
        engineio_payload_append_binary(out, payload);
    else if (opcode == WEBSOCKET_OPCODE_CLOSE)
        engineio_payload_append(out, SLICE("1"));
}

static const struct connection_transport TRANSPORT = {
    .want_write = want_write, .append_frame = append_frame, .close = over};

/* ---- requests ---- */

void polling_open(struct exchange *exchange, const struct socketio_handshake *handshake)
{
    struct socketio_context *context = socketio_context_of(exchange);
    struct session_context *sessions = context->sessions;
    struct polling *polling = NULL;
    char sid[ENGINE_SID_LEN];
    struct socketio_handshake named = *handshake;
    named.sid = (struct slice){sid, sizeof(sid)};
    if (sessions->connections.count >= context->api->connections_max &&
        !socketio_displace_waiting(context)) {
        handshake_refuse(&exchange, 503, ERROR_SERVER_BUSY, "there are too many connections");
        return;
    }
    if (engine_make_sid(sid, sessions->random, &context->place))
        polling = calloc(1, sizeof(*polling));
    if (polling)
        polling->session = socketio_session_open_on(context, &TRANSPORT, &named);
    if (!polling || !polling->session) {
        free(polling);
        handshake_refuse(&exchange, 503, ERROR_SERVER_BUSY,
                         "there is no room for one more session");
        return;
    }
    polling->context = context;
    polling->task.run = work;
    polling->poll = exchange;
    polling->session->polling = polling;
    table_insert(&context->polling, &polling->node, named.sid);
    run_soon(polling);
}

static void get(struct polling *polling, struct exchange *exchange)
{
    if (polling->poll) {
        engine_refuse(&exchange, ENGINE_BAD_REQUEST);
        polling_end(polling);
        return;
    }
    if (polling->close_owed) {
        reply(&exchange, SLICE("1"));
        polling_end(polling);
        return;
    }
    polling->poll = exchange;
    exchange_hold(exchange, peer_of_poll_went, polling);
    flush(polling);
    if (polling->probe && probe_has_spoken(polling->probe))
        polling_release(polling);
}

static void serve(struct exchange *exchange, struct polling *polling)
{
    if (exchange->head.upgrade_websocket)
        probe_open(exchange, engine_sid(&polling->session->engine));
    else if (polling->probe && probe_has_chosen(polling->probe))
        engine_refuse(&exchange, ENGINE_BAD_REQUEST);
    else if (exchange->head.method == HTTP1_POST)
        polling_post_serve(polling, exchange);
    else
        get(polling, exchange);
}

/* A token was sent along: it must be of the session's own user. A client sends what it had for the handshake with
 * each request: that may have expired, and the session been given a new one since. */
static void verified(void *arg, enum jwt_result result, const struct identity *identity)
{
    struct exchange *exchange = arg;
    struct slice sid = http1_query_find(exchange->head.target.query, SLICE("sid"));
    struct polling *polling = polling_find(socketio_context_of(exchange), sid);
    if (!exchange->session) /* its peer went while it waited */
        exchange_reply_empty(&exchange);
    else if (!polling)
        engine_refuse(&exchange, ENGINE_UNKNOWN_SID);
    else if (!jwt_result_names_user(result) ||
             !slice_equal(identity_user(identity), socketio_user(polling->session)))
        engine_refuse(&exchange, ENGINE_FORBIDDEN);
    else
        serve(exchange, polling);
}

void polling_request(struct exchange *exchange, struct slice sid)
{
    struct session_context *handlers = rest_of(exchange)->handlers;
    struct polling *polling = polling_find(socketio_context_of(exchange), sid);
    struct slice token = exchange_token(exchange);
    if (!polling)
        engine_refuse(&exchange, ENGINE_UNKNOWN_SID);
    else if (!token.data || !socketio_is_connected(polling->session))
        serve(exchange, polling);
    else if (!session_context_verify(handlers, token, verified, exchange))
        exchange_error(&exchange, 503, ERROR_SERVER_BUSY, "too many tokens wait to be verified");
}

size_t polling_body_bytes_max(const struct exchange *exchange)
{
    const struct socketio_context *context = socketio_context_of(exchange);
    struct slice sid = http1_query_find(exchange->head.target.query, SLICE("sid"));
    const struct polling *polling = polling_find(context, sid);
    return polling ? connection_frames(connection_of(polling))->message_bytes_max
                   : context->sessions->config->gateway.http.max_body_bytes;
}
