/*
 * The bus carries events between gateways. It is a port: a mailbox, Redis pub/sub or a peer link does the
 * work behind it.
 *
 * A topic is a name (`presence:<user>`, `chat:<chat>:typing`, `server:<gateway>:deliver`); a payload is
 * bytes, JSON by convention. Delivery is at most once, in order per sender and topic, to every gateway that
 * subscribes to the topic, including the sender. A gateway subscribes to a topic only while it has a local
 * subscriber, and subscribes before it reads the state that the topic changes, so that it misses no change.
 *
 * Between machines a subscription needs a moment to become live, and may be lost for a while. `on_gap`
 * reports that it has become live, for the first time or again: events published before may have been
 * missed, so the owner reads again everything that depends on the topic. Nothing is missed from then until
 * the next gap. A bus between threads has no gaps.
 *
 * Every gateway always subscribes to BUS_TOPIC_ALL: an event for users whose routes cannot be looked up goes
 * to all gateways, without Redis. BUS_TOPIC_LOST goes only to gateways that peers can reach but that the
 * store of routes has lost: cut off from Redis, they still hold users who have no routes. It arrives as
 * BUS_TOPIC_ALL. bus_has_lost() returns whether there are such gateways. bus_reaches_all() returns whether BUS_TOPIC_ALL
 * leaves the process by at least one peer link, or need not because all gateways are in it. bus_is_reachable() returns
 * whether events for this gateway's own topic arrive: until then it must take no connections.
 *
 * `on_event` runs on the worker's thread, possibly inside bus_publish(). `on_gap` runs there too, but never
 * inside a function of the bus. There is one `struct bus` per worker.
 */
#ifndef ROLLCALL_BUS_BUS_H
#define ROLLCALL_BUS_BUS_H

#include "base/slice.h"

#include <stdbool.h>

/* They have no colon, so they differ from every topic that names a user, chat or gateway. */
#define BUS_TOPIC_ALL SLICE("broadcast")
#define BUS_TOPIC_LOST SLICE("lost")

struct bus;

/* The slices are borrowed for the callback. */
typedef void (*bus_on_event)(void *arg, struct slice topic, struct slice payload);

/* SLICE_NONE: every topic. */
typedef void (*bus_on_gap)(void *arg, struct slice topic);

struct bus_operations {
    void (*subscribe)(struct bus *bus, struct slice topic);
    void (*unsubscribe)(struct bus *bus, struct slice topic);
    void (*publish)(struct bus *bus, struct slice topic, struct slice payload);
    bool (*has_lost)(const struct bus *bus);     /* NULL: never */
    bool (*reaches_all)(const struct bus *bus);  /* NULL: always */
    bool (*is_reachable)(const struct bus *bus); /* NULL: always */
    void (*free)(struct bus *bus);
};

struct bus {
    const struct bus_operations *operations;
    bus_on_event on_event;
    bus_on_gap on_gap; /* may be NULL */
    void *arg;
};

/* Once per topic; bus_unsubscribe() undoes it. */
static inline void bus_subscribe(struct bus *bus, struct slice topic)
{
    bus->operations->subscribe(bus, topic);
}

static inline void bus_unsubscribe(struct bus *bus, struct slice topic)
{
    bus->operations->unsubscribe(bus, topic);
}

static inline void bus_publish(struct bus *bus, struct slice topic, struct slice payload)
{
    bus->operations->publish(bus, topic, payload);
}

static inline bool bus_has_lost(const struct bus *bus)
{
    return bus->operations->has_lost && bus->operations->has_lost(bus);
}

static inline bool bus_reaches_all(const struct bus *bus)
{
    return !bus->operations->reaches_all || bus->operations->reaches_all(bus);
}

static inline bool bus_is_reachable(const struct bus *bus)
{
    return !bus->operations->is_reachable || bus->operations->is_reachable(bus);
}

static inline void bus_free(struct bus **bus)
{
    struct bus *freed = *bus;
    *bus = NULL;
    if (freed)
        freed->operations->free(freed);
}

/* Returns the gateway of a topic `server:<gateway>:deliver`; SLICE_NONE for other topics. */
static inline struct slice bus_topic_gateway(struct slice topic)
{
    struct slice head = SLICE("server:"), tail = SLICE(":deliver");
    size_t rest = topic.len - head.len;
    if (!slice_starts_with(topic, head) || rest <= tail.len ||
        !slice_equal((struct slice){topic.data + topic.len - tail.len, tail.len}, tail))
        return SLICE_NONE;
    return (struct slice){topic.data + head.len, rest - tail.len};
}

#endif
