#include "socketio/socketio_join.h"

#include "base/container.h"
#include "log/log.h"
#include "session/dispatch.h"
#include "socketio/codec/socketio.h"
#include "socketio/socketio_recovery.h"

#include <stdlib.h>

enum { REFUSAL_RETRY_SECONDS = 2 };

/* A CONNECT under way. */
struct joining {
    struct socketio_session *socketio; /* NULL: it has gone */
    struct session_context *context;
    struct identity identity;
    struct ulid conn_id;
    struct socketio_return return_to; /* what the client asks to recover */
    struct socketio_recovered *recovered;
    bool device_is_made;
    size_t device_len;
    char device[DEVICE_ID_BYTES_MAX];
};

static void free_joining(struct joining *joining)
{
    socketio_recovered_free(&joining->recovered);
    free(joining);
}

struct socketio_waiting {
    struct list of_context;
    struct socketio_session *socketio;
    struct joining *joining;
    int64_t connect_by_ms;
    size_t device_len;
    size_t token_len;
    char bytes[]; /* device, token */
};

static struct slice device_of(const struct socketio_waiting *waiting)
{
    return waiting->device_len ? (struct slice){waiting->bytes, waiting->device_len} : SLICE_NONE;
}

static struct slice token_of(const struct socketio_waiting *waiting)
{
    return waiting->token_len
               ? (struct slice){waiting->bytes + waiting->device_len, waiting->token_len}
               : SLICE_NONE;
}

/* ---- waiting ---- */

bool socketio_waiting_make(struct socketio_session *socketio, struct slice token,
                           struct slice device)
{
    struct socketio_context *context = socketio_context_of_session(socketio);
    const struct config_socketio *config = &context->sessions->config->socketio;
    if (context->waiting_count >= config->pending_sessions_max &&
        !socketio_displace_waiting(context))
        return false;
    struct socketio_waiting *waiting = malloc(sizeof(*waiting) + device.len + token.len);
    if (!waiting)
        return false;
    *waiting = (struct socketio_waiting){
        .socketio = socketio,
        .connect_by_ms = context->sessions->loop->clock.now_ms + config->connect_timeout_ms,
        .device_len = device.len,
        .token_len = token.len,
    };
    if (device.len)
        memcpy(waiting->bytes, device.data, device.len);
    if (token.len)
        memcpy(waiting->bytes + device.len, token.data, token.len);
    list_append(&context->waiting, &waiting->of_context);
    context->waiting_count++;
    socketio->waiting = waiting;
    return true;
}

void socketio_waiting_free(struct socketio_session *socketio)
{
    struct socketio_waiting *waiting = socketio->waiting;
    if (!waiting)
        return;
    if (waiting->joining)
        waiting->joining->socketio = NULL;
    list_remove(&waiting->of_context);
    socketio_context_of_session(socketio)->waiting_count--;
    free(waiting);
    socketio->waiting = NULL;
}

bool socketio_is_joining(const struct socketio_session *socketio)
{
    return socketio->waiting && socketio->waiting->joining;
}

/* One that joins is not cut off half-way: the verifier and the store have limits of their own. */
int64_t socketio_waiting_tick(struct socketio_session *socketio)
{
    struct connection *connection = socketio_connection(socketio);
    const struct socketio_waiting *waiting = socketio->waiting;
    if (!waiting || waiting->joining)
        return INT64_MAX;
    if (connection->context->loop->clock.now_ms < waiting->connect_by_ms)
        return waiting->connect_by_ms;
    connection_close(connection, WEBSOCKET_CLOSE_POLICY, SLICE("connect timeout"));
    return INT64_MAX;
}

static struct connection *connection_at(struct list *place)
{
    struct socketio_waiting *waiting = CONTAINER_OF(place, struct socketio_waiting, of_context);
    return socketio_connection(waiting->socketio);
}

static void end_all(struct list *list)
{
    struct list *at = list->next;
    while (at != list) {
        struct connection *connection = connection_at(at);
        at = at->next; /* ending takes it off the list */
        connection_end(connection, CLOSING_DRAINING, -1);
    }
}

void socketio_end_waiting(struct socketio_context *context)
{
    end_all(&context->waiting);
    end_all(&context->joining);
}

bool socketio_displace_waiting(struct socketio_context *context)
{
    if (list_empty(&context->waiting))
        return false;
    connection_cut(connection_at(context->waiting.next));
    metrics_count(context->sessions->metrics, METRIC_CONNECTIONS_DISPLACED);
    return true;
}

/* ---- joining ---- */

