/* What a worker gives its clients of other servers: a loop in real time, streams, chance and counters. */
#ifndef ROLLCALL_TESTS_WORKER_LOOP_H
#define ROLLCALL_TESTS_WORKER_LOOP_H

#include "base/random.h"
#include "metrics/metrics.h"
#include "net/loop.h"
#include "net/stream.h"
#include "redis/redis_client.h"

#include <stdbool.h>
#include <stdint.h>

struct worker_loop {
    struct loop loop;
    struct stream_set streams;
    struct random random;
    struct metrics metrics;
};

/* Fails the test when the system gives no loop. */
void worker_loop_open(struct worker_loop *worker);
void worker_loop_close(struct worker_loop *worker);

/* A client of Redis on this loop. `place` is a URL up to its last port, which is `port`. */
struct redis_client *worker_loop_redis(struct worker_loop *worker, const char *place,
                                       uint16_t port);

/* Turns until it holds, at most so long; answers whether it does. */
bool worker_loop_until(struct worker_loop *worker, bool (*holds)(void *arg), void *arg,
                       int64_t limit_ms);

/* Turns for so long. */
void worker_loop_run(struct worker_loop *worker, int64_t duration_ms);

#endif
