#include "socketio/socketio_recovery.h"

#include "auth/user_id.h"
#include "base/container.h"
#include "presence/presence_event.h"
#include "routing/chat_topic.h"
#include "session/dispatch.h"
#include "socketio/codec/socketio_offset.h"
#include "store/recovery_store.h"
#include "text/base64url.h"

#include <stdlib.h>

enum { PID_BYTES = SOCKETIO_PID_BYTES + sizeof(struct ulid) };

struct socketio_recovered {
    struct ulid public_id;
    uint8_t pid[SOCKETIO_PID_BYTES];
    uint64_t ceiling; /* no event of the last connection has a higher offset */
    size_t event_count;
    struct blob *events[RECOVERY_EVENTS_MAX];
    uint64_t event_ids[RECOVERY_EVENTS_MAX];
    size_t topic_count;
    struct slice topics[RECOVERY_TOPICS_MAX];
    struct buffer topic_bytes;
};

/* ---- private ids ---- */

/* A client that named a device names it again, so its private id needs no device of its own. */
void socketio_pid_write(const struct socketio_session *socketio, struct buffer *out)
{
    struct slice text = {socketio->session.device, socketio->session.device_len};
    struct ulid device;
    if (!socketio->device_is_made || !ulid_parse(text, &device))
        device = socketio->public_id;
    uint8_t bytes[PID_BYTES];
    memcpy(bytes, socketio->pid, SOCKETIO_PID_BYTES);
    memcpy(bytes + SOCKETIO_PID_BYTES, device.bytes, sizeof(device));
    base64url_encode(out, bytes, sizeof(bytes));
}

static bool read_private_id(struct slice text, uint8_t secret[SOCKETIO_PID_BYTES],
                            struct ulid *device)
{
    unsigned char bytes[SOCKETIO_PID_TEXT_MAX];
    size_t len;
    if (text.len > SOCKETIO_PID_TEXT_MAX || !base64url_decode(text, bytes, &len) ||
        len != PID_BYTES)
        return false;
    memcpy(secret, bytes, SOCKETIO_PID_BYTES);
    memcpy(device->bytes, bytes + SOCKETIO_PID_BYTES, sizeof(*device));
    return true;
}

/* ---- recovering ---- */

void socketio_return_read(const struct fields_scratch *scratch, struct socketio_return *out)
{
    struct slice pid, offset;
    uint8_t secret[SOCKETIO_PID_BYTES];
    *out = (struct socketio_return){0};
    if (!fields_string(fields_find(scratch, "pid"), &pid) ||
        !fields_string(fields_find(scratch, "offset"), &offset) ||
        !read_private_id(pid, secret, &out->device) || !socketio_offset_parse(offset, &out->offset))
        return;
    memcpy(out->pid, pid.data, pid.len);
    out->pid_len = pid.len;
}

static bool copy_parked_topics(struct socketio_recovered *out, const struct parked_session *record)
{
    for (size_t i = 0; i < record->topic_count; i++)
        buffer_append_slice(&out->topic_bytes, record->topics[i]);
    if (out->topic_bytes.failed)
        return false;
    const char *at = out->topic_bytes.data;
    for (size_t i = 0; i < record->topic_count; i++) {
        out->topics[i] = (struct slice){at, record->topics[i].len};
        at += record->topics[i].len;
    }
    out->topic_count = record->topic_count;
    return true;
}

/* Events from the store are checked, since their bytes go to sockets unchanged. */
static bool copy_parked_events(struct socketio_recovered *out, const struct parked_session *record)
{
    for (; out->event_count < record->event_count; out->event_count++) {
        struct slice frames = record->events[out->event_count].frames;
        struct blob *blob = encoder_wrote(frames) ? blob_make(SLICE_NONE, frames) : NULL;
        if (!blob)
            return false;
        out->events[out->event_count] = blob;
        out->event_ids[out->event_count] = record->events[out->event_count].id;
    }
    return true;
}

