#include "bus/fleet/fleet_bus.h"

#include "base/container.h"
#include "base/hash_key.h"
#include "base/list.h"
#include "base/seen.h"
#include "log/log.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { FLEET_GATEWAY_BYTES_MAX = PEER_NAME_BYTES_MAX + 16, FLEET_TOPIC_BYTES_MAX = 1024 };

struct fleet_bus {
    struct bus bus;
    struct bus_carrier *carrier;
    struct bus *mailbox; /* the fallback within the process */
    struct peer_hub *hub;
    struct metrics *metrics;
    struct slice process;
    size_t workers;
    const atomic_bool *is_alone;
    struct list publications; /* unanswered by the carrier */
    struct seen seen;         /* recent events for this gateway */
    struct hash_key key;      /* of the hashes in `seen` */
    size_t own_topic_len;     /* 0: not subscribed yet */
    char own_topic[FLEET_TOPIC_BYTES_MAX];
};

/* An event on its way to the carrier, kept for the fallback. */
struct publication {
    struct bus_carriage carriage;
    struct list place;
    struct fleet_bus *bus; /* NULL: the bus was freed */
    size_t topic_len;
    size_t payload_len;
    char bytes[];
};

static struct fleet_bus *fleet_bus_of(struct bus *bus)
{
    return CONTAINER_OF(bus, struct fleet_bus, bus);
}

/* ---- receiving ---- */

/* Receives from the carrier and from the mailbox: an event for this gateway may arrive by both. */
static void on_fleet_event(void *arg, struct slice topic, struct slice payload)
{
    struct fleet_bus *bus = arg;
    if (bus_topic_gateway(topic).data &&
        !seen_note(&bus->seen, hash_key_hash(&bus->key, payload))) {
        metrics_count(bus->metrics, METRIC_BUS_DUPLICATES);
        return;
    }
    bus->bus.on_event(bus->bus.arg, topic, payload);
}

static void on_fleet_topic_live(void *arg, struct slice topic)
{
    struct fleet_bus *bus = arg;
    if (bus->bus.on_gap)
        bus->bus.on_gap(bus->bus.arg, topic);
}

static void fleet_bus_subscribe(struct bus *port, struct slice topic)
{
    struct fleet_bus *bus = fleet_bus_of(port);
    bus_subscribe(bus->mailbox, topic);
    if (bus_topic_gateway(topic).data && topic.len <= sizeof(bus->own_topic)) {
        memcpy(bus->own_topic, topic.data, topic.len);
        bus->own_topic_len = topic.len;
    }
    if (slice_equal(topic, BUS_TOPIC_ALL) ||
        bus->carrier->operations->subscribe(bus->carrier, topic))
        return;
    metrics_count(bus->metrics, METRIC_BUS_DROPPED);
    log_error("bus_subscribe_failed", "topic=%s", log_quote(topic));
}

static void fleet_bus_unsubscribe(struct bus *port, struct slice topic)
{
    struct fleet_bus *bus = fleet_bus_of(port);
    bus_unsubscribe(bus->mailbox, topic);
    if (!slice_equal(topic, BUS_TOPIC_ALL))
        bus->carrier->operations->unsubscribe(bus->carrier, topic);
}

/* ---- publishing ---- */

/* A single worker has the name of its process; several append their numbers. */
static bool fleet_bus_is_own_gateway(const struct fleet_bus *bus, struct slice gateway_id)
{
    char name[FLEET_GATEWAY_BYTES_MAX];
    if (bus->workers == 1)
        return slice_equal(gateway_id, bus->process);
    for (size_t i = 0; i < bus->workers; i++) {
        int len = snprintf(name, sizeof(name), "%.*s-%zu", SLICE_FORMAT(bus->process), i);
        if (slice_equal(gateway_id, (struct slice){name, (size_t)len}))
            return true;
    }
    return false;
}

/* Publishes to the workers of this process and, unless the event is for one of them, to the other processes. */
static void fleet_bus_publish_by_fallback(struct fleet_bus *bus, struct slice topic,
                                          struct slice payload)
{
    struct slice gateway_id = bus_topic_gateway(topic);
    bus_publish(bus->mailbox, topic, payload);
    if (bus->hub && !(gateway_id.data && fleet_bus_is_own_gateway(bus, gateway_id)))
        peer_hub_send(bus->hub, bus->metrics, topic, payload);
}

static void fleet_bus_reroute(struct fleet_bus *bus, struct slice topic, struct slice payload)
{
    metrics_count(bus->metrics, METRIC_BUS_REROUTED);
    fleet_bus_publish_by_fallback(bus, topic, payload);
}

/* The event was carried if there are receivers; topics without a gateway may have none. */
static void on_publication_carried(struct bus_carriage *carriage, int64_t receivers)
{
    struct publication *publication = CONTAINER_OF(carriage, struct publication, carriage);
    struct slice topic = {publication->bytes, publication->topic_len};
    bool carried = receivers > 0 || (receivers == 0 && !bus_topic_gateway(topic).data);
    if (publication->bus && !carried)
        fleet_bus_reroute(publication->bus, topic,
                          (struct slice){publication->bytes + topic.len, publication->payload_len});
    list_remove(&publication->place);
    free(publication);
}

