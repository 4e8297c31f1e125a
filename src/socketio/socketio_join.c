#include "socketio/socketio_join.h"

#include "base/container.h"
#include "session/admission.h"
#include "session/dispatch.h"
#include "socketio/codec/socketio.h"
#include "socketio/socketio_recovery.h"

#include <stdlib.h>

enum { REFUSAL_RETRY_SECONDS = 2 };

/* A CONNECT under way. */
struct joining {
    struct admission admission;
    struct socketio_session *socketio; /* NULL: the client has gone */
    struct socketio_return return_to;  /* what the client asks to recover */
    struct socketio_recovered *recovered;
    bool device_is_made;
};

static struct joining *joining_of(const struct admission *admission)
{
    return CONTAINER_OF(admission, struct joining, admission);
}

struct socketio_waiting {
    struct list of_context;
    struct socketio_session *socketio;
    struct joining *joining; /* NULL: OPENED */
    int64_t connect_by_ms;
    size_t device_len;
    size_t token_len;
    char bytes[]; /* device, token */
};

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

/* A joining client is not closed, since the verifier and the store have time limits of their own. */
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

static struct connection *waiting_connection_at(struct list *place)
{
    struct socketio_waiting *waiting = CONTAINER_OF(place, struct socketio_waiting, of_context);
    return socketio_connection(waiting->socketio);
}

static void end_waiting_list(struct list *list)
{
    struct list *at = list->next;
    while (at != list) {
        struct connection *connection = waiting_connection_at(at);
        at = at->next; /* ending removes it from the list */
        connection_end(connection, CLOSING_DRAINING, -1);
    }
}

void socketio_end_waiting(struct socketio_context *context)
{
    end_waiting_list(&context->waiting);
    end_waiting_list(&context->joining);
}

bool socketio_displace_waiting(struct socketio_context *context)
{
    if (list_empty(&context->waiting))
        return false;
    connection_cut(waiting_connection_at(context->waiting.next));
    metrics_count(context->sessions->metrics, METRIC_CONNECTIONS_DISPLACED);
    return true;
}

/* ---- joining ---- */

/* NULL: the client is OPENED again, as the last of those that wait. */
static void set_client_joining(struct socketio_session *socketio, struct joining *joining)
{
    struct socketio_context *context = socketio_context_of_session(socketio);
    struct socketio_waiting *waiting = socketio->waiting;
    waiting->joining = joining;
    list_remove(&waiting->of_context);
    list_append(joining ? &context->joining : &context->waiting, &waiting->of_context);
}

static void refuse_socketio_connect(struct socketio_session *socketio, enum error_code code,
                                    const char *text, bool retry)
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

static void send_socketio_connected(struct socketio_session *socketio)
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

static bool joining_is_present(const struct admission *admission)
{
    return joining_of(admission)->socketio != NULL;
}

static void on_joining_recovered(void *arg, struct socketio_recovered *recovered)
{
    struct joining *joining = arg;
    joining->recovered = recovered;
    admission_resume(&joining->admission);
}

/* Events reach this gateway once the lease is open; only then is it safe to take those kept so far. */
static void joining_take_recovered(struct admission *admission)
{
    struct joining *joining = joining_of(admission);
    socketio_recovery_take(admission->context, identity_user(&admission->identity),
                           &joining->return_to, on_joining_recovered, joining);
}

static bool joining_open_session(struct admission *admission)
{
    struct joining *joining = joining_of(admission);
    struct socketio_session *socketio = joining->socketio;
    struct session *session = &socketio->session;
    if (!session_attach(session, &admission->identity, &admission->conn_id,
                        admission_device(admission)))
        return false;
    session->endpoint.wants_announcements = true;
    socketio_connection(socketio)->silent = false;
    socketio_waiting_free(socketio);
    socketio->device_is_made = joining->device_is_made;
    socketio_recovery_name(socketio, joining->recovered);
    send_socketio_connected(socketio);
    session_begin(session, &admission->identity, admission_display_name(admission));
    if (joining->recovered)
        socketio_recovery_resume(socketio, joining->recovered);
    return true;
}

/* A client that was refused may CONNECT again. */
static void on_joining_end(struct admission *admission, enum admission_result result,
                           const char *text)
{
    struct joining *joining = joining_of(admission);
    struct socketio_session *socketio = joining->socketio;
    if (result != ADMISSION_ADMITTED && socketio) {
        enum error_code code = result == ADMISSION_TOKEN_REFUSED ? ERROR_UNAUTHENTICATED
                               : result == ADMISSION_REFUSED     ? ERROR_FORBIDDEN
                                                                 : ERROR_SERVICE_UNAVAILABLE;
        set_client_joining(socketio, NULL);
        refuse_socketio_connect(socketio, code, text, code == ERROR_SERVICE_UNAVAILABLE);
    }
    socketio_recovered_free(&joining->recovered);
    free(joining);
}

static const struct admission_hooks JOINING_HOOKS = {
    .is_present = joining_is_present,
    .prepare = joining_take_recovered,
    .open_session = joining_open_session,
    .on_end = on_joining_end,
};

/* CONNECT's own credentials take precedence over the handshake's. */
struct credentials {
    struct slice token;
    struct slice device;
    struct socketio_return return_to;
};

static bool read_connect_credentials(struct socketio_session *socketio, struct slice auth,
                                     struct credentials *out, const char **problem)
{
    struct fields_scratch *scratch = &socketio->session.context->scratch;
    struct json json;
    struct slice raw;
    const struct socketio_waiting *waiting = socketio->waiting;
    *out = (struct credentials){.token = SLICE_NONE, .device = SLICE_NONE};
    if (waiting->device_len)
        out->device = (struct slice){waiting->bytes, waiting->device_len};
    if (waiting->token_len)
        out->token = (struct slice){waiting->bytes + waiting->device_len, waiting->token_len};
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

void socketio_join(struct socketio_session *socketio, struct slice auth)
{
    struct session_context *context = socketio->session.context;
    struct credentials credentials;
    const char *problem;
    if (dispatch_rate_wait_ms(&socketio->session)) {
        refuse_socketio_connect(socketio, ERROR_RATE_LIMITED, "too many commands", true);
        return;
    }
    if (!read_connect_credentials(socketio, auth, &credentials, &problem)) {
        refuse_socketio_connect(socketio, ERROR_INVALID_MESSAGE, problem, false);
        return;
    }
    if (!credentials.token.data) {
        refuse_socketio_connect(socketio, ERROR_UNAUTHENTICATED, "a token is needed", false);
        return;
    }
    struct joining *joining = calloc(1, sizeof(*joining));
    struct slice device = credentials.device;
    char returning[ULID_TEXT_LEN];
    if (joining && !device.len && credentials.return_to.pid_len) {
        ulid_write(returning, &credentials.return_to.device);
        device = (struct slice){returning, sizeof(returning)};
    }
    if (joining &&
        admission_begin(&joining->admission, context, &JOINING_HOOKS, credentials.token, device)) {
        joining->socketio = socketio;
        joining->return_to = credentials.return_to;
        joining->device_is_made = credentials.device.len == 0;
        set_client_joining(socketio, joining);
        return;
    }
    free(joining);
    refuse_socketio_connect(socketio, ERROR_SERVER_BUSY, "too many tokens wait to be verified",
                            true);
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
