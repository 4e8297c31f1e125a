#include "support/redis_fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000, TURN_WAIT_MS = 20 };

static size_t master_count(const struct redis_fleet *fleet)
{
    return fleet->cluster ? REDIS_CLUSTER_MASTERS : 1;
}

static bool all_available(void *arg)
{
    struct redis_fleet *fleet = arg;
    for (size_t i = 0; i < REDIS_FLEET_CLIENTS; i++)
        if (!redis_available(fleet->clients[i]))
            return false;
    return true;
}

static void open_client(struct redis_fleet *fleet, size_t index)
{
    fleet->clients[index] = worker_loop_redis(
        &fleet->worker, fleet->cluster ? "redis-cluster://127.0.0.1" : "redis://127.0.0.1",
        fleet->servers[0].port);
}

void redis_fleet_open(struct redis_fleet *fleet, bool cluster)
{
    memset(fleet, 0, sizeof(*fleet));
    fleet->cluster = cluster;
    if (cluster)
        redis_cluster_start(fleet->servers);
    else
        redis_server_start(&fleet->servers[0], REDIS_DEFAULTS);
    worker_loop_open(&fleet->worker);
    for (size_t i = 0; i < REDIS_FLEET_CLIENTS; i++)
        open_client(fleet, i);
    assert_true(worker_loop_until(&fleet->worker, all_available, fleet, PATIENCE_MS));
}

void redis_fleet_close(struct redis_fleet *fleet)
{
    for (size_t i = 0; i < REDIS_FLEET_CLIENTS; i++)
        redis_client_free(&fleet->clients[i]);
    worker_loop_close(&fleet->worker);
    if (fleet->cluster)
        redis_cluster_stop(fleet->servers);
    else
        redis_server_stop(&fleet->servers[0]);
}

void redis_fleet_empty(void *context)
{
    struct redis_fleet *fleet = context;
    fleet->clock = (struct clock){.now_ms = 10, .wall_ms = 1700000000000};
    fleet->next_client = 0;
    for (size_t i = 0; i < master_count(fleet); i++)
        redis_server_expect(&fleet->servers[i], "OK", "FLUSHALL", NULL);
}

void redis_fleet_pass(void *context, int64_t duration_ms)
{
    ((struct redis_fleet *)context)->clock.wall_ms += duration_ms;
}

size_t redis_fleet_next_client(struct redis_fleet *fleet)
{
    return fleet->next_client++ % REDIS_FLEET_CLIENTS;
}

void redis_fleet_poll(void *context)
{
    struct redis_fleet *fleet = context;
    loop_turn(&fleet->worker.loop, TURN_WAIT_MS);
}

static void on_fleet_ping_answered(void *arg, const struct resp_value *reply)
{
    (void)reply;
    ((struct redis_fleet *)arg)->awaited--;
}

static bool is_fleet_settled(void *arg)
{
    return ((struct redis_fleet *)arg)->awaited == 0;
}

/* Servers answer in order, so everything sent before a PING is answered before it. */
void redis_fleet_settle(struct redis_fleet *fleet, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < REDIS_FLEET_CLIENTS; i++)
            for (size_t master = 0; master < redis_master_count(fleet->clients[i]); master++) {
                fleet->awaited++;
                redis_command_on(fleet->clients[i], master, REDIS_ARGS(SLICE("PING")),
                                 on_fleet_ping_answered, fleet);
            }
        assert_true(worker_loop_until(&fleet->worker, is_fleet_settled, fleet, PATIENCE_MS));
    }
}

/* ---- commands of tests ---- */

struct fleet_query {
    struct redis_fleet *fleet;
    char *text;
};

static void append_value(char text[REDIS_SERVER_REPLY_MAX], const struct resp_value *value)
{
    size_t len = strlen(text);
    if (value->type == RESP_INTEGER)
        snprintf(text + len, REDIS_SERVER_REPLY_MAX - len, "%lld", (long long)value->integer);
    else if (value->type == RESP_TEXT || value->type == RESP_ERROR)
        snprintf(text + len, REDIS_SERVER_REPLY_MAX - len, "%.*s", SLICE_FORMAT(value->text));
    for (size_t i = 0; value->type == RESP_ARRAY && i < value->count; i++) {
        append_value(text, &value->items[i]);
        len = strlen(text);
        snprintf(text + len, REDIS_SERVER_REPLY_MAX - len, " ");
    }
}

static void on_fleet_query_reply(void *arg, const struct resp_value *reply)
{
    struct fleet_query *fleet_query = arg;
    assert_non_null(reply);
    append_value(fleet_query->text, reply);
    fleet_query->fleet->awaited--;
}

const char *redis_fleet_ask(struct redis_fleet *fleet, struct slice key, struct redis_args command)
{
    static char text[REDIS_SERVER_REPLY_MAX];
    text[0] = '\0';
    fleet->awaited++;
    redis_command(fleet->clients[0], key, command, on_fleet_query_reply,
                  &(struct fleet_query){fleet, text});
    assert_true(worker_loop_until(&fleet->worker, is_fleet_settled, fleet, PATIENCE_MS));
    return text;
}

struct slice redis_fleet_find(const struct redis_fleet *fleet, const char *pattern,
                              char out[REDIS_SERVER_REPLY_MAX])
{
    out[0] = '\0';
    for (size_t i = 0; i < master_count(fleet) && !out[0]; i++)
        redis_server_ask(&fleet->servers[i], out, "KEYS", pattern, NULL);
    assert_true(strlen(out) > 1);
    return (struct slice){out, strlen(out) - 1}; /* a space follows each key */
}

size_t redis_fleet_count(const struct redis_fleet *fleet, const char *expected, const char *command,
                         const char *one, const char *two, const char *three)
{
    char reply[REDIS_SERVER_REPLY_MAX];
    size_t count = 0;
    for (size_t i = 0; i < master_count(fleet); i++) {
        redis_server_ask(&fleet->servers[i], reply, command, one, two, three, NULL);
        count += strcmp(reply, expected) == 0;
    }
    return count;
}

void redis_fleet_kill(struct redis_fleet *fleet)
{
    for (size_t i = 0; i < (fleet->cluster ? REDIS_CLUSTER_SERVERS : 1); i++)
        redis_server_kill(&fleet->servers[i]);
}