static struct publication *publication_make(struct fleet_bus *bus, struct slice topic,
                                            struct slice payload)
{
    struct publication *publication = malloc(sizeof(*publication) + topic.len + payload.len);
    if (!publication)
        return NULL;
    publication->carriage.on_carried = on_publication_carried;
    publication->bus = bus;
    publication->topic_len = topic.len;
    publication->payload_len = payload.len;
    memcpy(publication->bytes, topic.data, topic.len);
    if (payload.len)
        memcpy(publication->bytes + topic.len, payload.data, payload.len);
    list_append(&bus->publications, &publication->place);
    return publication;
}

static void fleet_bus_publish(struct bus *port, struct slice topic, struct slice payload)
{
    struct fleet_bus *bus = fleet_bus_of(port);
    if (slice_equal(topic, BUS_TOPIC_ALL)) {
        fleet_bus_publish_by_fallback(bus, topic, payload);
        return;
    }
    if (slice_equal(topic, BUS_TOPIC_LOST)) {
        if (bus->hub)
            peer_hub_send(bus->hub, bus->metrics, topic, payload);
        return;
    }
    struct publication *publication = bus->carrier->operations->reaches(bus->carrier, topic)
                                          ? publication_make(bus, topic, payload)
                                          : NULL;
    if (publication)
        bus_carrier_publish(bus->carrier, topic, payload, &publication->carriage);
    else
        fleet_bus_reroute(bus, topic, payload);
}

static bool fleet_bus_has_lost(const struct bus *port)
{
    const struct fleet_bus *bus = CONTAINER_OF(port, struct fleet_bus, bus);
    return bus->hub && peer_hub_lost_links(bus->hub) > 0;
}

static bool fleet_bus_reaches_all(const struct bus *port)
{
    const struct fleet_bus *bus = CONTAINER_OF(port, struct fleet_bus, bus);
    return (bus->hub && peer_hub_gateway_links(bus->hub) > 0) ||
           (bus->is_alone && atomic_load(bus->is_alone));
}

static bool fleet_bus_is_reachable(const struct bus *port)
{
    const struct fleet_bus *bus = CONTAINER_OF(port, struct fleet_bus, bus);
    return bus->own_topic_len &&
           bus->carrier->operations->is_live(bus->carrier,
                                             (struct slice){bus->own_topic, bus->own_topic_len});
}

void fleet_bus_relay(void *port, struct slice topic, struct slice payload)
{
    bus_publish(fleet_bus_of(port)->mailbox, topic, payload);
}

/* ---- life ---- */

/* What is behind the carrier is closed later and answers the pending publications then, so they outlive the bus. */
static void fleet_bus_free(struct bus *port)
{
    struct fleet_bus *bus = fleet_bus_of(port);
    while (!list_empty(&bus->publications)) {
        struct publication *publication =
            CONTAINER_OF(bus->publications.next, struct publication, place);
        publication->bus = NULL;
        list_remove(&publication->place);
    }
    bus_carrier_free(&bus->carrier);
    bus_free(&bus->mailbox);
    free(bus);
}

static const struct bus_operations FLEET_BUS_OPERATIONS = {
    .subscribe = fleet_bus_subscribe,
    .unsubscribe = fleet_bus_unsubscribe,
    .publish = fleet_bus_publish,
    .has_lost = fleet_bus_has_lost,
    .reaches_all = fleet_bus_reaches_all,
    .is_reachable = fleet_bus_is_reachable,
    .free = fleet_bus_free,
};

void fleet_bus_use_hub(struct bus *bus, struct peer_hub *hub)
{
    fleet_bus_of(bus)->hub = hub;
}

bool fleet_bus_is_settled(const struct bus *bus)
{
    const struct bus_carrier *carrier = CONTAINER_OF(bus, struct fleet_bus, bus)->carrier;
    return carrier->operations->is_settled(carrier);
}

struct bus *fleet_bus_make(const struct fleet_bus_options *options)
{
    assert(options->process.len <= PEER_NAME_BYTES_MAX);
    struct fleet_bus *bus = calloc(1, sizeof(*bus));
    if (!bus || !options->carrier) {
        struct bus_carrier *carrier = options->carrier;
        bus_carrier_free(&carrier);
        free(bus);
        return NULL;
    }
    bus->bus = (struct bus){.operations = &FLEET_BUS_OPERATIONS,
                            .on_event = options->on_event,
                            .on_gap = options->on_gap,
                            .arg = options->arg};
    bus->carrier = options->carrier;
    bus->carrier->on_event = on_fleet_event;
    bus->carrier->on_live = on_fleet_topic_live;
    bus->carrier->arg = bus;
    bus->metrics = options->metrics;
    bus->process = options->process;
    bus->workers = options->workers;
    bus->is_alone = options->is_alone;
    hash_key_init(&bus->key, options->hash_seed);
    list_init(&bus->publications);
    bus->mailbox = mailbox_bus_make(options->group, options->index, options->mailbox,
                                    options->metrics, on_fleet_event, bus);
    if (bus->mailbox)
        return &bus->bus;
    fleet_bus_free(&bus->bus);
    return NULL;
}
