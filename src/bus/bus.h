/*
 * The bus carries events between gateways: the port behind which a mailbox, Redis pub/sub or a peer
 * link does the work.
 *
 * Topics are names (`presence:<user>`, `chat:<chat>:typing`, `server:<gateway>:deliver`); payloads are
 * bytes, JSON by convention. Delivery is at most once, in order per sender and topic, to every gateway that is
 * subscribed, the sender's own included. A gateway subscribes to a topic only while someone local
 * cares, and subscribes before it reads the state the topic changes, so that nothing falls in between.
 *
 * Between machines a subscription takes a moment to become live, and may be lost for a while. `gap` says
 * that it has become live, for the first time or again: what was published on the topic before may have
 * been missed, so what was read before that depends on it is read anew. From then on nothing is missed
 * until the next gap. A bus between threads has none.
 *
 * BUS_TOPIC_ALL is what every gateway subscribes to as long as it lives: who does not know where a user
 * is tells all gateways, without help from Redis. BUS_TOPIC_LOST is the same for those alone that others
 * can reach, but the store of routes has lost: cut off from Redis, they still hold their users, of whom
 * nobody finds a route. It arrives as BUS_TOPIC_ALL. bus_has_lost() says whether there are such gateways.
 *
 * `received` runs on the worker's thread, possibly inside publish(); so does `gap`, never inside a call.
 * One `struct bus` per worker.
 */
#ifndef ROLLCALL_BUS_BUS_H
#define ROLLCALL_BUS_BUS_H

#include "base/slice.h"

#include <stdbool.h>

/* Unlike any topic that names somebody: they have no colon. */
#define BUS_TOPIC_ALL SLICE("broadcast")
#define BUS_TOPIC_LOST SLICE("lost")

struct bus;

typedef void (*bus_on_event)(void *arg, struct slice topic, struct slice payload);
typedef void (*bus_on_gap)(void *arg, struct slice topic);

struct bus_operations {
    void (*subscribe)(struct bus *bus, struct slice topic);
    void (*unsubscribe)(struct bus *bus, struct slice topic);
    void (*publish)(struct bus *bus, struct slice topic, struct slice payload);
    bool (*has_lost)(const struct bus *bus); /* NULL: never */
    void (*free)(struct bus *bus);
};

struct bus {
    const struct bus_operations *operations;
    bus_on_event on_event;
    /* SLICE_NONE: every topic. NULL: nobody asks. */
    bus_on_gap on_gap;
    void *arg;
};

/* Once per topic; each is taken back by one bus_unsubscribe(). */
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

static inline void bus_free(struct bus **bus)
{
    struct bus *freed = *bus;
    *bus = NULL;
    if (freed)
        freed->operations->free(freed);
}

/* The gateway of a topic `server:<gateway>:deliver`; SLICE_NONE for other topics. */
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
