#include "check/blocking_redis.h"

#include "net/tls.h"

#include <stdio.h>

enum { TURN_WAIT_MS = 20 };

static bool is_redis_readable(const struct redis_client *client)
{
    enum redis_problem problem = redis_client_problem(client);
    return redis_available(client) || problem == REDIS_OUT_OF_MEMORY ||
           problem == REDIS_WRITES_REFUSED;
}

/* Returns NULL and explains in `error`. */
static struct tls_context *load_blocking_tls(const struct blocking_redis_options *options,
                                             char error[TLS_ERROR_TEXT_MAX])
{
    struct tls_context *tls = tls_context_load_client(options->ca_file, error);
    if (tls && options->certificate_file &&
        !tls_context_show_certificate(tls, options->certificate_file, options->key_file, error))
        tls_context_drop(&tls);
    return tls;
}

static bool make_blocking_client(struct blocking_redis *redis, const struct redis_url *url,
                                 const struct blocking_redis_options *options,
                                 char why[BLOCKING_REDIS_WHY_MAX])
{
    struct tls_context *tls = NULL;
    char error[TLS_ERROR_TEXT_MAX];
    if (url->tls && !(tls = load_blocking_tls(options, error))) {
        snprintf(why, BLOCKING_REDIS_WHY_MAX, "%s", error);
        return false;
    }
    redis->client = redis_client_make(&(struct redis_client_options){.loop = &redis->loop,
                                                                     .streams = &redis->streams,
                                                                     .random = &redis->random,
                                                                     .metrics = &redis->metrics,
                                                                     .url = url,
                                                                     .tls = tls,
                                                                     .name = "rollcall-check"});
    tls_context_drop(&tls);
    if (!redis->client)
        snprintf(why, BLOCKING_REDIS_WHY_MAX, "out of memory");
    return redis->client != NULL;
}

static bool connect_blocking_client(struct blocking_redis *redis,
                                    const struct blocking_redis_options *options,
                                    char why[BLOCKING_REDIS_WHY_MAX])
{
    struct redis_url url;
    bool connected = false;
    if (!redis_url_parse(slice_of(options->url), &url, why))
        return false;
    if (make_blocking_client(redis, &url, options, why)) {
        int64_t end_us = clock_microseconds() + (int64_t)BLOCKING_REDIS_PATIENCE_MS * 1000;
        while (!is_redis_readable(redis->client) && clock_microseconds() < end_us)
            loop_turn(&redis->loop, TURN_WAIT_MS);
        connected = is_redis_readable(redis->client);
        if (!connected) /* name the server and its problem, but no credentials */
            snprintf(why, BLOCKING_REDIS_WHY_MAX,
                     "Redis at %s:%u: %s (waited %d s): does it run there, and is --state right?",
                     url.seeds[0].host, url.seeds[0].port,
                     redis_problem_text(redis_client_problem(redis->client)),
                     BLOCKING_REDIS_PATIENCE_MS / 1000);
    }
    explicit_bzero(&url, sizeof(url));
    return connected;
}

bool blocking_redis_open(struct blocking_redis *redis, const struct blocking_redis_options *options,
                         char why[BLOCKING_REDIS_WHY_MAX])
{
    _Static_assert((int)BLOCKING_REDIS_WHY_MAX >= (int)REDIS_URL_ERROR_MAX,
                   "`why` must hold an error of the URL too");
    memset(redis, 0, sizeof(*redis));
    snprintf(why, BLOCKING_REDIS_WHY_MAX, "cannot create an event loop");
    if (!loop_init(&redis->loop))
        return false;
    if (!stream_set_init(&redis->streams, &redis->loop)) {
        loop_free(&redis->loop);
        return false;
    }
    random_init_system(&redis->random);
    if (connect_blocking_client(redis, options, why))
        return true;
    blocking_redis_close(redis);
    return false;
}

void blocking_redis_wait(struct blocking_redis *redis)
{
    while (redis->outstanding > 0)
        loop_turn(&redis->loop, TURN_WAIT_MS);
}

void blocking_redis_rest(struct blocking_redis *redis, int64_t rest_ms)
{
    int64_t end_us = clock_microseconds() + rest_ms * 1000;
    while (clock_microseconds() < end_us)
        loop_turn(&redis->loop, TURN_WAIT_MS);
}

void blocking_redis_close(struct blocking_redis *redis)
{
    redis_client_free(&redis->client);
    stream_set_free(&redis->streams);
    loop_free(&redis->loop);
}
