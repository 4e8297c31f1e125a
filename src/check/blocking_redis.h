/*
 * Redis for a command: a client with a loop of its own, asked many things at once and waited for.
 *
 *     struct redis_errand errand;
 *     if (!redis_errand_open(&errand, url, NULL, why)) …
 *     redis_command(errand.client, …, done, arg);
 *     errand.outstanding++;                          done() takes it back
 *     redis_errand_wait(&errand);
 *     redis_errand_close(&errand);
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
    REDIS_ERRAND_WHY_MAX = 512,
    REDIS_ERRAND_PATIENCE_MS = 5000, /* for the first connection */
};

struct redis_errand {
    struct loop loop;
    struct stream_set streams;
    struct random random;
    struct metrics metrics;
    struct redis_client *client;
    size_t outstanding; /* commands that are not answered yet; the caller counts */
};

/* Connects. False with a sentence in `why`, in which no login stands. A server that refuses writes but can
 * be read (it is full) will do. `ca_file` says whom to trust where TLS is spoken; NULL: the system's. */
bool redis_errand_open(struct redis_errand *errand, const char *url, const char *ca_file,
                       char why[REDIS_ERRAND_WHY_MAX]);

/* Turns the loop until nothing is outstanding; every command is answered in bounded time. */
void redis_errand_wait(struct redis_errand *errand);

/* Lets so much time pass. */
void redis_errand_rest(struct redis_errand *errand, int64_t rest_ms);

/* Whatever is outstanding is answered with NULL first. */
void redis_errand_close(struct redis_errand *errand);

#endif
