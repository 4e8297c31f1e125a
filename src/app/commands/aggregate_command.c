#include "app/commands/aggregate_command.h"

#include "aggregate/aggregate_service.h"
#include "app/commands/process_pages.h"
#include "app/fleet.h"
#include "app/gateway/worker_ports.h"
#include "app/serve_options.h"
#include "base/container.h"
#include "bus/aggregate/aggregate_topics.h"
#include "log/log.h"
#include "metrics/exposition.h"
#include "redis/redis_info.h"
#include "store/aggregate/aggregate_serve.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, DRAIN_LIMIT_MS = 5000, DRAIN_TURN_MS = 20, SAMPLE_MS = 1000 };

/* Gateways hear that it leaves before its links close. */
enum { LEAVE_MS = 300 };

struct aggregate_process {
    const struct config *config;
    struct loop loop;
    struct stream_set streams;
    struct random random;
    struct metrics metrics;
    struct exposition exposition;
    struct fleet *fleet;
    struct redis_client *redis;
    struct redis_observer redis_observer;
    struct redis_info *redis_info;
    struct aggregate_stores *stores;
    struct aggregate_topics *topics;
    struct aggregate_service *service;
    struct process_pages *pages; /* NULL: not configured */
    struct loop_source signals;  /* a signal descriptor */
    struct wheel_timer sampling;
    bool is_draining;
    char name[PEER_NAME_BYTES_MAX]; /* as a peer */
};

/* What the process keeps of one gateway. */
struct aggregate_kept {
    struct aggregate_stores_session *stores;
    struct aggregate_topics_session *topics;
};

static bool report_aggregate_failure(const char *what, const char *why)
{
    fprintf(stderr, "rollcall aggregate: %s: %s\n", what, why);
    return false;
}

/* ---- signals ---- */

static void on_aggregate_signal(struct loop_source *source, uint32_t events)
{
    struct aggregate_process *process = CONTAINER_OF(source, struct aggregate_process, signals);
    struct signalfd_siginfo info;
    (void)events;
    if (read(source->fd, &info, sizeof(info)) != sizeof(info))
        return;
    if (process->is_draining)
        _exit(EXIT_FAILED);
    process->is_draining = true;
}

static bool receive_aggregate_signals(struct aggregate_process *process)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGHUP, SIG_IGN);
    process->signals = (struct loop_source){
        .fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC), .on_ready = on_aggregate_signal};
    return (process->signals.fd >= 0 && loop_add_level(&process->loop, &process->signals)) ||
           report_aggregate_failure("start", "cannot create a signalfd");
}

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
             process->config->gateway.node_id);
    process->fleet = fleet_make(process->config, slice_of(process->name), error);
    if (!process->fleet)
        return report_aggregate_failure("start", error);
    process->redis = redis_client_make(&(struct redis_client_options){
        .loop = &process->loop,
        .streams = &process->streams,
        .random = &process->random,
        .metrics = &process->metrics,
        .url = &process->fleet->redis,
        .tls = process->fleet->redis_tls,
        .name = process->name,
        .report = &process->fleet->report,
    });
    if (process->redis)
        process->redis_info = redis_info_make(process->redis, &process->loop, &process->metrics);
    return process->redis_info || report_aggregate_failure("start", "out of memory");
}

static bool make_aggregate_stores(struct aggregate_process *process)
{
    process->stores = aggregate_stores_make(&(struct aggregate_stores_options){
        .client = process->redis,
        .loop = &process->loop,
        .random = &process->random,
        .metrics = &process->metrics,
        .id = slice_of(process->name),
        .terms = worker_ports_terms(process->config),
        .hash_seed = random_u64(&process->random),
    });
    process->topics =
        aggregate_topics_make(process->redis, &process->metrics, random_u64(&process->random));
    return (process->stores && process->topics) ||
           report_aggregate_failure("start", "out of memory");
}

/* ---- listening ---- */

static bool listen_for_aggregated_gateways(struct aggregate_process *process)
{
    char error[LISTENER_ERROR_TEXT_MAX];
    process->service = aggregate_service_open(
        &(struct aggregate_service_options){
            .links = {.loop = &process->loop,
                      .streams = &process->streams,
                      .random = &process->random,
                      .secret = process->fleet->peer_secret,
                      .name = slice_of(process->name),
                      .tls = process->fleet->peer_accept},
            .terms = worker_ports_terms(process->config),
            .metrics = &process->metrics,
            .address = process->config->peer.listen,
            .owner = &SERVICE_OWNER,
            .arg = process,
        },
        error);
    if (!process->service)
        return report_aggregate_failure("peer.listen", error);
    process->redis_observer.on_availability_changed = on_redis_availability;
    redis_observe(process->redis, &process->redis_observer);
    aggregate_service_set_available(process->service, redis_available(process->redis));
    return true;
}

/* ---- pages ---- */

static const char *aggregate_unready(void *arg)
{
    const struct aggregate_process *process = arg;
    if (process->is_draining)
        return "draining";
    return redis_available(process->redis) ? NULL : "Redis does not answer";
}

