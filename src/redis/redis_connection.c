#include "redis/redis_connection.h"

#include "base/backoff.h"
#include "base/container.h"
#include "log/log.h"
#include "redis/redis_pending.h"
#include "redis/redis_socket.h"

#include <stdio.h>
#include <stdlib.h>

enum { FENCE_ERROR_MAX = 256 };

static const struct slice PING = SLICE("*1\r\n$4\r\nPING\r\n");

/* Writes nothing, but Redis 7 refuses it when it refuses writes. An older server replies with an ordinary
 * error, which counts as serving. */
static const struct slice WRITE_PROBE =
    SLICE("*3\r\n$4\r\nEVAL\r\n$14\r\n#!lua\nreturn 1\r\n$1\r\n0\r\n");

static const struct slice START_TRACKING =
    SLICE("*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nOPTIN\r\n");
static const struct slice TRACK_NEXT =
    SLICE("*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nYES\r\n");

struct redis_connection {
    struct redis_socket socket;
    struct list place; /* in context->ending, once it was ended */
    struct redis_connection_context *context;
    const struct redis_connection_owner *owner; /* NULL: ended */
    void *arg;
    enum redis_problem problem;
    int64_t timer_ms;         /* when the timer fires, if it is set */
    struct wheel_timer timer; /* idle: the next try; connecting: the limit; open: the next check */
    struct redis_pending pending;
    uint64_t given;       /* commands so far, answered or not */
    uint64_t written;     /* of them, those that the system may have been given */
    uint64_t gathers;     /* of the socket when `written` was counted */
    struct list barriers; /* by `after` */
    bool is_barrier_sent; /* a command for barriers alone waits for its reply */
    struct redis_known_scripts scripts;
    unsigned failures; /* in a row */
    int64_t open_ms;   /* when it opened */
    uint64_t tracking; /* 0: the server does not track */
    bool is_quiet;
    char fence_error[FENCE_ERROR_MAX];
    size_t fence_error_len; /* 0: none yet */
};

static int64_t redis_connection_now_ms(const struct redis_connection *connection)
{
    return connection->context->loop->clock.now_ms;
}

static int64_t redis_connection_ping_interval_ms(const struct redis_connection *connection)
{
    return connection->is_quiet ? REDIS_QUIET_PING_INTERVAL_MS : REDIS_PING_INTERVAL_MS;
}

static void set_redis_connection_timer(struct redis_connection *connection, int64_t delay_ms)
{
    connection->timer_ms = redis_connection_now_ms(connection) + delay_ms;
    loop_set_timer(connection->context->loop, &connection->timer, connection->timer_ms);
}

/* An open connection looks after itself at this time at the latest. */
static void watch_redis_connection_until(struct redis_connection *connection, int64_t at_ms)
{
    if (connection->socket.state != REDIS_SOCKET_OPEN || connection->timer_ms <= at_ms)
        return;
    connection->timer_ms = at_ms;
    loop_set_timer(connection->context->loop, &connection->timer, at_ms);
}

/* ---- problems ---- */

static void log_redis_problem(const struct redis_address *server, enum redis_problem problem,
                              const char *detail)
{
    if (problem == REDIS_FINE)
        log_info("redis_available", "server=%s:%u", server->host, server->port);
    else
        log_warn(
            "waiting_for_redis",
            "server=%s:%u problem=%s because=\"%s\" detail=%s hint=\"it is tried again until it "
            "answers; until then the gateway is not ready: is state.url right?\"",
            server->host, server->port, redis_problem_name(problem), redis_problem_text(problem),
            log_sentence(slice_of(detail)));
}

static void set_redis_connection_problem(struct redis_connection *connection,
                                         enum redis_problem problem, const char *detail)
{
    if (connection->problem == problem)
        return;
    connection->problem = problem;
    if (problem != REDIS_FINE)
        watch_redis_connection_until(connection,
                                     redis_connection_now_ms(connection) + REDIS_PROBE_INTERVAL_MS);
    const struct redis_address *address = &connection->socket.address;
    struct redis_report *report = connection->context->report;
    if (!connection->context->quiet && (!report || redis_report_note(report, address, problem)))
        log_redis_problem(address, problem, detail);
    if (connection->owner)
        connection->owner->on_problem_changed(connection, connection->arg);
}

