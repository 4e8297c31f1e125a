/* The parts of a worker that a client of another server needs: a loop in real time, streams, randomness, metrics. */
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

/* Fails the test when the system has no descriptor or memory for a loop. */
void worker_loop_open(struct worker_loop *worker);
void worker_loop_close(struct worker_loop *worker);

/* Makes a Redis client on this loop. The URL is `url_start`, a colon and `port`. */
struct redis_client *worker_loop_redis(struct worker_loop *worker, const char *url_start,
                                       uint16_t port);

/* The same with the whole URL. */
struct redis_client *worker_loop_redis_url(struct worker_loop *worker, const char *text);

/* A condition that a test waits for. */
typedef bool (*worker_loop_condition)(void *arg);

/* Runs the loop until the condition holds, at most `limit_ms`. Returns whether it holds. */
bool worker_loop_until(struct worker_loop *worker, worker_loop_condition holds, void *arg,
                       int64_t limit_ms);

/* Runs the loop for `duration_ms`. */
void worker_loop_run(struct worker_loop *worker, int64_t duration_ms);

#endif
