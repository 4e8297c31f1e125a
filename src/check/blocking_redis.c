#include "check/blocking_redis.h"

#include "net/tls.h"

#include <stdio.h>

enum { TURN_WAIT_MS = 20 };

static bool can_be_read(const struct redis_client *client)
{
    enum redis_problem problem = redis_client_problem(client);
    return redis_available(client) || problem == REDIS_OUT_OF_MEMORY ||
           problem == REDIS_WRITES_REFUSED;
}

static bool await_server(struct blocking_redis *errand)
{
    int64_t end_us = clock_microseconds() + (int64_t)BLOCKING_REDIS_PATIENCE_MS * 1000;
    while (!can_be_read(errand->client) && clock_microseconds() < end_us)
        loop_turn(&errand->loop, TURN_WAIT_MS);
    return can_be_read(errand->client);
}

static bool make_client(struct blocking_redis *errand, const struct redis_url *url,
                        const char *ca_file, char why[BLOCKING_REDIS_WHY_MAX])
{
    struct tls_context *tls = NULL;
    char error[TLS_ERROR_TEXT_MAX];
    if (url->tls && !(tls = tls_context_load_client(ca_file, error))) {
        snprintf(why, BLOCKING_REDIS_WHY_MAX, "%s", error);
        return false;
    }
    errand->client = redis_client_make(&(struct redis_client_options){.loop = &errand->loop,
                                                                      .streams = &errand->streams,
                                                                      .random = &errand->random,
                                                                      .metrics = &errand->metrics,
                                                                      .url = url,
                                                                      .tls = tls,
                                                                      .name = "rollcall-check"});
    tls_context_drop(&tls);
    if (!errand->client)
        snprintf(why, BLOCKING_REDIS_WHY_MAX, "memory is short");
    return errand->client != NULL;
}

/* The server's name and what is wrong with it, but no login. */
static void explain(const struct blocking_redis *errand, const struct redis_url *url,
                    char why[BLOCKING_REDIS_WHY_MAX])
{
    snprintf(why, BLOCKING_REDIS_WHY_MAX, "%s:%u: %s", url->seeds[0].host, url->seeds[0].port,
             redis_problem_text(redis_client_problem(errand->client)));
}

static bool connect_client(struct blocking_redis *errand, const char *text, const char *ca_file,
                           char why[BLOCKING_REDIS_WHY_MAX])
{
    struct redis_url url;
    bool connected = false;
    if (!redis_url_parse(slice_of(text), &url, why))
        return false;
    if (make_client(errand, &url, ca_file, why)) {
        connected = await_server(errand);
        if (!connected)
            explain(errand, &url, why);
    }
    explicit_bzero(&url, sizeof(url));
    return connected;
}

bool blocking_redis_open(struct blocking_redis *errand, const char *url, const char *ca_file,
                         char why[BLOCKING_REDIS_WHY_MAX])
{
    _Static_assert((int)BLOCKING_REDIS_WHY_MAX >= (int)REDIS_URL_ERROR_MAX,
                   "it holds that error too");
    memset(errand, 0, sizeof(*errand));
    snprintf(why, BLOCKING_REDIS_WHY_MAX, "the system gives no event loop");
    if (!loop_init(&errand->loop))
        return false;
    if (!stream_set_init(&errand->streams, &errand->loop)) {
        loop_free(&errand->loop);
        return false;
    }
    random_init_system(&errand->random);
    if (connect_client(errand, url, ca_file, why))
        return true;
    blocking_redis_close(errand);
    return false;
}

void blocking_redis_wait(struct blocking_redis *errand)
{
    while (errand->outstanding > 0)
        loop_turn(&errand->loop, TURN_WAIT_MS);
}

void blocking_redis_rest(struct blocking_redis *errand, int64_t rest_ms)
{
    int64_t end_us = clock_microseconds() + rest_ms * 1000;
    while (clock_microseconds() < end_us)
        loop_turn(&errand->loop, TURN_WAIT_MS);
}

void blocking_redis_close(struct blocking_redis *errand)
{
    redis_client_free(&errand->client);
    stream_set_free(&errand->streams);
    loop_free(&errand->loop);
}
