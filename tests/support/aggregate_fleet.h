/*
 * Aggregators and the gateways behind them, on real Redis servers, over real links on one loop.
 *
 * An aggregator is what `rollcall aggregate` is made of: a service, its stores, and one client of the Redis fleet. A gateway
 * is a client of all of them. An aggregator can be stopped, which closes its links as a killed process would, and started
 * again on its port.
 */
#ifndef ROLLCALL_TESTS_AGGREGATE_FLEET_H
#define ROLLCALL_TESTS_AGGREGATE_FLEET_H

#include "aggregate/aggregate_client.h"
#include "store/aggregate/aggregate_serve.h"
#include "support/redis_fleet.h"

enum { AGGREGATE_FLEET_AGGREGATORS = 2, AGGREGATE_FLEET_GATEWAYS = 3 };

struct aggregate_fleet_aggregator {
    struct aggregate_fleet *fleet;
    struct redis_client *redis;
    struct redis_observer observer;
    struct aggregate_stores *stores;
    struct aggregate_service *service; /* NULL: stopped */
    char address[32];
};

struct aggregate_fleet {
    struct redis_fleet redis;
    struct aggregate_terms terms;
    const struct clock *script_clock;
    struct aggregate_fleet_aggregator aggregators[AGGREGATE_FLEET_AGGREGATORS];
    const char *addresses[AGGREGATE_FLEET_AGGREGATORS];
    struct aggregate_client *gateways[AGGREGATE_FLEET_GATEWAYS];
    char names[AGGREGATE_FLEET_GATEWAYS][16];
    size_t gateway_count;
    size_t awaited; /* usable aggregators */
};

/* Starts Redis. */
void aggregate_fleet_open(struct aggregate_fleet *fleet, bool cluster);
void aggregate_fleet_close(struct aggregate_fleet *fleet);

/* Starts the aggregators with these terms, after all data was removed. */
void aggregate_fleet_start(struct aggregate_fleet *fleet, const struct aggregate_terms *terms,
                           const struct clock *script_clock);

/* Frees the gateways' clients and the aggregators. */
void aggregate_fleet_stop(struct aggregate_fleet *fleet);

void aggregate_fleet_start_aggregator(struct aggregate_fleet *fleet, size_t index);
void aggregate_fleet_stop_aggregator(struct aggregate_fleet *fleet, size_t index);

/* Makes the client of one more gateway ("gateway-0", …) and waits until it can use every aggregator that runs. */
struct aggregate_client *aggregate_fleet_gateway(struct aggregate_fleet *fleet);

/* Runs the loop until every gateway can use `count` aggregators. */
void aggregate_fleet_await(struct aggregate_fleet *fleet, size_t count);

/* Runs the loop until no call is pending. */
void aggregate_fleet_settle(struct aggregate_fleet *fleet);

#endif
