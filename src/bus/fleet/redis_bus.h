/*
 * The bus on Redis: PUBLISH and SUBSCRIBE on a single server, the sharded kind on a cluster. Topics are
 * channels, literally.
 *
 * A subscription is on its way when bus_subscribe() returns and live when the server has confirmed it. So
 * each confirmation, the first and that after a lost connection, a failover or a moved slot, is a gap of
 * that topic (bus.h). It costs its owner nothing when what depends on the topic was not read yet.
 *
 * One's own events take the way of everybody's, through Redis. While it is out of reach they are lost:
 * fleet_bus.h knows other roads. One thread, that of the client's loop.
 */
#ifndef ROLLCALL_BUS_FLEET_REDIS_BUS_H
#define ROLLCALL_BUS_FLEET_REDIS_BUS_H

#include "bus/bus.h"
#include "metrics/metrics.h"
#include "redis/redis_client.h"

/* The client outlives it. Freed only while the loop makes no turn. NULL when memory is short. */
struct bus *redis_bus_make(struct redis_client *client, struct metrics *metrics,
                           bus_on_event on_event, bus_on_gap on_gap, void *arg);

/* Whether all that is subscribed is live. */
bool redis_bus_settled(const struct bus *bus);

#endif