/* ---- breaking and ending ---- */

static void end_redis_barriers(struct redis_connection *connection)
{
    while (!list_empty(&connection->barriers)) {
        struct redis_barrier *barrier =
            CONTAINER_OF(connection->barriers.next, struct redis_barrier, place);
        list_remove(&barrier->place);
        barrier->done(barrier, false);
    }
}

static void answer_redis_commands_with_null(struct redis_connection *connection)
{
    while (connection->pending.count > 0) {
        struct redis_pending_command entry = redis_pending_pop(&connection->pending);
        if (entry.done)
            entry.done(entry.arg, NULL);
    }
    end_redis_barriers(connection);
}

static void schedule_redis_reconnect(struct redis_connection *connection)
{
    set_redis_connection_timer(connection,
                               backoff_ms(connection->context->random, connection->failures,
                                          REDIS_BACKOFF_MIN_MS, REDIS_BACKOFF_MAX_MS));
}

/* The socket broke, or could not be opened. */
static void lose_redis_connection(struct redis_connection *connection, enum redis_problem problem,
                                  const char *detail)
{
    if (connection->socket.state == REDIS_SOCKET_OPEN &&
        redis_connection_now_ms(connection) - connection->open_ms >= REDIS_STABLE_MS)
        connection->failures = 0;
    connection->failures++;
    connection->fence_error_len = 0;
    connection->scripts.count = 0;
    connection->tracking = 0;
    metrics_count(connection->context->metrics, METRIC_REDIS_CONNECTION_ERRORS);
    loop_cancel_timer(connection->context->loop, &connection->timer);
    redis_socket_cut(&connection->socket);
    if (connection->socket.state == REDIS_SOCKET_IDLE)
        schedule_redis_reconnect(connection);
    set_redis_connection_problem(connection, problem, detail);
    answer_redis_commands_with_null(connection);
}

static void free_redis_connection(struct redis_connection *connection)
{
    loop_cancel_timer(connection->context->loop, &connection->timer);
    list_remove(&connection->place);
    redis_socket_free(&connection->socket);
    redis_pending_free(&connection->pending);
    free(connection);
}

void redis_connection_end(struct redis_connection **connection)
{
    struct redis_connection *ended = *connection;
    *connection = NULL;
    if (!ended)
        return;
    ended->owner = NULL;
    list_append(&ended->context->ending, &ended->place);
    redis_socket_close(&ended->socket);
    if (ended->socket.state == REDIS_SOCKET_IDLE)
        set_redis_connection_timer(ended, 0);
    else
        loop_cancel_timer(ended->context->loop, &ended->timer);
    answer_redis_commands_with_null(ended);
}

void redis_connection_context_reap(struct redis_connection_context *context)
{
    for (struct list *at = context->ending.next, *next; at != &context->ending; at = next) {
        next = at->next;
        free_redis_connection(CONTAINER_OF(at, struct redis_connection, place));
    }
}

static void on_redis_connection_socket_closed(struct redis_socket *socket)
{
    struct redis_connection *connection = CONTAINER_OF(socket, struct redis_connection, socket);
    if (connection->owner)
        schedule_redis_reconnect(connection);
    else
        free_redis_connection(connection);
}

static void on_redis_connection_socket_broken(struct redis_socket *socket,
                                              enum redis_problem problem, const char *detail)
{
    lose_redis_connection(CONTAINER_OF(socket, struct redis_connection, socket), problem, detail);
}

/* ---- replies ---- */

static void on_redis_probe_answered(void *arg, const struct resp_value *reply)
{
    struct redis_connection *connection = arg;
    if (reply)
        set_redis_connection_problem(connection, redis_problem_of(reply), "");
}

/* A server that cannot track, or may not for this user, is read each time. */
static void on_redis_tracking_answered(void *arg, const struct resp_value *reply)
{
    struct redis_connection *connection = arg;
    connection->tracking =
        reply && reply->type != RESP_ERROR ? ++connection->context->tracking_count : 0;
}

