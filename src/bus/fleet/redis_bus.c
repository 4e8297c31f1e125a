#include "bus/fleet/redis_bus.h"

#include "base/container.h"
#include "log/log.h"
#include "redis/redis_pubsub.h"

#include <stdlib.h>

struct redis_bus {
    struct bus bus;
    struct redis_client *client;
    struct redis_pubsub *pubsub;
    struct metrics *metrics;
};

static struct redis_bus *bus_of(struct bus *bus)
{
    return CONTAINER_OF(bus, struct redis_bus, bus);
}

/* ---- what pub/sub reports ---- */

static void take_message(void *arg, struct slice channel, struct slice message)
{
    struct redis_bus *bus = arg;
    bus->bus.on_event(bus->bus.arg, channel, message);
}

static void note_live(void *arg, struct slice channel)
{
    struct redis_bus *bus = arg;
    if (bus->bus.on_gap)
        bus->bus.on_gap(bus->bus.arg, channel);
}

static const struct redis_pubsub_owner pubsub_owner = {.on_message = take_message,
                                                       .on_subscribed = note_live};

/* ---- the port ---- */

static void redis_bus_subscribe(struct bus *port, struct slice topic)
{
    struct redis_bus *bus = bus_of(port);
    if (redis_pubsub_subscribe(bus->pubsub, topic))
        return;
    metrics_count(bus->metrics, METRIC_BUS_DROPPED);
    log_error("bus_subscribe_failed", "topic=%s", log_quote(topic));
}

static void redis_bus_unsubscribe(struct bus *port, struct slice topic)
{
    redis_pubsub_unsubscribe(bus_of(port)->pubsub, topic);
}

static void redis_bus_publish(struct bus *port, struct slice topic, struct slice payload)
{
    redis_publish(bus_of(port)->client, topic, payload, NULL, NULL);
}

static void redis_bus_free(struct bus *port)
{
    struct redis_bus *bus = bus_of(port);
    redis_pubsub_free(&bus->pubsub);
    free(bus);
}

static const struct bus_operations OPERATIONS = {
    .subscribe = redis_bus_subscribe,
    .unsubscribe = redis_bus_unsubscribe,
    .publish = redis_bus_publish,
    .free = redis_bus_free,
};

bool redis_bus_settled(const struct bus *bus)
{
    return redis_pubsub_settled(CONTAINER_OF(bus, struct redis_bus, bus)->pubsub);
}

struct bus *redis_bus_make(struct redis_client *client, struct metrics *metrics,
                           bus_on_event on_event, bus_on_gap on_gap, void *arg)
{
    struct redis_bus *bus = malloc(sizeof(*bus));
    if (!bus)
        return NULL;
    *bus = (struct redis_bus){
        .bus = {.operations = &OPERATIONS, .on_event = on_event, .on_gap = on_gap, .arg = arg},
        .client = client,
        .metrics = metrics,
    };
    bus->pubsub = redis_pubsub_make(client, &pubsub_owner, bus);
    if (bus->pubsub)
        return &bus->bus;
    free(bus);
    return NULL;
}
