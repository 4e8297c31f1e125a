#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TURN_WAIT_MS = 20 };

void worker_loop_open(struct worker_loop *worker)
{
    memset(worker, 0, sizeof(*worker));
    assert_true(loop_init(&worker->loop));
    assert_true(stream_set_init(&worker->streams, &worker->loop));
    random_init_system(&worker->random);
}

void worker_loop_close(struct worker_loop *worker)
{
    stream_set_free(&worker->streams);
    loop_free(&worker->loop);
}

struct redis_client *worker_loop_redis(struct worker_loop *worker, const char *url_start,
                                       uint16_t port)
{
    char text[64];
    snprintf(text, sizeof(text), "%s:%u", url_start, port);
    return worker_loop_redis_url(worker, text);
}

struct redis_client *worker_loop_redis_url(struct worker_loop *worker, const char *text)
{
    char error[REDIS_URL_ERROR_MAX];
    struct redis_url url;
    assert_true(redis_url_parse(slice_of(text), &url, error));
    struct redis_client *client =
        redis_client_make(&(struct redis_client_options){.loop = &worker->loop,
                                                         .streams = &worker->streams,
                                                         .random = &worker->random,
                                                         .metrics = &worker->metrics,
                                                         .url = &url,
                                                         .name = "gw-test"});
    assert_non_null(client);
    return client;
}

bool worker_loop_until(struct worker_loop *worker, worker_loop_condition holds, void *arg,
                       int64_t limit_ms)
{
    int64_t end_us = clock_microseconds() + limit_ms * 1000;
    while (!holds(arg) && clock_microseconds() < end_us)
        loop_turn(&worker->loop, TURN_WAIT_MS);
    return holds(arg);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void worker_loop_run(struct worker_loop *worker, int64_t duration_ms)
{
    worker_loop_until(worker, never, NULL, duration_ms);
}
