/*
 * Finds the master of a Redis that sentinels watch, and follows it when it changes.
 *
 * One sentinel is asked at a time (SENTINEL GET-MASTER-ADDR-BY-NAME). It is asked again every REDIS_SENTINEL_REFRESH_MS, at once
 * when it announces a change (+switch-master), and every REDIS_SENTINEL_HURRY_MS while the master has a problem. A sentinel that
 * does not answer within REDIS_SENTINEL_LIMIT_MS, or does not know the master, is left for the next one; so is one that
 * names the same bad master REDIS_SENTINEL_REPEATS_MAX times, because its view may be old. Whether the server is a master is not
 * taken from the sentinel: the handshake of each connection verifies its role (redis_handshake.h).
 *
 *   WAITING ──timer──► ASKING ──address──► WAITING
 *                        └── no answer, unknown, an error: the next sentinel ──► WAITING
 *
 * The sentinels are asked without a login; those that want one get that of the URL.
 *
 * Embedded in the cluster. One thread, that of the loop.
 */
#ifndef ROLLCALL_REDIS_REDIS_SENTINEL_H
#define ROLLCALL_REDIS_REDIS_SENTINEL_H

#include "redis/redis_connection.h"

#include <stdbool.h>

enum {
    REDIS_SENTINEL_REFRESH_MS = 10000,
    REDIS_SENTINEL_HURRY_MS = 300,
    REDIS_SENTINEL_LIMIT_MS = 2000,
    REDIS_SENTINEL_REPEATS_MAX = 5,
};

struct redis_sentinel;

/* A sentinel names another server than before, or the first one. */
typedef void (*redis_master_named)(struct redis_sentinel *sentinel,
                                   const struct redis_address *master);

struct redis_sentinel {
    struct redis_connection_context context;
    const struct redis_url *url;
    redis_master_named on_master;
    struct redis_connection *connection; /* to the sentinel at `asked`; NULL: not made yet */
    size_t asked;                        /* index of the seeds */
    size_t misses;                       /* sentinels in a row that did not name a server */
    unsigned repeats;                    /* answers in a row with the same bad master */
    bool asking;
    bool leaving;    /* the next turn of the timer leaves this sentinel */
    bool with_login; /* a sentinel wanted one */
    bool hurried;
    bool named; /* `master` is what was named last */
    struct redis_address master;
    enum redis_problem
        problem; /* why none of the sentinels names a server; REDIS_FINE when one does */
    struct wheel_timer timer;
};

/* Starts to ask. `context` is that of the connections to Redis; its loop, streams, TLS and report are used. The caller sets
 * `on_master` before; the URL outlives it. */
void redis_sentinel_open(struct redis_sentinel *sentinel,
                         const struct redis_connection_context *context,
                         const struct redis_url *url);

/* Only while the loop makes no turn. */
void redis_sentinel_close(struct redis_sentinel *sentinel);

/* The server has a problem, or has none any more: ask more often, or no longer. */
void redis_sentinel_hurry(struct redis_sentinel *sentinel, bool hurried);

#endif