static void on_redis_track_next_answered(void *arg, const struct resp_value *reply)
{
    struct redis_connection *connection = arg;
    if (!reply || reply->type == RESP_ERROR)
        connection->tracking = 0;
}

/* Whether the server's refusal of this command says nothing about other commands. */
static bool is_redis_refusal_expected(const struct redis_pending_command *entry)
{
    return entry->done == on_redis_probe_answered || entry->done == on_redis_tracking_answered ||
           entry->done == on_redis_track_next_answered;
}

/* Some errors are about the server, not the command. */
static void note_redis_error(struct redis_connection *connection, const struct resp_value *error)
{
    enum redis_problem problem = redis_problem_of(error);
    if (connection->socket.state != REDIS_SOCKET_OPEN || problem == REDIS_FINE ||
        problem == REDIS_CLUSTER_DOWN)
        return;
    if (redis_problem_needs_reconnect(problem))
        lose_redis_connection(connection, problem, "");
    else
        set_redis_connection_problem(connection, problem, "");
}

static bool send_for_redis_barriers(struct redis_connection *connection);

/* Ends the barriers for which the newest reply was sent. */
static void pass_redis_barriers(struct redis_connection *connection, bool is_passed)
{
    while (!list_empty(&connection->barriers)) {
        struct redis_barrier *barrier =
            CONTAINER_OF(connection->barriers.next, struct redis_barrier, place);
        if (connection->given - connection->pending.count <= barrier->after)
            break;
        list_remove(&barrier->place);
        barrier->done(barrier, is_passed);
    }
    if (!send_for_redis_barriers(connection))
        end_redis_barriers(connection);
}

static void answer_oldest_redis_command(struct redis_connection *connection,
                                        const struct resp_value *reply)
{
    if (connection->pending.count == 0) {
        lose_redis_connection(connection, REDIS_NOT_UNDERSTOOD, "a reply without a command");
        return;
    }
    if (redis_pending_oldest(&connection->pending)->fence && reply->type == RESP_ERROR) {
        /* of a command before the fence, which stays pending; only the first error is kept */
        if (connection->fence_error_len == 0) {
            struct slice text = slice_first(reply->text, FENCE_ERROR_MAX);
            memcpy(connection->fence_error, text.data, text.len);
            connection->fence_error_len = text.len;
        }
        return;
    }
    struct redis_pending_command entry = redis_pending_pop(&connection->pending);
    struct resp_value fence_error = {
        .type = RESP_ERROR, .text = {connection->fence_error, connection->fence_error_len}};
    bool fence_failed = entry.fence && connection->fence_error_len > 0;
    if (entry.fence)
        connection->fence_error_len = 0;
    if (entry.done)
        entry.done(entry.arg, fence_failed ? &fence_error : reply);
    pass_redis_barriers(connection, reply->type != RESP_ERROR);
    if (reply->type == RESP_ERROR && !is_redis_refusal_expected(&entry))
        note_redis_error(connection, reply);
}

/* RESP version 2 has no type of its own for pushes. */
static bool is_redis_push(const struct redis_connection *connection, const struct resp_value *reply)
{
    static const char *const kinds[] = {"message",  "subscribe",  "unsubscribe",
                                        "smessage", "ssubscribe", "sunsubscribe"};
    if (reply->type == RESP_PUSH)
        return true;
    if (!connection->socket.handshake.version_2 || !connection->owner->on_push ||
        reply->type != RESP_ARRAY || reply->count != 3)
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (slice_is(reply->items[0].text, kinds[i]))
            return true;
    return false;
}

static void on_redis_connection_reply(struct redis_socket *socket, const struct resp_value *reply)
{
    struct redis_connection *connection = CONTAINER_OF(socket, struct redis_connection, socket);
    if (!is_redis_push(connection, reply))
        answer_oldest_redis_command(connection, reply);
    else if (connection->owner->on_push)
        connection->owner->on_push(connection, connection->arg, reply);
}

/* ---- sending ---- */