struct recovery_waiter {
    socketio_recovery_done done;
    void *arg;
};

/* Out of memory counts as nothing to recover. */
static void on_parked_session_taken(void *arg, const struct parked_session *record)
{
    struct recovery_waiter waiter = *(struct recovery_waiter *)arg;
    struct socketio_recovered *recovered = record ? calloc(1, sizeof(*recovered)) : NULL;
    struct ulid device;
    free(arg);
    if (recovered) {
        recovered->ceiling = record->ceiling;
        if (!read_private_id(record->pid, recovered->pid, &device) ||
            !ulid_parse(record->sid, &recovered->public_id) ||
            !copy_parked_events(recovered, record) || !copy_parked_topics(recovered, record))
            socketio_recovered_free(&recovered);
    }
    waiter.done(waiter.arg, recovered);
}

void socketio_recovery_take(struct session_context *context, struct slice user_id,
                            const struct socketio_return *wanted, socketio_recovery_done done,
                            void *arg)
{
    struct recovery_store *recovery = socketio_context_of_sessions(context)->recovery;
    bool wants = recovery && wanted->pid_len;
    struct recovery_waiter *waiter = wants ? malloc(sizeof(*waiter)) : NULL;
    if (!waiter) {
        done(arg, NULL);
        return;
    }
    *waiter = (struct recovery_waiter){done, arg};
    recovery_take(recovery, user_id, (struct slice){wanted->pid, wanted->pid_len}, wanted->offset,
                  on_parked_session_taken, waiter);
}

void socketio_recovered_free(struct socketio_recovered **recovered)
{
    struct socketio_recovered *freed = *recovered;
    *recovered = NULL;
    if (!freed)
        return;
    for (size_t i = 0; i < freed->event_count; i++)
        blob_drop(&freed->events[i]);
    buffer_free(&freed->topic_bytes);
    free(freed);
}

void socketio_recovery_name(struct socketio_session *socketio,
                            const struct socketio_recovered *recovered)
{
    socketio->public_id = recovered ? recovered->public_id : socketio->session.conn_id;
    if (recovered)
        memcpy(socketio->pid, recovered->pid, sizeof(socketio->pid));
    else
        random_bytes(socketio->session.context->random, socketio->pid, sizeof(socketio->pid));
    if (recovered)
        encoder_pass(socketio->session.context->encoder, recovered->ceiling);
}

/* Ids from the store are checked like those of a command. */
static void subscribe_recovered(struct session *session, const struct socketio_recovered *recovered)
{
    struct slice users[RECOVERY_TOPICS_MAX];
    struct slice chat_id;
    size_t count = 0;
    for (size_t i = 0; i < recovered->topic_count; i++) {
        struct slice user_id = presence_topic_user(recovered->topics[i]);
        if (user_id_valid(user_id))
            users[count++] = user_id;
        else if (chat_topic_parse(recovered->topics[i], &chat_id) == CHAT_TOPIC_PRESENCE &&
                 user_id_valid(chat_id))
            dispatch(session, &(struct message){
                                  .type = MESSAGE_OPEN_CHAT, .id = SLICE_NONE, .chat_id = chat_id});
    }
    if (count)
        dispatch(session, &(struct message){.type = MESSAGE_SUBSCRIBE_PRESENCE,
                                            .id = SLICE_NONE,
                                            .users = {users, count}});
}

