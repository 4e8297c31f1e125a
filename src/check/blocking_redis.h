/*
 * Redis for a command: a client with a loop of its own, asked many things at once and waited for.
 *
 *     struct blocking_redis errand;
 *     if (!blocking_redis_open(&errand, url, NULL, why)) …
 *     redis_command(errand.client, …, done, arg);
 *     errand.outstanding++;                          done() takes it back
 *     blocking_redis_wait(&errand);
 *     blocking_redis_close(&errand);
 *
 * Only for programs that have nothing else to do: it blocks.
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
    size_t outstanding; /* commands that are not answered yet; the caller counts */
};

/* Connects. False with a sentence in `why`, in which no login stands. A server that refuses writes but can
 * be read (it is full) will do. `ca_file` says whom to trust where TLS is spoken; NULL: the system's. */
bool blocking_redis_open(struct blocking_redis *errand, const char *url, const char *ca_file,
                         char why[BLOCKING_REDIS_WHY_MAX]);

/* Turns the loop until nothing is outstanding; every command is answered in bounded time. */
void blocking_redis_wait(struct blocking_redis *errand);

/* Lets so much time pass. */
void blocking_redis_rest(struct blocking_redis *errand, int64_t rest_ms);

/* Whatever is outstanding is answered with NULL first. */
void blocking_redis_close(struct blocking_redis *errand);

#endif
