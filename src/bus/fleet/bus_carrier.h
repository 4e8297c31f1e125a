/*
 * A carrier brings events of topics to the workers of other processes, and theirs here: the part of the fleet bus that
 * depends on how a process reaches Redis. Redis pub/sub itself (redis_carrier.h), or aggregators that subscribe there for
 * many gateways (bus/aggregate/aggregate_carrier.h).
 *
 * A subscription is live when the carrier has said so (`on_live`), for the first time or again: events published before may
 * have been missed. A publication is answered exactly once, possibly before bus_carrier_publish() returns, and at the latest
 * when what is behind the carrier (the Redis client, the client of the aggregators) is closed, which is after the carrier was
 * freed.
 *
 * One per worker, on its thread.
 */
#ifndef ROLLCALL_BUS_FLEET_BUS_CARRIER_H
#define ROLLCALL_BUS_FLEET_BUS_CARRIER_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* A publication under way, a part of its publisher's memory. */
struct bus_carriage {
    /* `receivers` is how many subscribers there are, as far as the carrier counts them; negative: it was not carried, or
     * nobody knows whether it was. */
    void (*on_carried)(struct bus_carriage *carriage, int64_t receivers);
};

struct bus_carrier;

struct bus_carrier_operations {
    /* Whether an event of this topic would be sent now. */
    bool (*reaches)(const struct bus_carrier *carrier, struct slice topic);
    void (*publish)(struct bus_carrier *carrier, struct slice topic, struct slice payload,
                    struct bus_carriage *carriage);
    /* Returns false when there are too many topics or the name is too long. */
    bool (*subscribe)(struct bus_carrier *carrier, struct slice topic);
    void (*unsubscribe)(struct bus_carrier *carrier, struct slice topic);
    bool (*is_live)(const struct bus_carrier *carrier, struct slice topic);
    bool (*is_settled)(const struct bus_carrier *carrier); /* all of them are live */
    void (*free)(struct bus_carrier *carrier);
};

struct bus_carrier {
    const struct bus_carrier_operations *operations;
    /* Set by the bus before the first operation. */
    void (*on_event)(void *arg, struct slice topic, struct slice payload);
    void (*on_live)(void *arg, struct slice topic);
    void *arg;
};

static inline void bus_carrier_publish(struct bus_carrier *carrier, struct slice topic,
                                       struct slice payload, struct bus_carriage *carriage)
{
    carrier->operations->publish(carrier, topic, payload, carriage);
}

static inline void bus_carrier_free(struct bus_carrier **carrier)
{
    struct bus_carrier *freed = *carrier;
    *carrier = NULL;
    if (freed)
        freed->operations->free(freed);
}

#endif
