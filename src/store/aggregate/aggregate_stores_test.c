/* The typing, budget, call, graph and recovery stores behind aggregators: the suites of all backends, over real links, on a
 * single Redis server and on a cluster. */
#include "store/aggregate/aggregate_stores.h"

#include "conformance/budget_store_suite.h"
#include "conformance/call_store_suite.h"
#include "conformance/graph_store_suite.h"
#include "conformance/recovery_store_suite.h"
#include "conformance/typing_store_suite.h"
#include "store/aggregate/aggregate_state.h"
#include "support/aggregate_fleet.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum {
    WINDOW_MS = 60000,
    TYPING_TTL_MS = 5000,
    RING_TIMEOUT_MS = 30000,
    RECONNECT_GRACE_MS = 2000,
    RECOVERY_MS = 60000,
};

struct backend {
    struct aggregate_fleet fleet;
    struct state_store *state;
    struct graph_store *graphs[GRAPH_STORE_SUITE_PORTS];
    struct aggregate_client *clients[AGGREGATE_FLEET_GATEWAYS];
    size_t next_client;
};

static struct backend the_backend;

static void start(void *context)
{
    struct backend *backend = context;
    struct aggregate_terms terms = {{
        [AGGREGATE_LEASE_WINDOW_MS] = WINDOW_MS,
        [AGGREGATE_TYPING_TTL_MS] = TYPING_TTL_MS,
        [AGGREGATE_TYPING_RATE] = 1,
        [AGGREGATE_RING_TIMEOUT_MS] = RING_TIMEOUT_MS,
        [AGGREGATE_RECONNECT_GRACE_MS] = RECONNECT_GRACE_MS,
        [AGGREGATE_RECOVERY_MS] = RECOVERY_MS,
    }};
    aggregate_fleet_start(&backend->fleet, &terms, &backend->fleet.redis.clock);
    for (size_t i = 0; i < AGGREGATE_FLEET_GATEWAYS; i++)
        backend->clients[i] = aggregate_fleet_gateway(&backend->fleet);
    backend->next_client = 0;
}

static struct aggregate_client *next_client(struct backend *backend)
{
    return backend->clients[backend->next_client++ % AGGREGATE_FLEET_GATEWAYS];
}

static void stop(void *context)
{
    aggregate_fleet_stop(&((struct backend *)context)->fleet);
}

static void pass(void *context, int64_t duration_ms)
{
    struct redis_fleet *redis = &((struct backend *)context)->fleet.redis;
    redis_fleet_pass(redis, duration_ms);
    redis->clock.now_ms += duration_ms;
}

static void poll(void *context)
{
    redis_fleet_poll(&((struct backend *)context)->fleet.redis);
}

static void settle(void *context)
{
    struct backend *backend = context;
    aggregate_fleet_settle(&backend->fleet);
    worker_loop_run(&backend->fleet.redis.worker, 20); /* notices that nobody waits for */
    aggregate_fleet_settle(&backend->fleet);
}

static int64_t wall_ms(void *context)
{
    return ((struct backend *)context)->fleet.redis.clock.wall_ms;
}

/* ---- ports ---- */

static struct typing_store *make_typing(void *context)
{
    return aggregate_typing_make(next_client(context));
}

static struct budget_store *make_budget(void *context)
{
    return aggregate_budget_make(next_client(context));
}

static struct call_store *make_calls(void *context)
{
    return aggregate_call_make(next_client(context));
}

static struct recovery_store *make_recovery(void *context)
{
    struct backend *backend = context;
    return aggregate_recovery_make(next_client(backend), &backend->fleet.redis.clock, 7);
}

/* ---- social graphs, beside a state store ---- */

static void start_graphs(void *context)
{
    struct backend *backend = context;
    start(context);
    backend->state = aggregate_state_make(&(struct aggregate_state_options){
        .client = backend->clients[2],
        .loop = &backend->fleet.redis.worker.loop,
        .gateway_id = slice_of(backend->fleet.names[2]),
        .lease_window_ms = WINDOW_MS,
    });
    assert_non_null(backend->state);
    for (size_t i = 0; i < GRAPH_STORE_SUITE_PORTS; i++) {
        backend->graphs[i] =
            aggregate_graph_make(backend->clients[i], &backend->fleet.redis.worker.loop);
        assert_non_null(backend->graphs[i]);
    }
}

/* Operations of two ports may overtake each other, so what the other port was given is done first. */
static struct graph_store *graph_port(void *context, size_t index)
{
    struct backend *backend = context;
    aggregate_fleet_settle(&backend->fleet);
    return backend->graphs[index];
}

static struct state_store *state_port(void *context)
{
    return ((struct backend *)context)->state;
}

static void stop_graphs(void *context)
{
    struct backend *backend = context;
    for (size_t i = 0; i < GRAPH_STORE_SUITE_PORTS; i++)
        graph_store_free(&backend->graphs[i]);
    aggregate_fleet_settle(&backend->fleet);
    state_store_free(&backend->state);
    stop(context);
}

/* ---- the suites ---- */

static int run_suites(struct backend *backend)
{
    int failed =
        typing_store_suite_run(&(struct typing_store_suite_backend){.name = "aggregators",
                                                                    .context = backend,
                                                                    .ttl_ms = TYPING_TTL_MS,
                                                                    .interval_ms = 1000,
                                                                    .start = start,
                                                                    .port = make_typing,
                                                                    .stop = stop,
                                                                    .pass = pass,
                                                                    .poll = poll});
    failed += budget_store_suite_run(&(struct budget_store_suite_backend){.name = "aggregators",
                                                                          .context = backend,
                                                                          .start = start,
                                                                          .port = make_budget,
                                                                          .stop = stop,
                                                                          .pass = pass,
                                                                          .poll = poll});
    failed += call_store_suite_run(
        &(struct call_store_suite_backend){.name = "aggregators",
                                           .context = backend,
                                           .ring_timeout_ms = RING_TIMEOUT_MS,
                                           .reconnect_grace_ms = RECONNECT_GRACE_MS,
                                           .lease_window_ms = WINDOW_MS,
                                           .start = start,
                                           .port = make_calls,
                                           .stop = stop,
                                           .pass = pass,
                                           .wall_ms = wall_ms,
                                           .poll = poll,
                                           .settle = settle});
    failed += graph_store_suite_run(&(struct graph_store_suite_backend){.name = "aggregators",
                                                                        .context = backend,
                                                                        .start = start_graphs,
                                                                        .port = graph_port,
                                                                        .state = state_port,
                                                                        .stop = stop_graphs,
                                                                        .poll = poll});
    failed +=
        recovery_store_suite_run(&(struct recovery_store_suite_backend){.name = "aggregators",
                                                                        .context = backend,
                                                                        .recovery_ms = RECOVERY_MS,
                                                                        .start = start,
                                                                        .port = make_recovery,
                                                                        .stop = stop,
                                                                        .pass = pass,
                                                                        .settle = settle});
    return failed;
}

int main(void)
{
    int failed = 0;
    for (int cluster = 0; cluster < 2; cluster++) {
        aggregate_fleet_open(&the_backend.fleet, cluster);
        failed += run_suites(&the_backend);
        aggregate_fleet_close(&the_backend.fleet);
    }
    return failed;
}
