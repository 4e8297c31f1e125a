#include "socketio/probe.h"

#include "api/handshake.h"
#include "base/container.h"
#include "http/http_connection.h"
#include "socketio/codec/socketio_dialect.h"
#include "socketio/engine_refusal.h"
#include "socketio/polling.h"

#include <stdlib.h>

/* A socket cannot be taken over while an answer is still being sent on it. */
enum { PROBE_RETRY_MS = 20, PROBE_CLOSE_CODE = 1000 };

enum probe_state { PROBE_SILENT, PROBE_SPOKEN, PROBE_CHOSEN };

struct probe {
    struct connection connection;
    struct loop_task task;
    struct polling *polling; /* NULL: abandoned, or taken over */
    int64_t until_ms;
    enum probe_state state;
    bool is_gone;
};

static struct probe *probe_of(struct connection *connection)
{
    return CONTAINER_OF(connection, struct probe, connection);
}

bool probe_has_spoken(const struct probe *probe)
{
    return probe->state != PROBE_SILENT;
}

bool probe_has_chosen(const struct probe *probe)
{
    return probe->state == PROBE_CHOSEN;
}

void probe_abandon(struct probe **probe)
{
    (*probe)->polling = NULL;
    connection_close(&(*probe)->connection, PROBE_CLOSE_CODE, SLICE_NONE);
    *probe = NULL;
}

static void run_probe(struct loop_task *task)
{
    struct probe *probe = CONTAINER_OF(task, struct probe, task);
    struct polling *polling = probe->polling;
    if (probe->is_gone) {
        free(probe);
        return;
    }
    if (!polling || !connection_is_open(&probe->connection) || polling->closing)
        return;
    if (!connection_take_over(socketio_connection(polling->session), &probe->connection)) {
        connection_wake_at(&probe->connection,
                           probe->connection.context->loop->clock.now_ms + PROBE_RETRY_MS);
        return;
    }
    probe->polling = NULL;
    polling_upgraded(&polling);
}

/* ---- connection_owner ---- */

static void on_probe_payload(struct connection *connection, char *data, size_t len, bool binary)
{
    struct probe *probe = probe_of(connection);
    struct slice packet = {data, binary ? 0 : len};
    if (!probe->polling)
        return;
    if (probe->state == PROBE_CHOSEN) {
        connection_receive(socketio_connection(probe->polling->session), data, len, binary);
    } else if (slice_is(packet, "2probe")) {
        probe->state = PROBE_SPOKEN;
        if (!connection_send_frame(connection, WEBSOCKET_OPCODE_TEXT, SLICE("3probe"), 0))
            connection_fail(connection);
        polling_release(probe->polling);
    } else if (slice_is(packet, "5")) {
        /* from now on the probe receives for the Engine.IO session, which is about to take it over */
        const struct connection *session = socketio_connection(probe->polling->session);
        probe->state = PROBE_CHOSEN;
        connection->silent = session->silent;
        connection->dialect = session->dialect;
        loop_defer(connection->context->loop, &probe->task);
    } else {
        connection_close(connection, PROBE_CLOSE_CODE, SLICE_NONE);
    }
}

static int64_t on_probe_tick(struct connection *connection)
{
    struct probe *probe = probe_of(connection);
    int64_t now_ms = connection->context->loop->clock.now_ms;
    if (now_ms >= probe->until_ms)
        connection_close(connection, PROBE_CLOSE_CODE, SLICE_NONE);
    else if (probe->state == PROBE_CHOSEN)
        loop_defer(connection->context->loop, &probe->task);
    return probe->until_ms;
}

/* A client that has upgraded does not poll any more, so its Engine.IO session ends with the WebSocket. */
static void on_probe_left(struct connection *connection)
{
    struct probe *probe = probe_of(connection);
    struct polling *polling = probe->polling;
    if (!polling)
        return;
    probe->polling = NULL;
    polling->probe = NULL;
    if (probe->state == PROBE_CHOSEN)
        polling_end(polling);
}

static bool send_no_probe_ping(struct connection *connection)
{
    (void)connection; /* the Engine.IO session pings its client */
    return true;
}

static void on_probe_gone(struct connection *connection)
{
    struct probe *probe = probe_of(connection);
    probe->is_gone = true;
    /* a queued task frees it; otherwise there may be no later turn, at the end of a drain */
    if (!probe->task.queued)
        free(probe);
}

static const struct connection_owner PROBE_OWNER = {
    .on_payload = on_probe_payload,
    .on_tick = on_probe_tick,
    .on_left = on_probe_left,
    .send_ping = send_no_probe_ping,
    .on_gone = on_probe_gone,
};

static struct probe *make_probe(struct exchange *exchange, struct polling *polling,
                                const char *accept)
{
    struct connection_context *context = &api_context_of(exchange)->sessions->connections;
    char greeting[HANDSHAKE_GREETING_BYTES_MAX];
    struct probe *probe = calloc(1, sizeof(*probe));
    if (!probe)
        return NULL;
    probe->task.run = run_probe;
    probe->until_ms = context->loop->clock.now_ms + PROBE_TIME_MAX_MS;
    if (!connection_open(&probe->connection, context, &PROBE_OWNER, &DIALECT_TABLE_SOCKETIO,
                         &exchange->connection->stream,
                         handshake_greeting(greeting, exchange, accept))) {
        free(probe);
        return NULL;
    }
    probe->connection.silent = true;
    probe->polling = polling;
    connection_wake_at(&probe->connection, probe->until_ms);
    return probe;
}

void probe_open_surplus(struct exchange *exchange)
{
    char accept[WEBSOCKET_ACCEPT_BYTES + 1];
    if (!handshake_check(&exchange, accept))
        return;
    struct probe *probe = make_probe(exchange, NULL, accept);
    if (!probe) {
        handshake_refuse(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    handshake_end(&exchange);
    connection_close(&probe->connection, PROBE_CLOSE_CODE, SLICE_NONE);
}

void probe_open(struct exchange *exchange, struct slice sid)
{
    char accept[WEBSOCKET_ACCEPT_BYTES + 1];
    struct polling *polling = polling_find(socketio_context_of(exchange), sid);
    if (!polling) {
        engine_refuse(&exchange, ENGINE_UNKNOWN_SID);
        return;
    }
    if (polling->probe) {
        probe_open_surplus(exchange);
        return;
    }
    if (!handshake_check(&exchange, accept))
        return;
    polling->probe = make_probe(exchange, polling, accept);
    if (polling->probe)
        handshake_end(&exchange);
    else
        handshake_refuse(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
}