void socketio_recovery_resume(struct socketio_session *socketio,
                              struct socketio_recovered *recovered)
{
    struct session *session = &socketio->session;
    struct connection *connection = &session->connection;
    struct encoder *encoder = session->context->encoder;
    metrics_count(session->context->metrics, METRIC_SOCKETIO_RECOVERED);
    for (size_t i = 0; i < recovered->event_count; i++) {
        struct blob *event = recovered->events[i];
        if (encoder->offset_clock && socketio_offset_of(event))
            socketio_offset_replace(event, encoder_next_offset(encoder));
        /* kept as text; sent in the dialect that the client uses now */
        struct blob *blob = encoder_translate(encoder, connection->dialect, event);
        bool queued = blob && connection_queue(connection, blob, 0);
        socketio_recovery_note(session, queued ? event : NULL, recovered->event_ids[i]);
    }
    if (socketio->has_missed) /* a recovered client was promised all events */
        connection_fail(connection);
    subscribe_recovered(session, recovered);
}

/* ---- keeping and parking ---- */

void socketio_recovery_note(struct session *session, struct blob *blob, uint64_t id)
{
    struct socketio_session *socketio = CONTAINER_OF(session, struct socketio_session, session);
    if (socketio_context_of_session(socketio)->recovery &&
        (!blob || !backlog_note(&socketio->backlog, blob, id)))
        socketio->has_missed = true;
}

bool socketio_recovery_has(const struct session *session, uint64_t id)
{
    return backlog_has(CONTAINER_OF(session, struct socketio_session, session)->backlog, id);
}

void socketio_recovery_tick(struct socketio_session *socketio)
{
    backlog_expire(&socketio->backlog, socketio->session.context->loop->clock.wall_ms,
                   &socketio->floor);
}

void socketio_recovery_forget(struct socketio_session *socketio)
{
    backlog_free(&socketio->backlog);
    socketio->floor = 0;
    socketio->has_missed = false;
}

/* A session that was cut can be recovered; during a drain, also one that the gateway ends, but only from a store
 * that other gateways share. */
static bool socketio_session_may_return(const struct socketio_session *socketio)
{
    const struct connection *connection = &socketio->session.connection;
    bool was_cut = connection->state == CONNECTION_GONE || connection->close_received ||
                   socketio->client_leaves || socketio_fell_silent(socketio);
    if (!socketio->session.context->draining)
        return was_cut;
    return socketio_context_of_session(socketio)->recovery->is_shared &&
           (was_cut || connection->ends_as == CLOSING_DRAINING);
}

void socketio_recovery_park(struct socketio_session *socketio)
{
    struct session *session = &socketio->session;
    const struct backlog *backlog = socketio->backlog;
    struct recovery_store *recovery = socketio_context_of_session(socketio)->recovery;
    struct recovery_event events[BACKLOG_EVENTS_MAX];
    struct slice topics[RECOVERY_TOPICS_MAX];
    size_t event_count = 0, topic_count = 0;
    char sid[ULID_TEXT_LEN];
    struct buffer pid = BUFFER_INIT;
    if (!recovery || socketio->has_missed || !socketio_session_may_return(socketio))
        return;
    for (; backlog && event_count < backlog->count; event_count++) {
        const struct blob *blob = backlog_at(backlog, event_count);
        events[event_count] = (struct recovery_event){socketio_offset_of(blob),
                                                      backlog_id_at(backlog, event_count),
                                                      {blob->bytes, blob->len}};
    }
    const struct subscription *at = session->endpoint.subscriptions;
    for (; at && topic_count < RECOVERY_TOPICS_MAX; at = at->next)
        topics[topic_count++] = (struct slice){at->topic->name, at->topic->name_len};
    ulid_write(sid, &socketio->public_id);
    socketio_pid_write(socketio, &pid);
    if (!pid.failed)
        recovery_park(recovery,
                      &(struct parked_session){
                          .user_id = session_user(session),
                          .pid = buffer_slice(&pid),
                          .sid = {sid, sizeof(sid)},
                          /* offsets grow: a backlog that dropped events has the higher floor */
                          .floor = backlog && backlog->floor ? backlog->floor : socketio->floor,
                          .ceiling = session->context->encoder->offset,
                          .events = events,
                          .event_count = event_count,
                          .topics = topics,
                          .topic_count = topic_count,
                      });
    buffer_free(&pid);
}
