#include "redis/redis_connection.h"

#include "base/backoff.h"
#include "base/container.h"
#include "log/log.h"
#include "redis/redis_pending.h"
#include "redis/redis_socket.h"

#include <stdlib.h>

enum { FENCE_ERROR_MAX = 256 };

static const struct slice ping = SLICE("*1\r\n$4\r\nPING\r\n");

/* Writes nothing, but is refused where writes are (Redis 7); an older server calls it an error, and
 * serves. */
static const struct slice write_probe =
    SLICE("*3\r\n$4\r\nEVAL\r\n$14\r\n#!lua\nreturn 1\r\n$1\r\n0\r\n");

struct redis_connection {
    struct redis_socket wire;
    struct list place; /* in links->ending, once ended */
    struct redis_connection_context *links;
    const struct redis_connection_owner *owner; /* NULL: ended */
    void *arg;
    enum redis_problem problem;
    struct wheel_timer timer; /* idle: try; connecting: the limit; open: the next look */
    struct redis_pending calls;
    struct redis_known_scripts scripts;
    unsigned failures; /* in a row */
    int64_t open_ms;   /* since when */
    char fence_error[FENCE_ERROR_MAX];
    size_t fence_error_len; /* 0: none so far */
};

static int64_t now_ms(const struct redis_connection *link)
{
    return link->links->loop->clock.now_ms;
}

static void set_timer(struct redis_connection *link, int64_t delay_ms)
{
    loop_set_timer(link->links->loop, &link->timer, now_ms(link) + delay_ms);
}

/* ---- what is known about the server ---- */

static void log_problem(const struct redis_connection *link, const char *detail)
{
    const struct redis_endpoint *endpoint = &link->wire.endpoint;
    if (link->problem == REDIS_FINE)
        log_info("redis_serves", "server=%s:%u", endpoint->host, endpoint->port);
    else
        log_warn("redis_problem", "server=%s:%u problem=%s because=\"%s\" detail=%s",
                 endpoint->host, endpoint->port, redis_problem_name(link->problem),
                 redis_problem_text(link->problem), log_sentence(slice_of(detail)));
}

static void set_problem(struct redis_connection *link, enum redis_problem problem,
                        const char *detail)
{
    if (link->problem == problem)
        return;
    link->problem = problem;
    log_problem(link, detail);
    if (link->owner)
        link->owner->on_problem_changed(link, link->arg);
}

/* ---- breaking and ending ---- */

static void answer_all(struct redis_connection *link)
{
    while (link->calls.count > 0) {
        struct redis_pending_command call = redis_pending_pop(&link->calls);
        if (call.done)
            call.done(call.arg, NULL);
    }
}

static void wait_a_while(struct redis_connection *link)
{
    set_timer(link, backoff_ms(link->links->random, link->failures, REDIS_BACKOFF_MIN_MS,
                               REDIS_BACKOFF_MAX_MS));
}

/* The connection, or the attempt at one, is over. */
static void lose(struct redis_connection *link, enum redis_problem problem, const char *detail)
{
    if (link->wire.state == REDIS_SOCKET_OPEN && now_ms(link) - link->open_ms >= REDIS_STABLE_MS)
        link->failures = 0;
    link->failures++;
    link->fence_error_len = 0;
    link->scripts.count = 0;
    metrics_count(link->links->metrics, METRIC_REDIS_CONNECTION_ERRORS);
    loop_cancel_timer(link->links->loop, &link->timer);
    redis_socket_cut(&link->wire);
    if (link->wire.state == REDIS_SOCKET_IDLE)
        wait_a_while(link);
    set_problem(link, problem, detail);
    answer_all(link);
}

static void free_link(struct redis_connection *link)
{
    loop_cancel_timer(link->links->loop, &link->timer);
    list_remove(&link->place);
    redis_socket_free(&link->wire);
    redis_pending_free(&link->calls);
    free(link);
}

void redis_connection_end(struct redis_connection **link)
{
    struct redis_connection *ended = *link;
    *link = NULL;
    if (!ended)
        return;
    ended->owner = NULL;
    list_append(&ended->links->ending, &ended->place);
    redis_socket_close(&ended->wire);
    if (ended->wire.state == REDIS_SOCKET_IDLE)
        set_timer(ended, 0);
    else
        loop_cancel_timer(ended->links->loop, &ended->timer);
    answer_all(ended);
}