bool redis_connection_takes(const struct redis_connection *connection)
{
    return connection->socket.state == REDIS_SOCKET_OPEN ||
           (connection->failures == 0 && connection->socket.state != REDIS_SOCKET_CLOSING);
}

/* Bytes that were given to the system since the last look belong to commands that had been given by then. */
static void note_written_redis_commands(struct redis_connection *connection)
{
    if (connection->gathers == connection->socket.gathers)
        return;
    connection->gathers = connection->socket.gathers;
    connection->written = connection->given;
}

static bool queue_redis_command(struct redis_connection *connection, struct slice command,
                                struct redis_pending_command entry)
{
    note_written_redis_commands(connection);
    entry.due_ms = redis_connection_now_ms(connection) + REDIS_COMMAND_LIMIT_MS;
    if (!redis_connection_takes(connection) || !redis_pending_push(&connection->pending, &entry))
        return false;
    if (redis_socket_write(&connection->socket, command, entry.fence ? PING : SLICE_NONE)) {
        watch_redis_connection_until(connection, entry.due_ms);
        connection->given++;
        return true;
    }
    redis_pending_unpush(&connection->pending);
    return false;
}

bool redis_connection_send(struct redis_connection *connection, struct slice command,
                           redis_reply_done done, void *arg)
{
    return queue_redis_command(connection, command,
                               (struct redis_pending_command){.done = done, .arg = arg});
}

bool redis_connection_send_fenced(struct redis_connection *connection, struct slice commands,
                                  redis_reply_done done, void *arg)
{
    return queue_redis_command(
        connection, commands,
        (struct redis_pending_command){.done = done, .arg = arg, .fence = true});
}

static void on_redis_barrier_answered(void *arg, const struct resp_value *reply)
{
    struct redis_connection *connection = arg;
    (void)reply;
    connection->is_barrier_sent = false;
}

/* Makes sure that there is, or will be, a reply for the last barrier. */
static bool send_for_redis_barriers(struct redis_connection *connection)
{
    char text[sizeof("*2\r\n$6\r\nEXISTS\r\n$16\r\n\r\n") + REDIS_BARRIER_KEY_MAX];
    const struct redis_barrier *last =
        CONTAINER_OF(connection->barriers.prev, struct redis_barrier, place);
    struct slice command = PING;
    if (list_empty(&connection->barriers) || connection->given > last->after ||
        connection->is_barrier_sent)
        return true;
    if (last->key_len) {
        int len = snprintf(text, sizeof(text), "*2\r\n$6\r\nEXISTS\r\n$%zu\r\n%.*s\r\n",
                           last->key_len, (int)last->key_len, last->key);
        command = (struct slice){text, (size_t)len};
    }
    connection->is_barrier_sent =
        redis_connection_send(connection, command, on_redis_barrier_answered, connection);
    return connection->is_barrier_sent;
}

bool redis_connection_await(struct redis_connection *connection, struct redis_barrier *barrier)
{
    if (!redis_connection_takes(connection))
        return false;
    note_written_redis_commands(connection);
    barrier->after = connection->written;
    list_append(&connection->barriers, &barrier->place);
    if (send_for_redis_barriers(connection))
        return true;
    list_remove(&barrier->place);
    return false;
}

uint64_t redis_connection_tracking(const struct redis_connection *connection)
{
    return connection->tracking;
}

bool redis_connection_send_tracked(struct redis_connection *connection, struct slice command,
                                   redis_reply_done done, void *arg)
{
    return redis_connection_send(connection, TRACK_NEXT, on_redis_track_next_answered,
                                 connection) &&
           redis_connection_send(connection, command, done, arg);
}

void redis_connection_set_quiet(struct redis_connection *connection, bool is_quiet)
{
    connection->is_quiet = is_quiet;
    if (!is_quiet)
        watch_redis_connection_until(connection,
                                     redis_connection_now_ms(connection) + REDIS_PING_INTERVAL_MS);
}

/* ---- time ---- */

