/*
 * The bus carries events between gateways: the port behind which a mailbox, Redis pub/sub or a peer
 * link does the work.
 *
 * Topics are names (`presence:<user>`, `chat:<chat>:typing`, `server:<gateway>:deliver`); payloads are
 * bytes, JSON by convention. Delivery is at most once, in order per sender, to every gateway that is
 * subscribed, the sender's own included. A gateway subscribes to a topic only while someone local
 * cares, and subscribes before it reads the state the topic changes, so that nothing falls in between.
 *
 * `received` runs on the worker's thread, possibly inside publish(). One `struct bus` per worker.
 */
#ifndef ROLLCALL_BUS_BUS_H
#define ROLLCALL_BUS_BUS_H

#include "base/slice.h"

struct bus;

struct bus_operations {
    void (*subscribe)(struct bus *bus, struct slice topic);
    void (*unsubscribe)(struct bus *bus, struct slice topic);
    void (*publish)(struct bus *bus, struct slice topic, struct slice payload);
    void (*free)(struct bus *bus);
};

struct bus {
    const struct bus_operations *operations;
    void (*received)(void *arg, struct slice topic, struct slice payload);
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

static inline void bus_free(struct bus **bus)
{
    struct bus *freed = *bus;
    *bus = NULL;
    if (freed)
        freed->operations->free(freed);
}

#endif