/* NULL: it waits again, behind the others. */
static void set_joining(struct socketio_session *socketio, struct joining *joining)
{
    struct socketio_context *context = socketio_context_of_session(socketio);
    struct socketio_waiting *waiting = socketio->waiting;
    waiting->joining = joining;
    list_remove(&waiting->of_context);
    list_append(joining ? &context->joining : &context->waiting, &waiting->of_context);
}

static void refuse(struct socketio_session *socketio, enum error_code code, const char *text,
                   bool retry)
{
    struct buffer data = BUFFER_INIT;
    struct buffer packet = BUFFER_INIT;
    json_write_object(&data);
    json_write_key_string(&data, SLICE("code"), slice_of(error_code_name(code)));
    if (retry)
        json_write_key_int(&data, SLICE("retry_after_seconds"), REFUSAL_RETRY_SECONDS);
    json_write_object_end(&data);
    socketio_write_refused(&packet, SLICE("/"), text,
                           data.failed ? SLICE_NONE : buffer_slice(&data));
    buffer_free(&data);
    metrics_count(socketio->session.context->metrics, METRIC_CONNECTIONS_REFUSED);
    socketio_send(socketio, &packet);
    connection_wake_at(socketio_connection(socketio), socketio->waiting->connect_by_ms);
}

/* Ends a joining that failed; its client, if it is still there, may try again. */
static void give_up(struct joining *joining, enum error_code code, const char *text, bool retry)
{
    struct socketio_session *socketio = joining->socketio;
    if (socketio) {
        set_joining(socketio, NULL);
        refuse(socketio, code, text, retry);
    }
    free_joining(joining);
}

static void write_connected(struct socketio_session *socketio)
{
    char sid[ULID_TEXT_LEN];
    struct buffer packet = BUFFER_INIT;
    struct buffer pid = BUFFER_INIT;
    ulid_write(sid, &socketio->public_id);
    if (socketio_context_of_session(socketio)->recovery)
        socketio_pid_write(socketio, &pid);
    socketio_write_connected(&packet, (struct slice){sid, sizeof(sid)},
                             pid.len ? buffer_slice(&pid) : SLICE_NONE);
    buffer_free(&pid);
    socketio_send(socketio, &packet);
}

static void connect(struct socketio_session *socketio, struct joining *joining)
{
    struct session *session = &socketio->session;
    session->endpoint.hears_sources = true;
    socketio_connection(socketio)->silent = false;
    socketio_waiting_free(socketio);
    socketio->device_is_made = joining->device_is_made;
    socketio_recovery_name(socketio, joining->recovered);
    write_connected(socketio);
    session_begin(session, &joining->identity);
    if (joining->recovered)
        socketio_recovery_resume(socketio, joining->recovered);
}

static void refuse_lease(struct joining *joining)
{
    give_up(joining, ERROR_SERVICE_UNAVAILABLE, "the connection cannot be registered", true);
}

static void recovered(void *arg, struct socketio_recovered *taken)
{
    struct joining *joining = arg;
    struct session_context *context = joining->context;
    struct socketio_session *socketio = joining->socketio;
    joining->recovered = taken;
    if (socketio && !context->draining &&
        session_attach(&socketio->session, &joining->identity, &joining->conn_id,
                       (struct slice){joining->device, joining->device_len})) {
        connect(socketio, joining);
        free_joining(joining);
        return;
    }
    presence_close(context->presence, identity_user(&joining->identity), &joining->conn_id);
    refuse_lease(joining);
}

/* From now on events find the way here; only then is it safe to take what was kept so far. */
static void registered(void *arg, bool taken)
{
    struct joining *joining = arg;
    if (taken)
        socketio_recovery_take(joining->context, identity_user(&joining->identity),
                               &joining->return_to, recovered, joining);
    else
        refuse_lease(joining);
}

static void take_lease(struct joining *joining)
{
    struct session_context *context = joining->context;
    struct lease lease = {
        .conn_id = joining->conn_id,
        .user_id = identity_user(&joining->identity),
        .device_id = {joining->device, joining->device_len},
        .gateway_id = context->gateway_id,
        .connected_at_ms = ulid_time_ms(&joining->conn_id),
        .last_heartbeat_ms = context->loop->clock.wall_ms,
    };
    presence_open(context->presence, &lease, registered, joining);
}

