#include "socketio/polling.h"

#include "api/api_routes.h"
#include "api/handshake.h"
#include "base/container.h"
#include "socketio/engine_refusal.h"
#include "socketio/polling_post.h"
#include "socketio/probe.h"
#include "socketio/socketio_join.h"

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

static void polling_run_soon(struct polling *polling)
{
    loop_defer(polling->context->sessions->loop, &polling->task);
}

/* ---- answers to polls ---- */

static void reply_to_poll(struct exchange **exchange, struct slice payload)
{
    exchange_reply(exchange, 200, "text/plain; charset=UTF-8", POLLING_NO_STORE, payload);
}

void polling_release(struct polling *polling)
{
    if (polling->poll)
        reply_to_poll(&polling->poll, SLICE("6"));
}

/* Tells a client that polls that its Engine.IO session is over. Not every client reconnects after a close packet,
 * while all of them do after an error; in a drain they must come back. */
static void reply_with_polling_close(const struct polling *polling, struct exchange **exchange)
{
    if (polling->context->sessions->draining)
        engine_refuse(exchange, ENGINE_UNKNOWN_SID);
    else
        reply_to_poll(exchange, SLICE("1"));
}

/* Clients discard a payload that ends with the close packet. So the last messages go out without it, and it waits
 * for the next poll; the connection's own limit for ending bounds that. While draining there is no next poll. */
static void postpone_polling_close(struct polling *polling, struct buffer *payload)
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

/* Answers the waiting poll, if something is queued. */
static void flush_polling(struct polling *polling)
{
    struct connection *connection = socketio_connection(polling->session);
    struct buffer payload = BUFFER_INIT;
    if (!polling->poll || connection->outbound.count == 0)
        return;
    connection_take_payload(connection, &payload,
                            polling->context->sessions->config->socketio.max_payload_bytes);
    if (payload.failed) {
        exchange_error(&polling->poll, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        polling_end(polling); /* the messages taken are lost */
    } else {
        postpone_polling_close(polling, &payload);
        if (slice_is(buffer_slice(&payload), "1"))
            reply_with_polling_close(polling, &polling->poll);
        else
            reply_to_poll(&polling->poll, payload.len ? buffer_slice(&payload) : SLICE("6"));
    }
    buffer_free(&payload);
}

/* ---- life ---- */

/* Separates polling from its Engine.IO session, probe and POST; the Engine.IO session stays. */
static void detach_polling(struct polling *polling)
{
    polling->closing = true;
    table_remove(&polling->context->polling, &polling->node);
    if (polling->probe)
        probe_abandon(&polling->probe);
    polling_post_forget(polling);
}

static void run_polling(struct loop_task *task)
{
    struct polling *polling = CONTAINER_OF(task, struct polling, task);
    if (!polling->session) { /* a WebSocket carries it */
        free(polling);
        return;
    }
    struct connection *connection = socketio_connection(polling->session);
    flush_polling(polling);
    /* a client that neither answers pings nor polls cannot be sent the end */
    if (!polling->poll && !polling->close_owed && !connection_is_open(connection) &&
        socketio_fell_silent(polling->session))
        polling->closing = true;
    if (!polling->closing || polling->task.queued) /* flushing ended it: the task runs once more */
        return;
    if (polling->poll)
        reply_with_polling_close(polling, &polling->poll);
    detach_polling(polling);
    polling->session->polling = NULL;
    free(polling);
    connection_gone(connection);
}

void polling_end(struct polling *polling)
{
    polling->closing = true;
    polling_run_soon(polling);
}

static void note_upgraded_sid(struct upgraded_sids *upgraded, struct slice sid)
{
    memcpy(upgraded->sids[upgraded->next], sid.data, ENGINE_SID_LEN);
    upgraded->next = (upgraded->next + 1) % UPGRADED_SIDS_MAX;
}

bool polling_was_upgraded(const struct socketio_context *context, struct slice sid)
{
    for (size_t i = 0; i < UPGRADED_SIDS_MAX; i++)
        if (slice_equal((struct slice){context->upgraded.sids[i], ENGINE_SID_LEN}, sid))
            return true;
    return false;
}

void polling_upgraded(struct polling **polling)
{
    struct polling *freed = *polling;
    *polling = NULL;
    note_upgraded_sid(&freed->context->upgraded, engine_sid(&freed->session->engine));
    freed->probe = NULL;
    polling_release(freed);
    freed->session->polling = NULL;
    detach_polling(freed);
    freed->session = NULL;
    polling_run_soon(freed); /* frees it; its task may be queued already */
}

static void on_poll_client_gone(void *arg)
{
    struct polling *polling = arg;
    exchange_reply_empty(&polling->poll);
    polling_end(polling);
}

/* ---- connection_transport ---- */

static void on_polling_want_write(struct connection *connection)
{
    struct polling *polling = socketio_session_of(connection)->polling;
    if (polling && (polling->poll || socketio_fell_silent(polling->session)))
        polling_run_soon(polling);
}

static void on_polling_close(struct connection *connection)
{
    struct polling *polling = socketio_session_of(connection)->polling;
    if (polling)
        polling_end(polling);
}

/* A close frame becomes the close packet; other control frames have no meaning in polling. */
static void append_polling_frame(struct buffer *out, enum websocket_opcode opcode,
                                 struct slice payload)
{
    if (opcode == WEBSOCKET_OPCODE_TEXT)
        engineio_payload_append(out, payload);
    else if (opcode == WEBSOCKET_OPCODE_BINARY)
        engineio_payload_append_binary(out, payload);
    else if (opcode == WEBSOCKET_OPCODE_CLOSE)
        engineio_payload_append(out, SLICE("1"));
}

static void on_polling_resumed(struct connection *connection)
{
    struct polling *polling = socketio_session_of(connection)->polling;
    if (polling)
        polling_post_resume(polling);
}

const struct connection_transport POLLING_TRANSPORT = {.want_write = on_polling_want_write,
                                                       .append_frame = append_polling_frame,
                                                       .resume = on_polling_resumed,
                                                       .close = on_polling_close};

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
        !socketio_displace_waiting(context) && !api_evict_busiest(context->api)) {
        handshake_refuse(&exchange, 503, ERROR_SERVER_BUSY, "there are too many connections");
        return;
    }
    if (engine_make_sid(sid, sessions->random, &context->place))
        polling = calloc(1, sizeof(*polling));
    if (polling)
        polling->session = socketio_session_open_on(context, &named);
    if (!polling || !polling->session) {
        free(polling);
        handshake_refuse(&exchange, 503, ERROR_SERVER_BUSY, "there are too many sessions");
        return;
    }
    polling->context = context;
    polling->task.run = run_polling;
    polling->poll = exchange;
    polling->session->polling = polling;
    table_insert(&context->polling, &polling->node, named.sid);
    polling_run_soon(polling);
}