void redis_connection_context_reap(struct redis_connection_context *links)
{
    for (struct list *at = links->ending.next, *next; at != &links->ending; at = next) {
        next = at->next;
        free_link(CONTAINER_OF(at, struct redis_connection, place));
    }
}

static void closed(struct redis_socket *wire)
{
    struct redis_connection *link = CONTAINER_OF(wire, struct redis_connection, wire);
    if (link->owner)
        wait_a_while(link);
    else
        free_link(link);
}

static void broken(struct redis_socket *wire, enum redis_problem problem, const char *detail)
{
    lose(CONTAINER_OF(wire, struct redis_connection, wire), problem, detail);
}

/* ---- answers ---- */

static void watched(void *arg, const struct resp_value *reply)
{
    struct redis_connection *link = arg;
    if (reply)
        set_problem(link, redis_problem_of(reply), "");
}

/* Some errors tell more about the server than about the command. */
static void learn_from(struct redis_connection *link, const struct resp_value *error)
{
    enum redis_problem problem = redis_problem_of(error);
    if (link->wire.state != REDIS_SOCKET_OPEN || problem == REDIS_FINE ||
        problem == REDIS_CLUSTER_DOWN)
        return;
    if (redis_problem_needs_reconnect(problem))
        lose(link, problem, "");
    else
        set_problem(link, problem, "");
}

/* True: the answer was for the commands before the fence, which still stands. */
static bool stops_at_fence(struct redis_connection *link, const struct resp_value *reply)
{
    if (!redis_pending_oldest(&link->calls)->fence || reply->type != RESP_ERROR)
        return false;
    if (link->fence_error_len == 0) {
        struct slice text = slice_first(reply->text, FENCE_ERROR_MAX);
        memcpy(link->fence_error, text.data, text.len);
        link->fence_error_len = text.len;
    }
    return true;
}

static void answer_fence(struct redis_connection *link, const struct redis_pending_command *call,
                         const struct resp_value *reply)
{
    struct resp_value error = {.type = RESP_ERROR,
                               .text = {link->fence_error, link->fence_error_len}};
    bool failed = link->fence_error_len > 0;
    link->fence_error_len = 0;
    call->done(call->arg, failed ? &error : reply);
}

static void answer_oldest(struct redis_connection *link, const struct resp_value *reply)
{
    if (link->calls.count == 0) {
        lose(link, REDIS_NOT_UNDERSTOOD, "an answer to no question");
        return;
    }
    if (stops_at_fence(link, reply))
        return;
    struct redis_pending_command call = redis_pending_pop(&link->calls);
    if (call.fence)
        answer_fence(link, &call, reply);
    else if (call.done)
        call.done(call.arg, reply);
    if (reply->type == RESP_ERROR && call.done != watched)
        learn_from(link, reply);
}

/* Version 2 has no type of its own for what nobody asked for. */
static bool is_push(const struct redis_connection *link, const struct resp_value *reply)
{
    static const char *const words[] = {"message",  "subscribe",  "unsubscribe",
                                        "smessage", "ssubscribe", "sunsubscribe"};
    if (reply->type == RESP_PUSH)
        return true;
    if (!link->wire.handshake.version_2 || !link->owner->on_push || reply->type != RESP_ARRAY ||
        reply->count != 3)
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (slice_is(reply->items[0].text, words[i]))
            return true;
    return false;
}

static void take_reply(struct redis_socket *wire, const struct resp_value *reply)
{
    struct redis_connection *link = CONTAINER_OF(wire, struct redis_connection, wire);
    if (!is_push(link, reply))
        answer_oldest(link, reply);
    else if (link->owner->on_push)
        link->owner->on_push(link, link->arg, reply);
}

/* ---- sending ---- */

bool redis_connection_takes(const struct redis_connection *link)
{
    return link->wire.state == REDIS_SOCKET_OPEN ||
           (link->failures == 0 && link->wire.state != REDIS_SOCKET_CLOSING);
}

