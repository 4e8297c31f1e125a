#include "app/gateway/fanout_worker.h"

#include "app/gateway/worker_ports.h"
#include "app/ledger_choice.h"
#include "app/ledger_expiry.h"
#include "base/container.h"
#include "feed/kafka/kafka_consumer.h"
#include "ledger/ledger_request_inbox.h"
#include "ledger/refusal.h"
#include "log/log.h"
#include "routing/fanout.h"
#include "socketio/codec/socketio_dialect.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOUSEKEEPING_MS = 1000, DRAIN_TURN_MS = 20 };

struct fanout_worker {
    struct fanout_worker_parts parts;
    size_t index;
    char id[GATEWAY_ID_BYTES_MAX];
    struct loop loop;
    struct random random;
    struct metrics metrics;
    struct mailbox mailbox;
    struct stream_set streams;
    struct encoder encoder; /* for parked sessions */
    struct worker_ports ports;
    struct ledger_request_inbox ledger_inbox; /* finished ledger requests */
    struct ledger_client ledger;
    struct ledger_expiry expiry;
    struct delivery delivery;
    struct fanout fanout;
    struct kafka_consumer *consumer;
    struct wheel_timer housekeeping;
    struct mail drain_order;   /* part of the worker, so that a drain needs no memory */
    atomic_bool drain_ordered; /* from any thread */
    bool draining;
    int64_t drain_until_ms;
    _Atomic(const char *) unready; /* a constant text, as of the last housekeeping */
};

/* ---- making ---- */

static void on_fanout_ledger_answered(void *arg, struct ledger_request *done)
{
    (void)arg;
    ledger_complete(done);
}

/* It subscribes to nothing. */
static void on_fanout_worker_event(void *arg, struct slice topic, struct slice payload)
{
    (void)arg, (void)topic, (void)payload;
}

static bool make_fanout_loop(struct fanout_worker *worker)
{
    return loop_init(&worker->loop) &&
           mailbox_init(&worker->mailbox, &worker->loop, MAILBOX_MAIL_MAX, worker) &&
           stream_set_init(&worker->streams, &worker->loop) &&
           ledger_request_inbox_init(&worker->ledger_inbox, &worker->loop,
                                     on_fanout_ledger_answered, NULL);
}

static bool make_fanout_ports(struct fanout_worker *worker)
{
    const struct fanout_worker_parts *parts = &worker->parts;
    if (parts->config->socketio.recovery_ms > 0)
        worker->encoder.offset_clock = &worker->loop.clock;
    return worker_ports_make(&worker->ports, &(struct worker_ports_options){
                                                 .fleet = parts->fleet,
                                                 .config = parts->config,
                                                 .loop = &worker->loop,
                                                 .streams = &worker->streams,
                                                 .random = &worker->random,
                                                 .metrics = &worker->metrics,
                                                 .mailbox = &worker->mailbox,
                                                 .bus_group = parts->bus_group,
                                                 .index = worker->index,
                                                 .workers = parts->workers,
                                                 .id = worker->id,
                                                 .hash_seed = parts->hash_seed,
                                                 .on_event = on_fanout_worker_event,
                                                 .arg = worker,
                                             });
}

static bool make_fanout(struct fanout_worker *worker)
{
    const struct config *config = worker->parts.config;
    worker->delivery = (struct delivery){
        .bus = worker->ports.bus,
        .store = worker->ports.store,
        .metrics = &worker->metrics,
        .recovery = worker->ports.recovery,
        .recovery_dialect = &DIALECT_TABLE_SOCKETIO,
        .encoder = &worker->encoder,
        .seed = worker->parts.hash_seed,
        .number = worker->index,
        .broadcasts = worker->parts.fleet->hub != NULL,
    };
    worker->fanout = (struct fanout){
        .retry = &config->fanout.retry,
        .clock = &worker->loop.clock,
        .wheel = &worker->loop.wheel,
        .ledger = &worker->ledger,
        .delivery = &worker->delivery,
        .metrics = &worker->metrics,
    };
    ledger_client_init(&worker->ledger, worker->parts.ledger, &worker->loop.clock,
                       ledger_request_inbox_post, &worker->ledger_inbox);
    worker->ledger.time_limit_ms = config->gateway.timeouts.durability_rpc_ms;
    return fanout_init(&worker->fanout, worker->parts.hash_seed);
}

/* ---- every second ---- */

static const char *find_fanout_unready(const struct fanout_worker *worker)
{
    if (worker->draining)
        return "draining";
    if (!state_available(worker->ports.store))
        return "Redis does not answer";
    if (!kafka_consumer_is_joined(worker->consumer))
        return "the consumer group is not joined";
    return NULL;
}

static void sample_fanout_worker(struct fanout_worker *worker)
{
    struct metrics *metrics = &worker->metrics;
    bool redis = worker_ports_reach_redis(&worker->ports);
    metrics_set(metrics, METRIC_STATE_AVAILABLE, state_available(worker->ports.store));
    metrics_set(metrics, METRIC_REDIS_AVAILABLE, redis);
    metrics_set(metrics, METRIC_GATEWAY_REDIS_AVAILABLE, redis);
    ledger_choice_sample(worker->parts.ledger, worker->parts.config, metrics);
    metrics_set(metrics, METRIC_FANOUT_CONSUMER_LAG,
                (int64_t)feed_lag(kafka_consumer_feed(worker->consumer)));
}

