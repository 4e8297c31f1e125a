#include "redis/redis_sentinel.h"

#include "base/container.h"
#include "log/log.h"

static void set_sentinel_timer(struct redis_sentinel *sentinel, int64_t delay_ms)
{
    struct loop *loop = sentinel->context.loop;
    loop_set_timer(loop, &sentinel->timer, loop->clock.now_ms + delay_ms);
}

static const struct redis_address *asked_sentinel(const struct redis_sentinel *sentinel)
{
    return &sentinel->url->seeds[sentinel->asked];
}

/* ---- answers ---- */

static void set_sentinel_problem(struct redis_sentinel *sentinel, enum redis_problem problem)
{
    if (sentinel->problem == problem)
        return;
    sentinel->problem = problem;
    if (problem == REDIS_FINE)
        return;
    log_warn("waiting_for_sentinel",
             "master=%s sentinels=%zu last=%s:%u problem=%s because=\"%s\" hint=\"%s\"",
             sentinel->url->master, sentinel->url->seed_count, asked_sentinel(sentinel)->host,
             asked_sentinel(sentinel)->port, redis_problem_name(problem),
             redis_problem_text(problem),
             sentinel->named ? "the master that was named last is used, and no other is found"
                             : "they are asked again until one names it; until then the gateway is "
                               "not ready: is state.url right?");
}

/* Leaves the sentinel in the next turn, because its connection may be in use by the caller. */
static void leave_sentinel(struct redis_sentinel *sentinel, enum redis_problem problem)
{
    sentinel->asking = false;
    sentinel->leaving = true;
    sentinel->misses++;
    if (sentinel->misses >= sentinel->url->seed_count)
        set_sentinel_problem(sentinel, problem);
    /* one round without a pause, then one sentinel at a time */
    set_sentinel_timer(
        sentinel, sentinel->misses % sentinel->url->seed_count == 0 ? REDIS_SENTINEL_HURRY_MS : 0);
}

static void take_named_master(struct redis_sentinel *sentinel, const struct redis_address *master)
{
    bool same = sentinel->named && redis_address_equal(&sentinel->master, master);
    sentinel->misses = 0;
    sentinel->repeats = same && sentinel->hurried ? sentinel->repeats + 1 : 0;
    set_sentinel_problem(sentinel, REDIS_FINE);
    set_sentinel_timer(sentinel,
                       sentinel->hurried ? REDIS_SENTINEL_HURRY_MS : REDIS_SENTINEL_REFRESH_MS);
    if (sentinel->repeats >= REDIS_SENTINEL_REPEATS_MAX) {
        sentinel->repeats = 0;
        sentinel->leaving = sentinel->url->seed_count > 1;
    }
    if (same)
        return;
    sentinel->named = true;
    sentinel->master = *master;
    log_info("redis_master_named", "master=%s server=%s:%u sentinel=%s:%u", sentinel->url->master,
             master->host, master->port, asked_sentinel(sentinel)->host,
             asked_sentinel(sentinel)->port);
    sentinel->on_master(sentinel, master);
}

/* Host and port, both as text. */
static bool read_named_master(const struct resp_value *reply, struct redis_address *master)
{
    unsigned port = 0;
    if (reply->type != RESP_ARRAY || reply->count != 2)
        return false;
    struct slice digits = reply->items[1].text;
    for (size_t i = 0; i < digits.len && port <= UINT16_MAX; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return false;
        port = port * 10 + (unsigned)(digits.data[i] - '0');
    }
    return port > 0 && port <= UINT16_MAX && reply->items[0].text.len > 0 &&
           redis_address_set(master, reply->items[0].text, (uint16_t)port);
}

static void on_sentinel_answer(void *arg, const struct resp_value *reply)
{
    struct redis_sentinel *sentinel = arg;
    struct redis_address master;
    if (!sentinel->asking)
        return; /* it was left meanwhile */
    sentinel->asking = false;
    if (reply && read_named_master(reply, &master))
        take_named_master(sentinel, &master);
    else if (!reply)
        leave_sentinel(sentinel, REDIS_SENTINELS_SILENT);
    else if (reply->type == RESP_NULL || resp_is_error(reply, "IDONTKNOW"))
        leave_sentinel(sentinel, REDIS_MASTER_UNKNOWN);
    else
        leave_sentinel(sentinel, REDIS_SENTINEL_OFF);
}

/* ---- asking ---- */

static void ask_sentinel(struct redis_sentinel *sentinel)
{
    struct buffer command = BUFFER_INIT;
    const struct slice words[] = {SLICE("SENTINEL"), SLICE("GET-MASTER-ADDR-BY-NAME"),
                                  slice_of(sentinel->url->master)};
    resp_write_command(&command, words, sizeof(words) / sizeof(words[0]));
    sentinel->asking = true;
    set_sentinel_timer(sentinel, REDIS_SENTINEL_LIMIT_MS);
    if (command.failed || !redis_connection_send(sentinel->connection, buffer_slice(&command),
                                                 on_sentinel_answer, sentinel))
        leave_sentinel(sentinel, REDIS_SENTINELS_SILENT);
    buffer_free(&command);
}