static void on_redis_connection_socket_opened(struct redis_socket *socket)
{
    struct redis_connection *connection = CONTAINER_OF(socket, struct redis_connection, socket);
    connection->open_ms = redis_connection_now_ms(connection);
    const struct redis_pending_command *oldest = redis_pending_oldest(&connection->pending);
    set_redis_connection_timer(connection, redis_connection_ping_interval_ms(connection));
    if (oldest)
        watch_redis_connection_until(connection, oldest->due_ms);
    if (connection->owner && connection->owner->tracks && !socket->handshake.version_2)
        redis_connection_send(connection, START_TRACKING, on_redis_tracking_answered, connection);
    set_redis_connection_problem(connection, REDIS_FINE, "");
}

/* Detects an overdue reply, pings a silent server, and probes one with a problem. */
static void watch_redis_connection(struct redis_connection *connection)
{
    const struct redis_pending_command *oldest = redis_pending_oldest(&connection->pending);
    int64_t now_ms = redis_connection_now_ms(connection);
    int64_t due_ms = oldest ? oldest->due_ms : INT64_MAX;
    /* bytes that have arrived and are not read yet may be the reply */
    if (due_ms <= now_ms && !redis_socket_has_unread(&connection->socket)) {
        lose_redis_connection(connection, REDIS_SILENT, "");
        return;
    }
    int64_t next_ms = connection->socket.heard_ms + redis_connection_ping_interval_ms(connection);
    if (due_ms > now_ms && due_ms < next_ms)
        next_ms = due_ms;
    connection->timer_ms = INT64_MAX;
    if (connection->problem != REDIS_FINE) {
        next_ms = now_ms + REDIS_PROBE_INTERVAL_MS;
        redis_connection_send(connection, WRITE_PROBE, on_redis_probe_answered, connection);
    } else if (next_ms <= now_ms) {
        next_ms = now_ms + redis_connection_ping_interval_ms(connection);
        redis_connection_send(connection, PING, on_redis_probe_answered, connection);
    }
    watch_redis_connection_until(connection, next_ms);
}

static void on_redis_connection_timer(struct wheel_timer *timer)
{
    struct redis_connection *connection = CONTAINER_OF(timer, struct redis_connection, timer);
    if (!connection->owner) {
        free_redis_connection(connection);
    } else if (connection->socket.state == REDIS_SOCKET_OPEN) {
        watch_redis_connection(connection);
    } else if (connection->socket.state == REDIS_SOCKET_IDLE) {
        set_redis_connection_timer(connection, REDIS_CONNECT_LIMIT_MS);
        redis_socket_open(&connection->socket);
    } else {
        bool resolved = connection->socket.state == REDIS_SOCKET_CONNECTING;
        lose_redis_connection(connection, resolved ? REDIS_SILENT : REDIS_NAME_UNKNOWN,
                              "timed out while connecting");
    }
}

static const struct redis_socket_owner CONNECTION_SOCKET_OWNER = {
    .on_opened = on_redis_connection_socket_opened,
    .on_reply = on_redis_connection_reply,
    .on_broken = on_redis_connection_socket_broken,
    .on_closed = on_redis_connection_socket_closed};

struct redis_connection *redis_connection_make(struct redis_connection_context *context,
                                               const struct redis_address *address,
                                               const struct redis_connection_owner *owner,
                                               void *arg)
{
    struct redis_connection *connection = calloc(1, sizeof(*connection));
    if (!connection)
        return NULL;
    redis_socket_init(&connection->socket, context->streams, context->tls, &context->identity,
                      address, &CONNECTION_SOCKET_OWNER);
    connection->context = context;
    connection->owner = owner;
    connection->arg = arg;
    connection->problem = REDIS_NOT_TRIED;
    connection->timer.fire = on_redis_connection_timer;
    list_init(&connection->place);
    list_init(&connection->barriers);
    set_redis_connection_timer(connection, 0);
    return connection;
}

enum redis_problem redis_connection_problem(const struct redis_connection *connection)
{
    return connection->problem;
}

const struct redis_address *redis_connection_address(const struct redis_connection *connection)
{
    return &connection->socket.address;
}

size_t redis_connection_pending(const struct redis_connection *connection)
{
    return connection->pending.count;
}

struct redis_known_scripts *redis_connection_scripts(struct redis_connection *connection)
{
    return &connection->scripts;
}