static void on_fanout_gateways_read(void *arg, enum state_status status,
                                    const struct gateway_info *gateways, size_t count)
{
    struct fanout_worker *worker = arg;
    if (status != STATE_OK)
        return;
    metrics_set(&worker->metrics, METRIC_INSTANCES_HEALTHY, (int64_t)count);
    worker_ports_learn(worker->parts.fleet, gateways, count);
}

static void start_fanout_drain(struct fanout_worker *worker)
{
    if (worker->draining)
        return;
    worker->draining = true;
    worker->drain_until_ms =
        worker->loop.clock.now_ms + worker->parts.config->gateway.shutdown.drain_timeout_ms;
}

static void housekeep_fanout_worker(struct wheel_timer *timer)
{
    struct fanout_worker *worker = CONTAINER_OF(timer, struct fanout_worker, housekeeping);
    if (atomic_load(&worker->drain_ordered))
        start_fanout_drain(worker);
    sample_fanout_worker(worker);
    atomic_store(&worker->unready, find_fanout_unready(worker));
    if (worker->index == 0)
        state_list_gateways(worker->ports.store, on_fanout_gateways_read, worker);
    loop_set_timer(&worker->loop, timer, worker->loop.clock.now_ms + HOUSEKEEPING_MS);
}

const char *fanout_worker_unready(const struct fanout_worker *worker)
{
    return atomic_load(&worker->unready);
}

/* ---- life ---- */

struct fanout_worker *fanout_worker_make(const struct fanout_worker_parts *parts, size_t index,
                                         char error[FANOUT_WORKER_ERROR_TEXT_MAX])
{
    struct fanout_worker *worker = calloc(1, sizeof(*worker));
    snprintf(error, FANOUT_WORKER_ERROR_TEXT_MAX, "out of memory or descriptors");
    if (!worker)
        return NULL;
    worker->parts = *parts;
    worker->index = index;
    worker->unready = "starting";
    worker->housekeeping.fire = housekeep_fanout_worker;
    snprintf(worker->id, sizeof(worker->id), "%.*s-%zu", SLICE_FORMAT(parts->fleet->process),
             index);
    random_init_system(&worker->random);
    encoder_init(&worker->encoder);
    if (!make_fanout_loop(worker) || !make_fanout_ports(worker) || !make_fanout(worker))
        return NULL; /* the process gives up, so nothing is undone */
    struct kafka_consumer_options options = {
        .config = parts->config, .loop = &worker->loop, .metrics = &worker->metrics};
    worker->consumer = kafka_consumer_make(&options, fanout_on_item, &worker->fanout, error);
    exposition_add(parts->exposition, &worker->metrics);
    return worker->consumer ? worker : NULL;
}

static void on_fanout_drain_ordered(struct mail *mail, void *owner)
{
    (void)mail; /* part of the worker */
    start_fanout_drain(owner);
}

/* If the mailbox is full, the housekeeping sees the flag within a second. */
void fanout_worker_drain(struct fanout_worker *worker)
{
    if (atomic_exchange(&worker->drain_ordered, true))
        return;
    worker->drain_order.on_open = on_fanout_drain_ordered;
    mailbox_post(&worker->mailbox, &worker->drain_order);
}

/* Leaving finishes what is under way and commits; what the time limit cuts off comes to another worker. */
static bool is_fanout_drained(struct fanout_worker *worker)
{
    return worker->draining && (kafka_consumer_leave(worker->consumer) ||
                                worker->loop.clock.now_ms >= worker->drain_until_ms);
}

void fanout_worker_run(struct fanout_worker *worker)
{
    ledger_expiry_start(&worker->expiry, &worker->loop, &worker->ledger);
    housekeep_fanout_worker(&worker->housekeeping);
    while (!is_fanout_drained(worker))
        loop_turn(&worker->loop, worker->draining ? DRAIN_TURN_MS : -1);
    kafka_consumer_stop(worker->consumer);
    worker->fanout.stopped = true;
    ledger_client_close(&worker->ledger);
}

bool fanout_worker_finish(struct fanout_worker *worker)
{
    bool had_work = !mailbox_is_empty(&worker->mailbox) || ledger_client_is_owed(&worker->ledger);
    worker_ports_close(&worker->ports);
    mailbox_drain(&worker->mailbox);
    ledger_request_inbox_drain(&worker->ledger_inbox);
    refusal_answer_all(&worker->ledger);
    return had_work;
}

void fanout_worker_free(struct fanout_worker **worker)
{
    struct fanout_worker *freed = *worker;
    *worker = NULL;
    mailbox_free(&freed->mailbox);
    if (freed->index == 0)
        peer_hub_free(&freed->parts.fleet->hub);
    worker_ports_free(&freed->ports);
    ledger_request_inbox_free(&freed->ledger_inbox);
    fanout_free(&freed->fanout);
    kafka_consumer_free(&freed->consumer);
    encoder_free(&freed->encoder);
    stream_set_free(&freed->streams);
    loop_free(&freed->loop);
    free(freed);
}
