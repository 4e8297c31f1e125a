#include "support/redis_state_backend.h"

#include "store/redis/state/redis_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum {
    WINDOW_MS = 1800,
    GRACE_MS = 1900,        /* longer than reaping is deferred after the start */
    TOLERANCE_MS = 800,     /* a busy machine stalls; the memory backend's time is exact */
    LONG_WINDOW_MS = 10000, /* for the tests named many_, of users or leases */
};

struct redis_backend {
    struct redis_fleet *fleet;
    int64_t window_ms;
    int64_t grace_ms;
    unsigned ports;
};

static void start(void *context, int64_t grace_ms)
{
    struct redis_backend *backend = context;
    backend->grace_ms = grace_ms;
    backend->ports = 0;
    redis_fleet_empty(backend->fleet);
}

static struct state_store *make_port(void *context)
{
    struct redis_backend *backend = context;
    struct worker_loop *worker = &backend->fleet->worker;
    unsigned number = backend->ports++;
    char gateway[16];
    snprintf(gateway, sizeof(gateway), "gateway-%u", number);
    return redis_state_make(&(struct redis_state_options){
        .client = backend->fleet->clients[number % REDIS_FLEET_CLIENTS],
        .loop = &worker->loop,
        .random = &worker->random,
        .metrics = &worker->metrics,
        .gateway_id = slice_of(gateway),
        .lease_window_ms = backend->window_ms,
        .offline_grace_ms = backend->grace_ms,
    });
}

static void stop(void *context)
{
    redis_fleet_settle(((struct redis_backend *)context)->fleet, 2);
}

static void pass(void *context, int64_t duration_ms)
{
    worker_loop_run(&((struct redis_backend *)context)->fleet->worker, duration_ms);
}

static int64_t wall_ms(void *context)
{
    (void)context;
    struct clock clock;
    clock_advance(&clock);
    return clock.wall_ms;
}

static void poll(void *context)
{
    redis_fleet_poll(((struct redis_backend *)context)->fleet);
}

int redis_state_backend_suite(struct redis_fleet *fleet, const char *name)
{
    struct redis_backend context = {.fleet = fleet, .window_ms = WINDOW_MS};
    struct state_store_suite_backend backend = {
        .name = name,
        .context = &context,
        .lease_window_ms = WINDOW_MS,
        .offline_grace_ms = GRACE_MS,
        .tolerance_ms = TOLERANCE_MS,
        .start = start,
        .port = make_port,
        .stop = stop,
        .pass = pass,
        .wall_ms = wall_ms,
        .poll = poll,
    };
    cmocka_set_skip_filter("many_*");
    int failed = state_store_suite_run(&backend);
    cmocka_set_skip_filter(NULL);
    cmocka_set_test_filter("many_*");
    backend.lease_window_ms = context.window_ms = LONG_WINDOW_MS;
    failed += state_store_suite_run(&backend);
    cmocka_set_test_filter(NULL);
    return failed;
}