static bool enqueue(struct redis_connection *link, struct slice command,
                    struct redis_pending_command call)
{
    call.due_ms = now_ms(link) + REDIS_COMMAND_LIMIT_MS;
    if (!redis_connection_takes(link) || !redis_pending_push(&link->calls, &call))
        return false;
    if (redis_socket_write(&link->wire, command, call.fence ? ping : SLICE_NONE))
        return true;
    redis_pending_unpush(&link->calls);
    return false;
}

bool redis_connection_send(struct redis_connection *link, struct slice command,
                           redis_reply_done done, void *arg)
{
    return enqueue(link, command, (struct redis_pending_command){.done = done, .arg = arg});
}

bool redis_connection_send_fenced(struct redis_connection *link, struct slice commands,
                                  redis_reply_done done, void *arg)
{
    return enqueue(link, commands,
                   (struct redis_pending_command){.done = done, .arg = arg, .fence = true});
}

/* ---- time ---- */

static void opened(struct redis_socket *wire)
{
    struct redis_connection *link = CONTAINER_OF(wire, struct redis_connection, wire);
    link->open_ms = now_ms(link);
    set_timer(link, REDIS_PING_INTERVAL_MS);
    set_problem(link, REDIS_FINE, "");
}

/* Asks a silent server whether it lives, and one with a problem whether that is over. Answers when to
 * look again. */
static int64_t ask(struct redis_connection *link)
{
    bool waits = link->calls.count > 0;
    int64_t next_ms = link->wire.heard_ms + REDIS_PING_INTERVAL_MS;
    if (link->problem == REDIS_FINE && !waits && next_ms > now_ms(link))
        return next_ms;
    if (link->problem != REDIS_FINE)
        redis_connection_send(link, write_probe, watched, link);
    else if (!waits)
        redis_connection_send(link, ping, watched, link);
    return now_ms(link) + REDIS_PING_INTERVAL_MS;
}

static void watch(struct redis_connection *link)
{
    const struct redis_pending_command *oldest = redis_pending_oldest(&link->calls);
    int64_t due_ms = oldest ? oldest->due_ms : INT64_MAX;
    /* bytes that have come and are not read yet may be the answer */
    if (due_ms <= now_ms(link) && !redis_socket_has_unread(&link->wire)) {
        lose(link, REDIS_SILENT, "");
        return;
    }
    int64_t next_ms = ask(link);
    if (due_ms > now_ms(link) && due_ms < next_ms)
        next_ms = due_ms;
    loop_set_timer(link->links->loop, &link->timer, next_ms);
}

static void fire(struct wheel_timer *timer)
{
    struct redis_connection *link = CONTAINER_OF(timer, struct redis_connection, timer);
    if (!link->owner) {
        free_link(link);
    } else if (link->wire.state == REDIS_SOCKET_OPEN) {
        watch(link);
    } else if (link->wire.state == REDIS_SOCKET_IDLE) {
        set_timer(link, REDIS_CONNECT_LIMIT_MS);
        redis_socket_open(&link->wire);
    } else {
        bool named = link->wire.state == REDIS_SOCKET_CONNECTING;
        lose(link, named ? REDIS_SILENT : REDIS_NAME_UNKNOWN, "the time to connect is over");
    }
}

static const struct redis_socket_owner wire_owner = {opened, take_reply, broken, closed};

struct redis_connection *redis_connection_make(struct redis_connection_context *links,
                                               const struct redis_endpoint *endpoint,
                                               const struct redis_connection_owner *owner,
                                               void *arg)
{
    struct redis_connection *link = calloc(1, sizeof(*link));
    if (!link)
        return NULL;
    redis_socket_init(&link->wire, links->streams, links->tls, &links->identity, endpoint,
                      &wire_owner);
    link->links = links;
    link->owner = owner;
    link->arg = arg;
    link->problem = REDIS_NOT_TRIED;
    link->timer.fire = fire;
    list_init(&link->place);
    set_timer(link, 0);
    return link;
}

enum redis_problem redis_connection_problem(const struct redis_connection *link)
{
    return link->problem;
}

const struct redis_endpoint *redis_connection_endpoint(const struct redis_connection *link)
{
    return &link->wire.endpoint;
}

size_t redis_connection_pending(const struct redis_connection *link)
{
    return link->calls.count;
}

struct redis_known_scripts *redis_connection_scripts(struct redis_connection *link)
{
    return &link->scripts;
}
