#include "app/commands/aggregate_command.h"

#include "aggregate/aggregate_service.h"
#include "app/commands/side_process.h"
#include "app/fleet.h"
#include "app/gateway/worker_ports.h"
#include "app/serve_options.h"
#include "base/container.h"
#include "bus/aggregate/aggregate_topics.h"
#include "log/log.h"
#include "metrics/exposition.h"
#include "redis/redis_info.h"
#include "store/aggregate/aggregate_serve.h"

#include <stdio.h>
#include <stdlib.h>

enum { DRAIN_LIMIT_MS = 5000, DRAIN_TURN_MS = 20, SAMPLE_MS = 1000 };

/* Gateways hear that it leaves before its links close. */
enum { LEAVE_MS = 300 };

struct aggregate_process {
    struct side_process frame;
    struct metrics metrics;
    struct exposition exposition;
    struct fleet *fleet;
    struct redis_client *redis;
    struct redis_observer redis_observer;
    struct redis_info *redis_info;
    struct aggregate_stores *stores;
    struct aggregate_topics *topics;
    struct aggregate_service *service;
    struct wheel_timer sampling;
    char name[PEER_NAME_BYTES_MAX]; /* as a peer */
};

/* What the process keeps of one gateway. */
struct aggregate_kept {
    struct aggregate_stores_session *stores;
    struct aggregate_topics_session *topics;
};

/* ---- gateways ---- */

static void free_aggregate_kept(struct aggregate_kept *kept)
{
    aggregate_stores_close(&kept->stores);
    aggregate_topics_close(&kept->topics);
    free(kept);
}

static void *on_gateway_opened(void *arg, struct aggregate_session *session,
                               const struct aggregate_frame *hello)
{
    struct aggregate_process *process = arg;
    struct aggregate_kept *kept = calloc(1, sizeof(*kept));
    if (!kept)
        return NULL;
    kept->stores = aggregate_stores_open(process->stores, session, hello);
    kept->topics = aggregate_topics_open(process->topics, session);
    if (kept->stores && kept->topics)
        return kept;
    free_aggregate_kept(kept);
    return NULL;
}

static void on_gateway_closed(void *arg, void *kept)
{
    (void)arg;
    free_aggregate_kept(kept);
}

static bool on_gateway_call(void *arg, void *kept, struct aggregate_served *served,
                            struct slice body)
{
    struct aggregate_kept *gateway = kept;
    (void)arg;
    return aggregate_codec_has(served->operation)
               ? aggregate_stores_serve(gateway->stores, served, body)
               : aggregate_topics_serve(gateway->topics, served, body);
}

static const struct aggregate_service_owner SERVICE_OWNER = {on_gateway_opened, on_gateway_closed,
                                                             on_gateway_call};

/* ---- Redis ---- */

static void on_redis_availability(struct redis_observer *observer, bool available)
{
    struct aggregate_process *process =
        CONTAINER_OF(observer, struct aggregate_process, redis_observer);
    aggregate_service_set_available(process->service, available);
}

static bool make_aggregate_redis(struct aggregate_process *process)
{
    char error[FLEET_ERROR_TEXT_MAX];
    snprintf(process->name, sizeof(process->name), "aggregate:%s",
             process->frame.config->gateway.node_id);
    process->fleet = fleet_make(process->frame.config, slice_of(process->name), error);
    if (!process->fleet)
        return side_process_fail(&process->frame, "start", error);
    process->redis = redis_client_make(&(struct redis_client_options){
        .loop = &process->frame.loop,
        .streams = &process->frame.streams,
        .random = &process->frame.random,
        .metrics = &process->metrics,
        .url = &process->fleet->redis,
        .tls = process->fleet->redis_tls,
        .name = process->name,
        .report = &process->fleet->report,
    });
    if (process->redis)
        process->redis_info =
            redis_info_make(process->redis, &process->frame.loop, &process->metrics);
    return process->redis_info || side_process_fail(&process->frame, "start", "out of memory");
}

static bool make_aggregate_stores(struct aggregate_process *process)
{
    process->stores = aggregate_stores_make(&(struct aggregate_stores_options){
        .client = process->redis,
        .loop = &process->frame.loop,
        .random = &process->frame.random,
        .metrics = &process->metrics,
        .id = slice_of(process->name),
        .terms = worker_ports_terms(process->frame.config),
        .hash_seed = random_u64(&process->frame.random),
    });
    process->topics = aggregate_topics_make(process->redis, &process->metrics,
                                            random_u64(&process->frame.random));
    return (process->stores && process->topics) ||
           side_process_fail(&process->frame, "start", "out of memory");
}

/* ---- listening ---- */