static void verified(void *arg, enum jwt_result result, const struct identity *identity)
{
    struct joining *joining = arg;
    struct session_context *context = joining->context;
    if (result != JWT_OK) {
        metrics_count(context->metrics, METRIC_AUTH_FAILURES);
        log_info("token_refused", "reason=%s", jwt_result_label(result));
        give_up(joining, ERROR_UNAUTHENTICATED, jwt_result_text(result), false);
    } else if (!joining->socketio) {
        free_joining(joining);
    } else if (context->draining) {
        give_up(joining, ERROR_SERVICE_UNAVAILABLE, "this gateway is draining", true);
    } else if (!state_available(context->presence->store)) {
        give_up(joining, ERROR_SERVICE_UNAVAILABLE, "the state store does not answer", true);
    } else {
        joining->identity = *identity;
        take_lease(joining);
    }
}

/* What CONNECT names comes before what the handshake brought. */
struct credentials {
    struct slice token;
    struct slice device;
    struct socketio_return return_to;
};

static bool read_credentials(struct socketio_session *socketio, struct slice auth,
                             struct credentials *out, const char **problem)
{
    struct fields_scratch *scratch = &socketio->session.context->scratch;
    struct json json;
    struct slice raw;
    *out = (struct credentials){token_of(socketio->waiting), device_of(socketio->waiting), {0}};
    if (!auth.data)
        return true;
    json_init(&json, (char *)auth.data, auth.len);
    if (!fields_scan(scratch, &json, problem))
        return false;
    socketio_return_read(scratch, &out->return_to);
    *problem = "auth.token must be a string";
    raw = fields_find(scratch, "token");
    if (raw.data && !fields_string(raw, &out->token))
        return false;
    *problem = "auth.device_id must be a string of 1 to 128 bytes without control characters";
    raw = fields_find(scratch, "device_id");
    return !raw.data || (fields_string(raw, &out->device) && user_id_valid(out->device));
}

/* Without a device of its own, the connection is one, and stays it when it comes back. */
static struct joining *make_joining(struct socketio_session *socketio,
                                    const struct credentials *credentials)
{
    struct slice device = credentials->device;
    const struct socketio_return *return_to = &credentials->return_to;
    struct session_context *context = socketio->session.context;
    struct joining *joining = calloc(1, sizeof(*joining));
    if (!joining)
        return NULL;
    joining->socketio = socketio;
    joining->context = context;
    joining->conn_id = ulid_make(context->loop->clock.wall_ms, context->random);
    joining->device_is_made = device.len == 0;
    joining->device_len = device.len ? device.len : ULID_TEXT_LEN;
    if (device.len)
        memcpy(joining->device, device.data, device.len);
    else
        ulid_write(joining->device, return_to->pid_len ? &return_to->device : &joining->conn_id);
    return joining;
}

void socketio_join(struct socketio_session *socketio, struct slice auth)
{
    struct session_context *context = socketio->session.context;
    struct credentials credentials;
    const char *problem;
    int64_t retry_after_ms;
    if (!dispatch_within_rate(&socketio->session, &retry_after_ms)) {
        refuse(socketio, ERROR_RATE_LIMITED, "too many commands", true);
        return;
    }
    if (!read_credentials(socketio, auth, &credentials, &problem)) {
        refuse(socketio, ERROR_INVALID_MESSAGE, problem, false);
        return;
    }
    if (!credentials.token.data) {
        refuse(socketio, ERROR_UNAUTHENTICATED, "a token is needed", false);
        return;
    }
    struct joining *joining = make_joining(socketio, &credentials);
    if (joining && session_context_verify(context, credentials.token, verified, joining)) {
        set_joining(socketio, joining);
        joining->return_to = credentials.return_to;
        return;
    }
    free(joining);
    refuse(socketio, ERROR_SERVER_BUSY, "too many tokens wait to be verified", true);
}

/* ---- leaving ---- */

void socketio_leave(struct socketio_session *socketio)
{
    struct connection *connection = socketio_connection(socketio);
    struct call_device device = session_device(&socketio->session);
    call_plane_leave(socketio->session.context->calls, &device);
    session_detach(&socketio->session);
    socketio_recovery_forget(socketio);
    connection_unlimit(connection, CLOSING_TOKEN_EXPIRED);
    connection_unlimit(connection, CLOSING_MAX_LIFETIME);
    connection->silent = true;
    if (socketio_waiting_make(socketio, SLICE_NONE, SLICE_NONE))
        connection_wake_at(connection, socketio->waiting->connect_by_ms);
    else
        connection_fail(connection);
}

void socketio_disconnect(struct session *session)
{
    struct socketio_session *socketio = CONTAINER_OF(session, struct socketio_session, session);
    struct buffer packet = BUFFER_INIT;
    socketio_write_disconnect(&packet);
    socketio_send(socketio, &packet);
    socketio_leave(socketio);
}