static void serve_poll(struct polling *polling, struct exchange *exchange)
{
    if (polling->poll) {
        engine_refuse(&exchange, ENGINE_BAD_REQUEST);
        polling_end(polling);
        return;
    }
    if (polling->close_owed) {
        reply_with_polling_close(polling, &exchange);
        polling_end(polling);
        return;
    }
    polling->poll = exchange;
    exchange_hold(exchange, on_poll_client_gone, polling);
    flush_polling(polling);
    if (polling->probe && probe_has_spoken(polling->probe))
        polling_release(polling);
}

static void serve_polling_request(struct exchange *exchange, struct polling *polling)
{
    if (exchange->head.upgrade_websocket)
        probe_open(exchange, engine_sid(&polling->session->engine));
    else if (polling->probe && probe_has_chosen(polling->probe))
        engine_refuse(&exchange, ENGINE_BAD_REQUEST);
    else if (exchange->head.method == HTTP1_POST)
        polling_post_serve(polling, exchange);
    else
        serve_poll(polling, exchange);
}

/* A request's token must be of the same user as the session. It may have expired: clients repeat the token of the
 * handshake in each request, while the session may have got a new one since. */
static void on_polling_token_verified(void *arg, enum jwt_result result,
                                      const struct identity *identity)
{
    struct exchange *exchange = arg;
    struct slice sid = http1_query_find(exchange->head.target.query, SLICE("sid"));
    struct polling *polling = polling_find(socketio_context_of(exchange), sid);
    if (!exchange->connection) /* the connection was closed meanwhile */
        exchange_reply_empty(&exchange);
    else if (!polling)
        engine_refuse(&exchange, ENGINE_UNKNOWN_SID);
    else if (!jwt_result_names_user(result) ||
             !slice_equal(identity_user(identity), socketio_user(polling->session)))
        engine_refuse(&exchange, ENGINE_FORBIDDEN);
    else
        serve_polling_request(exchange, polling);
}

void polling_request(struct exchange *exchange, struct slice sid)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct polling *polling = polling_find(socketio_context_of(exchange), sid);
    struct slice token = exchange_token(exchange);
    if (!polling)
        engine_refuse(&exchange, ENGINE_UNKNOWN_SID);
    else if (!token.data || !socketio_is_connected(polling->session))
        serve_polling_request(exchange, polling);
    else if (!session_context_verify(sessions, token, on_polling_token_verified, exchange))
        exchange_error(&exchange, 503, ERROR_SERVER_BUSY, "too many tokens wait to be verified");
}

size_t polling_body_bytes_max(const struct exchange *exchange)
{
    const struct socketio_context *context = socketio_context_of(exchange);
    struct slice sid = http1_query_find(exchange->head.target.query, SLICE("sid"));
    const struct polling *polling = polling_find(context, sid);
    return polling ? connection_frames(socketio_connection(polling->session))->message_bytes_max
                   : API_OPEN_BODY_BYTES_MAX;
}
