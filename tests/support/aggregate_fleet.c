#include "support/aggregate_fleet.h"

#include "base/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SOON_MS = 30000 };

static const struct slice SECRET = {"a secret of the fleet", 21};

static struct peer_link_options link_options(struct aggregate_fleet *fleet, const char *name)
{
    struct worker_loop *worker = &fleet->redis.worker;
    return (struct peer_link_options){.loop = &worker->loop,
                                      .streams = &worker->streams,
                                      .random = &worker->random,
                                      .secret = SECRET,
                                      .name = slice_of(name)};
}

/* ---- aggregators ---- */

static void *on_opened(void *arg, struct aggregate_session *session,
                       const struct aggregate_frame *hello)
{
    return aggregate_stores_open(((struct aggregate_fleet_aggregator *)arg)->stores, session,
                                 hello);
}

static void on_closed(void *arg, void *kept)
{
    struct aggregate_stores_session *session = kept;
    (void)arg;
    aggregate_stores_close(&session);
}

static bool on_call(void *arg, void *kept, struct aggregate_served *served, struct slice body)
{
    (void)arg;
    return aggregate_codec_has(served->operation) && aggregate_stores_serve(kept, served, body);
}

static const struct aggregate_service_owner OWNER = {on_opened, on_closed, on_call};

static void on_availability_changed(struct redis_observer *observer, bool available)
{
    struct aggregate_fleet_aggregator *aggregator =
        CONTAINER_OF(observer, struct aggregate_fleet_aggregator, observer);
    aggregate_service_set_available(aggregator->service, available);
}

void aggregate_fleet_start_aggregator(struct aggregate_fleet *fleet, size_t index)
{
    struct aggregate_fleet_aggregator *aggregator = &fleet->aggregators[index];
    struct worker_loop *worker = &fleet->redis.worker;
    char error[LISTENER_ERROR_TEXT_MAX] = "";
    aggregator->fleet = fleet;
    aggregator->redis = fleet->redis.clients[index];
    aggregator->stores = aggregate_stores_make(&(struct aggregate_stores_options){
        .client = aggregator->redis,
        .loop = &worker->loop,
        .random = &worker->random,
        .metrics = &worker->metrics,
        .id = SLICE("aggregate:test"),
        .terms = fleet->terms,
        .hash_seed = 1,
        .script_clock = fleet->script_clock,
    });
    assert_non_null(aggregator->stores);
    aggregator->service = aggregate_service_open(
        &(struct aggregate_service_options){
            .links = link_options(fleet, "aggregate:test"),
            .terms = fleet->terms,
            .metrics = &worker->metrics,
            .address = aggregator->address[0] ? aggregator->address : "127.0.0.1:0",
            .owner = &OWNER,
            .arg = aggregator,
        },
        error);
    if (!aggregator->service)
        fail_msg("%s", error);
    snprintf(aggregator->address, sizeof(aggregator->address), "127.0.0.1:%u",
             aggregate_service_port(aggregator->service));
    fleet->addresses[index] = aggregator->address;
    aggregator->observer.on_availability_changed = on_availability_changed;
    redis_observe(aggregator->redis, &aggregator->observer);
    aggregate_service_set_available(aggregator->service, redis_available(aggregator->redis));
}

/* A service may be freed only when its calls were answered, as they are when a process's Redis client is closed. */
void aggregate_fleet_stop_aggregator(struct aggregate_fleet *fleet, size_t index)
{
    struct aggregate_fleet_aggregator *aggregator = &fleet->aggregators[index];
    if (!aggregator->service)
        return;
    redis_unobserve(&aggregator->observer);
    while (!aggregate_service_is_drained(aggregator->service))
        redis_fleet_poll(&fleet->redis);
    aggregate_service_free(&aggregator->service);
    aggregate_stores_free(&aggregator->stores);
    redis_fleet_settle(&fleet->redis, 2);
}

/* ---- gateways ---- */

struct aggregate_client *aggregate_fleet_gateway(struct aggregate_fleet *fleet)
{
    size_t index = fleet->gateway_count++, running = 0;
    struct worker_loop *worker = &fleet->redis.worker;
    assert_true(index < AGGREGATE_FLEET_GATEWAYS);
    snprintf(fleet->names[index], sizeof(fleet->names[index]), "gateway-%zu", index);
    fleet->gateways[index] = aggregate_client_make(&(struct aggregate_client_options){
        .links = link_options(fleet, fleet->names[index]),
        .addresses = fleet->addresses,
        .address_count = AGGREGATE_FLEET_AGGREGATORS,
        .gateway_id = slice_of(fleet->names[index]),
        .process = SLICE("test"),
        .terms = fleet->terms,
        .metrics = &worker->metrics,
    });
    assert_non_null(fleet->gateways[index]);
    for (size_t i = 0; i < AGGREGATE_FLEET_AGGREGATORS; i++)
        running += fleet->aggregators[i].service != NULL;
    aggregate_fleet_await(fleet, running);
    return fleet->gateways[index];
}

static bool can_use_aggregators(void *arg)
{
    struct aggregate_fleet *fleet = arg;
    for (size_t i = 0; i < fleet->gateway_count; i++)
        if (aggregate_client_usable(fleet->gateways[i]) != fleet->awaited)
            return false;
    return true;
}

void aggregate_fleet_await(struct aggregate_fleet *fleet, size_t count)
{
    fleet->awaited = count;
    assert_true(worker_loop_until(&fleet->redis.worker, can_use_aggregators, fleet, SOON_MS));
}

static bool is_settled(void *arg)
{
    struct aggregate_fleet *fleet = arg;
    for (size_t i = 0; i < fleet->gateway_count; i++)
        if (aggregate_client_pending(fleet->gateways[i]))
            return false;
    return true;
}

void aggregate_fleet_settle(struct aggregate_fleet *fleet)
{
    assert_true(worker_loop_until(&fleet->redis.worker, is_settled, fleet, SOON_MS));
    redis_fleet_settle(&fleet->redis, 2);
}

/* ---- all of it ---- */

void aggregate_fleet_open(struct aggregate_fleet *fleet, bool cluster)
{
    memset(fleet, 0, sizeof(*fleet));
    redis_fleet_open(&fleet->redis, cluster);
}

void aggregate_fleet_start(struct aggregate_fleet *fleet, const struct aggregate_terms *terms,
                           const struct clock *script_clock)
{
    redis_fleet_empty(&fleet->redis);
    fleet->terms = *terms;
    fleet->script_clock = script_clock;
    fleet->gateway_count = 0;
    for (size_t i = 0; i < AGGREGATE_FLEET_AGGREGATORS; i++)
        aggregate_fleet_start_aggregator(fleet, i);
}

void aggregate_fleet_stop(struct aggregate_fleet *fleet)
{
    aggregate_fleet_settle(fleet);
    for (size_t i = 0; i < fleet->gateway_count; i++)
        aggregate_client_free(&fleet->gateways[i]);
    fleet->gateway_count = 0;
    for (size_t i = 0; i < AGGREGATE_FLEET_AGGREGATORS; i++)
        aggregate_fleet_stop_aggregator(fleet, i);
}

void aggregate_fleet_close(struct aggregate_fleet *fleet)
{
    redis_fleet_close(&fleet->redis);
}
