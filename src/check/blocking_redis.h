/*
 * A Redis client for a command-line program: it has its own loop, sends many commands at once and blocks until
 * they are answered.
 *
 *     struct blocking_redis redis;
 *     if (!blocking_redis_open(&redis, &options, why)) …
 *     redis_command(redis.client, …, done, arg);
 *     redis.outstanding++;                           done() decrements it
 *     blocking_redis_wait(&redis);
 *     blocking_redis_close(&redis);
 *
 * It blocks, so it is only for programs that have nothing else to do.
 */
#ifndef ROLLCALL_CHECK_BLOCKING_REDIS_H
#define ROLLCALL_CHECK_BLOCKING_REDIS_H

#include "base/random.h"
#include "metrics/metrics.h"
#include "net/loop.h"
#include "net/stream.h"
#include "redis/redis_client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BLOCKING_REDIS_WHY_MAX = 512,
    BLOCKING_REDIS_PATIENCE_MS = 5000, /* for the first connection */
};

struct blocking_redis {
    struct loop loop;
    struct stream_set streams;
    struct random random;
    struct metrics metrics;
    struct redis_client *client;
    size_t outstanding; /* commands not answered yet, counted by the caller */
};

/* Where to connect. The files are for TLS, in PEM. */
struct blocking_redis_options {
    const char *url;
    const char *ca_file;          /* NULL: the system's certificates are trusted */
    const char *certificate_file; /* NULL: none is shown; set with key_file */
    const char *key_file;
};

/* Connects. On failure it returns false with a sentence in `why` that contains no credentials. A server that
 * refuses writes but answers reads (it is full) is good enough. */
bool blocking_redis_open(struct blocking_redis *redis, const struct blocking_redis_options *options,
                         char why[BLOCKING_REDIS_WHY_MAX]);

/* Runs the loop until nothing is outstanding; every command is answered in bounded time. */
void blocking_redis_wait(struct blocking_redis *redis);

/* Runs the loop for `rest_ms`. */
void blocking_redis_rest(struct blocking_redis *redis, int64_t rest_ms);

/* Answers outstanding commands with NULL first. */
void blocking_redis_close(struct blocking_redis *redis);

#endif