/* A sentinel that refuses to subscribe is asked all the same: it is only noticed later then. */
static void subscribe_at_sentinel(struct redis_sentinel *sentinel)
{
    static const struct slice SUBSCRIBE =
        SLICE("*2\r\n$9\r\nSUBSCRIBE\r\n$14\r\n+switch-master\r\n");
    redis_connection_send_fenced(sentinel->connection, SUBSCRIBE, NULL, NULL);
}

/* Announcements of all masters arrive here; what is asked is the one that counts. */
static void on_sentinel_push(struct redis_connection *connection, void *arg,
                             const struct resp_value *push)
{
    struct redis_sentinel *sentinel = arg;
    (void)connection;
    if (push->count == 3 && slice_is(push->items[0].text, "message") && !sentinel->asking &&
        !sentinel->leaving)
        ask_sentinel(sentinel);
}

static void on_sentinel_problem_changed(struct redis_connection *connection, void *arg)
{
    struct redis_sentinel *sentinel = arg;
    enum redis_problem problem = redis_connection_problem(connection);
    if (sentinel->leaving)
        return;
    if (problem == REDIS_FINE) {
        ask_sentinel(sentinel);
        subscribe_at_sentinel(sentinel);
        return;
    }
    if (problem == REDIS_LOGIN_REFUSED && !sentinel->with_login && sentinel->url->password[0]) {
        sentinel->with_login = true;
        sentinel->asked = (sentinel->asked + sentinel->url->seed_count - 1) %
                          sentinel->url->seed_count; /* the same one again */
    }
    leave_sentinel(sentinel, problem == REDIS_LOGIN_REFUSED ? problem : REDIS_SENTINELS_SILENT);
}

static const struct redis_connection_owner SENTINEL_CONNECTION_OWNER = {
    .on_problem_changed = on_sentinel_problem_changed, .on_push = on_sentinel_push};

static void connect_to_sentinel(struct redis_sentinel *sentinel)
{
    sentinel->context.identity.user = sentinel->with_login ? sentinel->url->user : "";
    sentinel->context.identity.password = sentinel->with_login ? sentinel->url->password : "";
    sentinel->connection = redis_connection_make(&sentinel->context, asked_sentinel(sentinel),
                                                 &SENTINEL_CONNECTION_OWNER, sentinel);
    set_sentinel_timer(sentinel,
                       sentinel->connection ? REDIS_SENTINEL_LIMIT_MS : REDIS_SENTINEL_HURRY_MS);
}

static void on_sentinel_timer(struct wheel_timer *timer)
{
    struct redis_sentinel *sentinel = CONTAINER_OF(timer, struct redis_sentinel, timer);
    if (sentinel->leaving) {
        sentinel->leaving = false;
        sentinel->asked = (sentinel->asked + 1) % sentinel->url->seed_count;
        redis_connection_end(&sentinel->connection);
    }
    if (!sentinel->connection)
        connect_to_sentinel(sentinel);
    else if (sentinel->asking ||
             redis_connection_problem(sentinel->connection) != REDIS_FINE) /* it took too long */
        leave_sentinel(sentinel, REDIS_SENTINELS_SILENT);
    else
        ask_sentinel(sentinel);
}

/* ---- for the cluster ---- */

void redis_sentinel_open(struct redis_sentinel *sentinel,
                         const struct redis_connection_context *context,
                         const struct redis_url *url)
{
    sentinel->context = *context;
    sentinel->context.quiet = true; /* one of several may well be down */
    sentinel->context.identity = (struct redis_identity){.user = "", .password = "", .name = ""};
    list_init(&sentinel->context.ending);
    sentinel->url = url;
    sentinel->problem = REDIS_NOT_TRIED;
    sentinel->timer.fire = on_sentinel_timer;
    set_sentinel_timer(sentinel, 0);
}

void redis_sentinel_close(struct redis_sentinel *sentinel)
{
    sentinel->asking = false;
    sentinel->leaving = true;
    redis_connection_end(&sentinel->connection);
    loop_cancel_timer(sentinel->context.loop, &sentinel->timer);
    redis_connection_context_reap(&sentinel->context);
}

void redis_sentinel_hurry(struct redis_sentinel *sentinel, bool hurried)
{
    int64_t soon_ms = sentinel->context.loop->clock.now_ms + REDIS_SENTINEL_HURRY_MS;
    sentinel->hurried = hurried;
    sentinel->repeats = 0;
    if (hurried && !sentinel->asking && sentinel->connection && sentinel->timer.at_ms > soon_ms)
        set_sentinel_timer(sentinel, REDIS_SENTINEL_HURRY_MS);
}
