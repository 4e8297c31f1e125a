/*
 * The bus of a worker in a fleet: Redis pub/sub first, directly or through aggregators (bus_carrier.h), and a fallback when
 * that does not carry an event:
 * mailboxes between the workers of a process, peer links between processes (peer_hub.h).
 *
 *   BUS_TOPIC_ALL     always by the fallback, to every worker of every process; never by Redis
 *   BUS_TOPIC_LOST    by peer links only, to processes that the registry of gateways has lost
 *   other topics      by Redis. If it cannot be reached, refuses, or does not answer in time, by the
 *                     fallback: `server:<gateway>:deliver` to that gateway's process, the rest to all
 *   server:<gateway>  by the fallback also when Redis counts no receiver: the gateway has lost its
 *                     subscription, or has stopped
 *
 * On Redis a topic is a channel of the same name: PUBLISH and SUBSCRIBE on a single server, the sharded
 * commands on a cluster. A worker receives its own events through Redis like everybody else's. A
 * subscription is live when the server has confirmed it, so each confirmation is a gap of that topic
 * (bus.h): the first, and those after a lost connection, a failover or a moved slot.
 *
 * An unanswered publication may have happened. It is sent again by the fallback, since a loss would be
 * worse, and the receiver drops the second copy: it keeps keyed hashes of recent events for its gateway
 * (seen.h, hash_key.h), so nobody can construct two events that it confuses. So no two events for a gateway may have the same bytes; delivery.c and push.c ensure that.
 * Events on other topics may arrive twice; their receivers compare versions.
 *
 * One per worker, on its thread. All workers' buses are made, and have the hub, before the first loop turns.
 */
#ifndef ROLLCALL_BUS_FLEET_FLEET_BUS_H
#define ROLLCALL_BUS_FLEET_FLEET_BUS_H

#include "bus/bus.h"
#include "bus/fleet/bus_carrier.h"
#include "bus/fleet/peer_hub.h"
#include "bus/mailbox/mailbox_bus.h"

#include <stdatomic.h>

struct fleet_bus_options {
    struct bus_carrier *carrier; /* taken; NULL: there is none, and making the bus fails */
    struct mailbox_bus_group *group;
    size_t index; /* of this worker in the group */
    size_t workers;
    struct mailbox *mailbox;
    struct metrics *metrics;
    uint64_t hash_seed;   /* random */
    struct slice process; /* its name, as in peer_hub_options; outlives the bus */
    const atomic_bool
        *is_alone; /* all gateways are in this process; outlives the bus. NULL: unknown */
    bus_on_event on_event;
    bus_on_gap on_gap;
    void *arg;
};

/* Free it only while the loop makes no turn. Returns NULL when out of memory. */
struct bus *fleet_bus_make(const struct fleet_bus_options *options);

/* NULL, the initial value, means no peer links. The hub outlives the last publication. */
void fleet_bus_use_hub(struct bus *bus, struct peer_hub *hub);

/* Passes an event that a peer link brought to the workers of this process. For the hub, on its worker's
 * bus; `port` is a struct bus. */
void fleet_bus_relay(void *port, struct slice topic, struct slice payload);

/* Returns whether all subscriptions are live. */
bool fleet_bus_is_settled(const struct bus *bus);

#endif