static void write_aggregate_metrics(void *arg, struct buffer *out)
{
    struct aggregate_process *process = arg;
    exposition_write(out, &process->exposition, process->loop.clock.now_ms);
}

static void sample_aggregate_metrics(struct wheel_timer *timer)
{
    struct aggregate_process *process = CONTAINER_OF(timer, struct aggregate_process, sampling);
    bool is_available = redis_available(process->redis);
    metrics_set(&process->metrics, METRIC_STATE_AVAILABLE, is_available);
    metrics_set(&process->metrics, METRIC_REDIS_AVAILABLE, is_available);
    exposition_sample(&process->exposition, process->loop.clock.now_ms);
    loop_set_timer(&process->loop, timer, process->loop.clock.now_ms + SAMPLE_MS);
}

static bool serve_aggregate_pages(struct aggregate_process *process)
{
    const char *address = process->config->ops.listen;
    char error[LISTENER_ERROR_TEXT_MAX];
    struct process_pages_options options = {
        .loop = &process->loop,
        .streams = &process->streams,
        .config = process->config,
        .unready = aggregate_unready,
        .write_metrics = write_aggregate_metrics,
        .arg = process,
    };
    exposition_init(&process->exposition, process->loop.clock.now_ms, process->loop.clock.wall_ms);
    exposition_add(&process->exposition, &process->metrics);
    process->sampling.fire = sample_aggregate_metrics;
    sample_aggregate_metrics(&process->sampling);
    if (!address[0])
        return true;
    process->pages = process_pages_open(&options, address, error);
    return process->pages || report_aggregate_failure("ops.listen", error);
}

/* ---- the end ---- */

static void turn_aggregate_loop_for(struct aggregate_process *process, int64_t duration_ms)
{
    int64_t until_ms = process->loop.clock.now_ms + duration_ms;
    while (process->loop.clock.now_ms < until_ms)
        loop_turn(&process->loop, DRAIN_TURN_MS);
}

static void drain_aggregate(struct aggregate_process *process)
{
    int64_t until_ms = process->loop.clock.now_ms + DRAIN_LIMIT_MS;
    log_info("draining", "limit_ms=%d", DRAIN_LIMIT_MS);
    aggregate_service_drain(process->service);
    if (process->pages)
        process_pages_drain(process->pages);
    turn_aggregate_loop_for(process, LEAVE_MS);
    while (!aggregate_service_is_drained(process->service) && process->loop.clock.now_ms < until_ms)
        loop_turn(&process->loop, DRAIN_TURN_MS);
    if (process->pages)
        process_pages_end(process->pages);
    while (process->pages && !process_pages_is_ended(process->pages))
        loop_turn(&process->loop, DRAIN_TURN_MS);
}

/* Closing the Redis client answers all calls, so the service is freed after it. */
static void free_aggregate_process(struct aggregate_process *process)
{
    process_pages_free(&process->pages);
    redis_unobserve(&process->redis_observer);
    redis_info_free(&process->redis_info);
    redis_client_close(process->redis);
    aggregate_service_free(&process->service);
    aggregate_topics_free(&process->topics);
    aggregate_stores_free(&process->stores);
    redis_client_free(&process->redis);
    fleet_free(&process->fleet);
    exposition_free(&process->exposition);
    close(process->signals.fd);
    stream_set_free(&process->streams);
    loop_free(&process->loop);
}

/* ---- running ---- */

static void print_aggregate_start(const struct aggregate_process *process)
{
    const char *listen = process->config->peer.listen, *ops = process->config->ops.listen;
    log_info("aggregating", "node=%s", log_quote(slice_of(process->config->gateway.node_id)));
    printf("rollcall: aggregator on %.*s:%u\n", (int)(strrchr(listen, ':') - listen), listen,
           aggregate_service_port(process->service));
    if (process->pages)
        printf("rollcall: operations at http://%.*s:%u/\n", (int)(strrchr(ops, ':') - ops), ops,
               process_pages_port(process->pages));
    fflush(stdout);
}

/* If it cannot start, the process ends, so nothing is undone. */
static int run_aggregate(const struct config *config)
{
    static struct aggregate_process process; /* one per process, too large for a stack */
    process.config = config;
    log_init(config->log.level, getenv("JOURNAL_STREAM") != NULL);
    random_init_system(&process.random);
    bool started = (loop_init(&process.loop) && stream_set_init(&process.streams, &process.loop)) ||
                   report_aggregate_failure("start", "out of memory or descriptors");
    started = started && receive_aggregate_signals(&process) && make_aggregate_redis(&process) &&
              make_aggregate_stores(&process) && listen_for_aggregated_gateways(&process) &&
              serve_aggregate_pages(&process);
    if (!started)
        return EXIT_FAILED;
    print_aggregate_start(&process);
    while (!process.is_draining)
        loop_turn(&process.loop, -1);
    drain_aggregate(&process);
    free_aggregate_process(&process);
    log_info("stopped", "node=%s", log_quote(slice_of(config->gateway.node_id)));
    return 0;
}

int aggregate_command(int argc, char **argv)
{
    return serve_options_run(argc, argv, run_aggregate);
}
