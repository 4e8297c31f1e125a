/*
 * Carries events through aggregators (bus/fleet/bus_carrier.h): publications go to the aggregator of the topic's slot, which
 * publishes them in Redis; subscriptions are made there too, and the aggregator passes on what Redis brings
 * (aggregate_topics.h). So one connection of an aggregator serves the subscriptions of all gateways.
 *
 *   (none) ──subscribe──► WANTED ──asked its aggregator──► ASKED ──it says so──► LIVE
 *                           ▲                               │                     │ the link broke, or the topic's slot
 *                           └───────────────────────────────┴─────────────────────┘ has another aggregator now
 *
 * Topics are asked for in calls of AGGREGATE_TOPICS_PER_CALL, of which at most AGGREGATE_TOPIC_CALLS_MAX are unanswered, so
 * that a lost aggregator with a hundred thousand topics is replaced without a flood. An event that arrives from another
 * aggregator than the topic's own is dropped, and that subscription ended. One per worker, on its thread.
 */
#ifndef ROLLCALL_BUS_AGGREGATE_AGGREGATE_CARRIER_H
#define ROLLCALL_BUS_AGGREGATE_AGGREGATE_CARRIER_H

#include "aggregate/aggregate_client.h"
#include "bus/fleet/bus_carrier.h"
#include "net/loop.h"

enum {
    AGGREGATE_TOPICS_MAX = 1 << 20,
    AGGREGATE_TOPIC_NAME_MAX = 1024,
    AGGREGATE_TOPICS_PER_CALL = 256,
    AGGREGATE_TOPIC_CALLS_MAX = 16,
    AGGREGATE_TOPIC_RETRY_MS = 100,
};

/* The client outlives it. Returns NULL when out of memory. */
struct bus_carrier *aggregate_carrier_make(struct aggregate_client *client, struct loop *loop,
                                           uint64_t hash_seed);

#endif
