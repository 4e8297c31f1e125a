/*
 * The bus of a worker in a fleet: Redis first, and a second road for when Redis does not carry an event:
 * mailboxes between the workers of a process, peer links between processes (peer_hub.h).
 *
 *   BUS_TOPIC_ALL     always by the second road, to every worker of every process; never by Redis
 *   BUS_TOPIC_LOST    by links alone, to processes that the registry of gateways has lost
 *   other topics      by Redis. If it is out of reach, refuses, or does not answer in time, by the second
 *                     road: `server:<gateway>:deliver` to that gateway's process, the rest to all
 *   server:<gateway>  also when Redis says that nobody received it: its gateway has lost its subscription,
 *                     or is gone
 *
 * A publication without an answer may have happened. It is sent again, since a loss would be worse, and
 * whichever comes second is dropped by the receiver: it remembers what came for its gateway lately, by the
 * bytes (seen.h). So no two events for a gateway may be alike; delivery.c and push.c see to that. Events on
 * other topics may come twice then, and those who take them can tell by their versions.
 *
 * One per worker, on its thread. All workers' buses are made, and know the hub, before the first loop turns.
 */
#ifndef ROLLCALL_BUS_FLEET_FLEET_BUS_H
#define ROLLCALL_BUS_FLEET_FLEET_BUS_H

#include "bus/bus.h"
#include "bus/fleet/peer_hub.h"
#include "bus/mailbox/mailbox_bus.h"
#include "redis/redis_client.h"

struct fleet_bus_options {
    struct redis_client *client; /* of this worker; outlives the bus */
    struct mailbox_bus_group *exchange;
    size_t index; /* of this worker in the exchange */
    size_t workers;
    struct mailbox *mailbox;
    struct metrics *metrics;
    struct slice process; /* its name, as in peer_hub_options; borrowed for the bus's life */
    bus_on_event on_event;
    bus_on_gap on_gap;
    void *arg;
};

/* Freed only while the loop makes no turn. NULL when memory is short. */
struct bus *fleet_bus_make(const struct fleet_bus_options *options);

/* NULL, as it starts: no peer links. The hub outlives what is published. */
void fleet_bus_use_hub(struct bus *bus, struct peer_hub *hub);

/* An event that a link brought, to the workers of this process; for the hub, on its worker's bus. `port`
 * is a struct bus. */
void fleet_bus_relay(void *port, struct slice topic, struct slice payload);

/* Whether all that is subscribed is live in Redis. */
bool fleet_bus_settled(const struct bus *bus);

#endif
