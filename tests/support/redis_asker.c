#include "support/redis_asker.h"

#include "base/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WORDS_MAX = 8 };

static void changed(struct redis_observer *listener, bool available)
{
    struct redis_asker *asker = CONTAINER_OF(listener, struct redis_asker, listener);
    asker->told_available += available;
    asker->told_unavailable += !available;
}

int redis_asker_set_up(void **state)
{
    struct redis_asker *asker = calloc(1, sizeof(*asker));
    assert_non_null(asker);
    asker->cluster = *state;
    worker_loop_open(&asker->worker);
    *state = asker;
    return 0;
}

int redis_asker_tear_down(void **state)
{
    struct redis_asker *asker = *state;
    redis_client_free(&asker->client);
    redis_server_stop(&asker->server);
    worker_loop_close(&asker->worker);
    free(asker);
    return 0;
}

void redis_asker_open(struct redis_asker *asker, const char *place, uint16_t port)
{
    asker->client = worker_loop_redis(&asker->worker, place, port);
    asker->listener = (struct redis_observer){.on_availability_changed = changed};
    redis_observe(asker->client, &asker->listener);
}

static bool is_as_wanted(void *arg)
{
    struct redis_asker *asker = arg;
    return redis_available(asker->client) == asker->wanted;
}

void redis_asker_await_available(struct redis_asker *asker, bool available, int64_t limit_ms)
{
    asker->wanted = available;
    assert_true(worker_loop_until(&asker->worker, is_as_wanted, asker, limit_ms));
}

void redis_asker_open_single(struct redis_asker *asker)
{
    redis_server_start(&asker->server, REDIS_DEFAULTS);
    redis_asker_open(asker, "redis://127.0.0.1", asker->server.port);
    redis_asker_await_available(asker, true, REDIS_ASKER_SOON_MS);
}

void redis_asker_open_cluster(struct redis_asker *asker)
{
    redis_asker_open(asker, "redis-cluster://127.0.0.1:1,localhost", asker->cluster[0].port);
    redis_asker_await_available(asker, true, REDIS_ASKER_SOON_MS);
}

/* ---- asking ---- */

static void take(void *arg, const struct resp_value *reply)
{
    struct redis_asker *asker = arg;
    struct slice text = reply ? reply->text : SLICE("nothing");
    asker->answered++;
    asker->without_reply += reply == NULL;
    asker->errors += reply && reply->type == RESP_ERROR;
    if (reply && reply->type == RESP_INTEGER)
        snprintf(asker->last, sizeof(asker->last), "%lld", (long long)reply->integer);
    else
        snprintf(asker->last, sizeof(asker->last), "%.*s",
                 SLICE_FORMAT(slice_first(text, sizeof(asker->last) - 1)));
}

bool redis_asker_is_done(const struct redis_asker *asker)
{
    return asker->answered == asker->asked;
}

static bool is_done(void *arg)
{
    return redis_asker_is_done(arg);
}

void redis_asker_await_answers(struct redis_asker *asker)
{
    assert_true(worker_loop_until(&asker->worker, is_done, asker, REDIS_ASKER_SOON_MS));
}

void redis_asker_start(struct redis_asker *asker, const char *line)
{
    struct slice words[WORDS_MAX];
    size_t count = 0;
    for (struct slice rest = slice_of(line); rest.data; count++) {
        assert_true(count < WORDS_MAX);
        rest = slice_split(rest, ' ', &words[count]);
    }
    asker->asked++;
    redis_command(asker->client, count > 1 ? words[1] : SLICE_NONE,
                  (struct redis_args){words, count}, take, asker);
}

const char *redis_asker_ask(struct redis_asker *asker, const char *line)
{
    redis_asker_start(asker, line);
    redis_asker_await_answers(asker);
    return asker->last;
}

const char *redis_asker_eval(struct redis_asker *asker, const struct redis_script *script,
                             const char *key, const char *argument)
{
    asker->asked++;
    redis_eval(asker->client, script, REDIS_ARGS(slice_of(key)), REDIS_ARGS(slice_of(argument)),
               take, asker);
    redis_asker_await_answers(asker);
    return asker->last;
}
