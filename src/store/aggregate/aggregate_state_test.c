/* The state store behind aggregators, on a single Redis server and on a cluster: the suite of all backends over real
 * links. */
#include "store/aggregate/aggregate_state.h"

#include "conformance/state_store_suite.h"
#include "support/aggregate_fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    WINDOW_MS = 1800,
    GRACE_MS = 1900,        /* longer than reaping is deferred after the start */
    TOLERANCE_MS = 800,     /* a busy machine stalls */
    LONG_WINDOW_MS = 10000, /* for the tests named many_, of users or leases */
    RENEWAL_DELAY_MS = 1,
};

struct backend {
    struct aggregate_fleet fleet;
    int64_t window_ms;
};

static struct backend the_backend;

static void start(void *context, int64_t grace_ms)
{
    struct backend *backend = context;
    struct aggregate_terms terms = {0};
    terms.values[AGGREGATE_LEASE_WINDOW_MS] = backend->window_ms;
    terms.values[AGGREGATE_OFFLINE_GRACE_MS] = grace_ms;
    terms.values[AGGREGATE_TYPING_RATE] = 1;
    aggregate_fleet_start(&backend->fleet, &terms, NULL);
}

static struct state_store *make_port(void *context)
{
    struct backend *backend = context;
    struct aggregate_client *client = aggregate_fleet_gateway(&backend->fleet);
    struct state_store *store = aggregate_state_make(&(struct aggregate_state_options){
        .client = client,
        .loop = &backend->fleet.redis.worker.loop,
        .gateway_id = slice_of(backend->fleet.names[backend->fleet.gateway_count - 1]),
        .lease_window_ms = backend->window_ms,
        .renewal_delay_ms = RENEWAL_DELAY_MS,
    });
    assert_non_null(store);
    return store;
}

static void stop(void *context)
{
    aggregate_fleet_stop(&((struct backend *)context)->fleet);
}

static void pass(void *context, int64_t duration_ms)
{
    worker_loop_run(&((struct backend *)context)->fleet.redis.worker, duration_ms);
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
    redis_fleet_poll(&((struct backend *)context)->fleet.redis);
}

static int run_suite(const char *name, bool cluster)
{
    struct backend *backend = &the_backend;
    struct state_store_suite_backend suite = {
        .name = name,
        .context = backend,
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
    aggregate_fleet_open(&backend->fleet, cluster);
    backend->window_ms = WINDOW_MS;
    cmocka_set_skip_filter("many_*");
    int failed = state_store_suite_run(&suite);
    cmocka_set_skip_filter(NULL);
    cmocka_set_test_filter("many_*");
    suite.lease_window_ms = backend->window_ms = LONG_WINDOW_MS;
    failed += state_store_suite_run(&suite);
    cmocka_set_test_filter(NULL);
    aggregate_fleet_close(&backend->fleet);
    return failed;
}

int main(void)
{
    return run_suite("aggregators, Redis", false) + run_suite("aggregators, cluster", true);
}