static bool listen_for_aggregated_gateways(struct aggregate_process *process)
{
    char error[LISTENER_ERROR_TEXT_MAX];
    process->service = aggregate_service_open(
        &(struct aggregate_service_options){
            .links = {.loop = &process->frame.loop,
                      .streams = &process->frame.streams,
                      .random = &process->frame.random,
                      .secret = process->fleet->peer_secret,
                      .name = slice_of(process->name),
                      .tls = process->fleet->peer_accept},
            .terms = worker_ports_terms(process->frame.config),
            .metrics = &process->metrics,
            .address = process->frame.config->peer.listen,
            .owner = &SERVICE_OWNER,
            .arg = process,
        },
        error);
    if (!process->service)
        return side_process_fail(&process->frame, "peer.listen", error);
    process->redis_observer.on_availability_changed = on_redis_availability;
    redis_observe(process->redis, &process->redis_observer);
    aggregate_service_set_available(process->service, redis_available(process->redis));
    return true;
}

/* ---- pages ---- */

static const char *aggregate_unready(void *arg)
{
    const struct aggregate_process *process = arg;
    if (process->frame.is_draining)
        return "draining";
    return redis_available(process->redis) ? NULL : "Redis does not answer";
}

static void write_aggregate_metrics(void *arg, struct buffer *out)
{
    struct aggregate_process *process = arg;
    exposition_write(out, &process->exposition, process->frame.loop.clock.now_ms);
}

static void sample_aggregate_metrics(struct wheel_timer *timer)
{
    struct aggregate_process *process = CONTAINER_OF(timer, struct aggregate_process, sampling);
    bool is_available = redis_available(process->redis);
    metrics_set(&process->metrics, METRIC_STATE_AVAILABLE, is_available);
    metrics_set(&process->metrics, METRIC_REDIS_AVAILABLE, is_available);
    exposition_sample(&process->exposition, process->frame.loop.clock.now_ms);
    loop_set_timer(&process->frame.loop, timer, process->frame.loop.clock.now_ms + SAMPLE_MS);
}

static bool serve_aggregate_pages(struct aggregate_process *process)
{
    const struct clock *clock = &process->frame.loop.clock;
    exposition_init(&process->exposition, clock->now_ms, clock->wall_ms);
    exposition_add(&process->exposition, &process->metrics);
    process->sampling.fire = sample_aggregate_metrics;
    sample_aggregate_metrics(&process->sampling);
    return side_process_serve_pages(&process->frame, "ops.listen",
                                    process->frame.config->ops.listen, aggregate_unready,
                                    write_aggregate_metrics, process);
}

/* ---- the end ---- */

static void turn_aggregate_loop_for(struct loop *loop, int64_t duration_ms)
{
    int64_t until_ms = loop->clock.now_ms + duration_ms;
    while (loop->clock.now_ms < until_ms)
        loop_turn(loop, DRAIN_TURN_MS);
}

static void drain_aggregate(struct aggregate_process *process)
{
    struct loop *loop = &process->frame.loop;
    int64_t until_ms = loop->clock.now_ms + DRAIN_LIMIT_MS;
    log_info("draining", "limit_ms=%d", DRAIN_LIMIT_MS);
    aggregate_service_drain(process->service);
    side_process_drain_pages(&process->frame);
    turn_aggregate_loop_for(loop, LEAVE_MS);
    while (!aggregate_service_is_drained(process->service) && loop->clock.now_ms < until_ms)
        loop_turn(loop, DRAIN_TURN_MS);
    side_process_end_pages(&process->frame);
}

/* Closing the Redis client answers all calls, so the service is freed after it. */
static void free_aggregate_process(struct aggregate_process *process)
{
    redis_unobserve(&process->redis_observer);
    redis_info_free(&process->redis_info);
    redis_client_close(process->redis);
    aggregate_service_free(&process->service);
    aggregate_topics_free(&process->topics);
    aggregate_stores_free(&process->stores);
    redis_client_free(&process->redis);
    fleet_free(&process->fleet);
    exposition_free(&process->exposition);
    side_process_free(&process->frame);
}

/* ---- running ---- */

static void print_aggregate_start(const struct aggregate_process *process)
{
    const struct config *config = process->frame.config;
    log_info("aggregating", "node=%s", log_quote(slice_of(config->gateway.node_id)));
    side_process_print_address("aggregator on ", config->peer.listen,
                               aggregate_service_port(process->service));
    if (process->frame.pages)
        side_process_print_address("operations at http://", config->ops.listen,
                                   process_pages_port(process->frame.pages));
    fflush(stdout);
}

/* If it cannot start, the process ends, so nothing is undone. */
static int run_aggregate(const struct config *config)
{
    /* As in server_run(): a start that fails frees nothing, and leak checkers find it here. */
    static struct aggregate_process *volatile made;
    struct aggregate_process *process = made = calloc(1, sizeof(*process));
    if (!process || !side_process_init(&process->frame, "aggregate", config) ||
        !make_aggregate_redis(process) || !make_aggregate_stores(process) ||
        !listen_for_aggregated_gateways(process) || !serve_aggregate_pages(process))
        return SIDE_PROCESS_EXIT_FAILED;
    print_aggregate_start(process);
    side_process_run(&process->frame);
    drain_aggregate(process);
    free_aggregate_process(process);
    free(process);
    log_info("stopped", "node=%s", log_quote(slice_of(config->gateway.node_id)));
    return 0;
}

int aggregate_command(int argc, char **argv)
{
    return serve_options_run(argc, argv, run_aggregate);
}
