#include "support/redis_client_fixture.h"

#include "base/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COMMAND_ARGS_MAX = 8 };

static void on_fixture_availability_changed(struct redis_observer *observer, bool available)
{
    struct redis_client_fixture *fixture =
        CONTAINER_OF(observer, struct redis_client_fixture, observer);
    fixture->available_reports += available;
    fixture->unavailable_reports += !available;
}

int redis_client_fixture_set_up(void **state)
{
    struct redis_client_fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture->cluster = *state;
    worker_loop_open(&fixture->worker);
    *state = fixture;
    return 0;
}

int redis_client_fixture_tear_down(void **state)
{
    struct redis_client_fixture *fixture = *state;
    redis_client_free(&fixture->client);
    redis_server_stop(&fixture->server);
    worker_loop_close(&fixture->worker);
    free(fixture);
    return 0;
}

static void observe_fixture_client(struct redis_client_fixture *fixture)
{
    fixture->observer =
        (struct redis_observer){.on_availability_changed = on_fixture_availability_changed};
    redis_observe(fixture->client, &fixture->observer);
}

void redis_client_fixture_open(struct redis_client_fixture *fixture, const char *url_start,
                               uint16_t port)
{
    fixture->client = worker_loop_redis(&fixture->worker, url_start, port);
    observe_fixture_client(fixture);
}

void redis_client_fixture_open_url(struct redis_client_fixture *fixture, const char *url)
{
    fixture->client = worker_loop_redis_url(&fixture->worker, url);
    observe_fixture_client(fixture);
}

static bool has_awaited_availability(void *arg)
{
    struct redis_client_fixture *fixture = arg;
    return redis_available(fixture->client) == fixture->awaited_availability;
}

void redis_client_fixture_await_available(struct redis_client_fixture *fixture, bool available,
                                          int64_t limit_ms)
{
    fixture->awaited_availability = available;
    assert_true(worker_loop_until(&fixture->worker, has_awaited_availability, fixture, limit_ms));
}

void redis_client_fixture_open_single(struct redis_client_fixture *fixture)
{
    redis_server_start(&fixture->server, REDIS_DEFAULTS);
    redis_client_fixture_open(fixture, "redis://127.0.0.1", fixture->server.port);
    redis_client_fixture_await_available(fixture, true, REDIS_CLIENT_FIXTURE_SOON_MS);
}

void redis_client_fixture_open_cluster(struct redis_client_fixture *fixture)
{
    redis_client_fixture_open(fixture, "redis-cluster://127.0.0.1:1,localhost",
                              fixture->cluster[0].port);
    redis_client_fixture_await_available(fixture, true, REDIS_CLIENT_FIXTURE_SOON_MS);
}

/* ---- commands ---- */

static void on_fixture_reply(void *arg, const struct resp_value *reply)
{
    struct redis_client_fixture *fixture = arg;
    struct slice text = reply ? reply->text : SLICE("nothing");
    fixture->answered++;
    fixture->without_reply += reply == NULL;
    fixture->errors += reply && reply->type == RESP_ERROR;
    if (reply && reply->type == RESP_INTEGER)
        snprintf(fixture->last, sizeof(fixture->last), "%lld", (long long)reply->integer);
    else
        snprintf(fixture->last, sizeof(fixture->last), "%.*s",
                 SLICE_FORMAT(slice_first(text, sizeof(fixture->last) - 1)));
}

bool redis_client_fixture_is_done(const struct redis_client_fixture *fixture)
{
    return fixture->answered == fixture->sent;
}

static bool all_answered(void *arg)
{
    return redis_client_fixture_is_done(arg);
}

void redis_client_fixture_await_answers(struct redis_client_fixture *fixture)
{
    assert_true(
        worker_loop_until(&fixture->worker, all_answered, fixture, REDIS_CLIENT_FIXTURE_SOON_MS));
}

void redis_client_fixture_start(struct redis_client_fixture *fixture, const char *line)
{
    struct slice args[COMMAND_ARGS_MAX];
    size_t count = 0;
    for (struct slice rest = slice_of(line); rest.data; count++) {
        assert_true(count < COMMAND_ARGS_MAX);
        rest = slice_split(rest, ' ', &args[count]);
    }
    fixture->sent++;
    redis_command(fixture->client, count > 1 ? args[1] : SLICE_NONE,
                  (struct redis_args){args, count}, on_fixture_reply, fixture);
}

const char *redis_client_fixture_run(struct redis_client_fixture *fixture, const char *line)
{
    redis_client_fixture_start(fixture, line);
    redis_client_fixture_await_answers(fixture);
    return fixture->last;
}

const char *redis_client_fixture_eval(struct redis_client_fixture *fixture,
                                      const struct redis_script *script, const char *key,
                                      const char *argument)
{
    fixture->sent++;
    redis_eval(fixture->client, script, REDIS_ARGS(slice_of(key)), REDIS_ARGS(slice_of(argument)),
               on_fixture_reply, fixture);
    redis_client_fixture_await_answers(fixture);
    return fixture->last;
}
