/* Carries events by Redis pub/sub (bus_carrier.h): PUBLISH and SUBSCRIBE, on a cluster the sharded commands. */
#ifndef ROLLCALL_BUS_FLEET_REDIS_CARRIER_H
#define ROLLCALL_BUS_FLEET_REDIS_CARRIER_H

#include "bus/fleet/bus_carrier.h"
#include "redis/redis_client.h"

/* The client outlives it. Returns NULL when out of memory. */
struct bus_carrier *redis_carrier_make(struct redis_client *client);

#endif
