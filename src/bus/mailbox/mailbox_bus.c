#include "bus/mailbox/mailbox_bus.h"

#include "base/container.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct mailbox_bus_place {
    struct mailbox_bus *bus; /* NULL until it is made */
    _Atomic uint32_t interest[MAILBOX_BUS_FILTER_SLOTS];
};

struct mailbox_bus_group {
    size_t workers;
    uint64_t hash_seed;
    struct mailbox_bus_place places[];
};

struct mailbox_bus {
    struct bus bus;
    struct mailbox_bus_group *group;
    struct mailbox_bus_place *self;
    struct mailbox *mailbox;
    struct metrics *metrics;
    size_t own_len; /* of the own gateway's topic; 0: not subscribed yet */
    char own[MAILBOX_BUS_OWN_BYTES_MAX];
};

struct bus_mail {
    struct mail mail;
    struct mailbox_bus *to;
    uint32_t topic_len;
    uint32_t payload_len;
    char bytes[];
};

struct mailbox_bus_group *mailbox_bus_group_make(size_t workers, uint64_t hash_seed)
{
    struct mailbox_bus_group *group =
        calloc(1, sizeof(*group) + workers * sizeof(struct mailbox_bus_place));
    if (!group)
        return NULL;
    group->workers = workers;
    group->hash_seed = hash_seed;
    return group;
}

void mailbox_bus_group_free(struct mailbox_bus_group **group)
{
    free(*group);
    *group = NULL;
}

static struct mailbox_bus *mailbox_bus_of(struct bus *bus)
{
    return CONTAINER_OF(bus, struct mailbox_bus, bus);
}

static size_t mailbox_bus_filter_slot(const struct mailbox_bus_group *group, struct slice topic)
{
    return XXH3_64bits_withSeed(topic.data, topic.len, group->hash_seed) % MAILBOX_BUS_FILTER_SLOTS;
}

static void mailbox_bus_subscribe(struct bus *port, struct slice topic)
{
    struct mailbox_bus *bus = mailbox_bus_of(port);
    if (bus_topic_gateway(topic).data && topic.len <= sizeof(bus->own)) {
        memcpy(bus->own, topic.data, topic.len);
        bus->own_len = topic.len;
    }
    atomic_fetch_add(&bus->self->interest[mailbox_bus_filter_slot(bus->group, topic)], 1);
}

static void mailbox_bus_unsubscribe(struct bus *port, struct slice topic)
{
    struct mailbox_bus *bus = mailbox_bus_of(port);
    atomic_fetch_sub(&bus->self->interest[mailbox_bus_filter_slot(bus->group, topic)], 1);
}

/* A user may be connected to several gateways, so an event for another gateway must not pass. */
static void mailbox_bus_pass_on(struct mailbox_bus *bus, struct slice topic, struct slice payload)
{
    bool names_gateway = bus_topic_gateway(topic).data != NULL;
    if (!names_gateway || slice_equal(topic, (struct slice){bus->own, bus->own_len}))
        bus->bus.on_event(bus->bus.arg, topic, payload);
}

static void on_bus_mail(struct mail *mail, void *owner)
{
    (void)owner;
    struct bus_mail *event = CONTAINER_OF(mail, struct bus_mail, mail);
    mailbox_bus_pass_on(event->to, (struct slice){event->bytes, event->topic_len},
                        (struct slice){event->bytes + event->topic_len, event->payload_len});
    free(event);
}

/* Delivery is at most once: when out of memory or with a full mailbox, drops the event and counts it. */
static void mailbox_bus_post(struct mailbox_bus *from, struct mailbox_bus *to, struct slice topic,
                             struct slice payload)
{
    struct bus_mail *event = malloc(sizeof(*event) + topic.len + payload.len);
    if (event) {
        event->mail.on_open = on_bus_mail;
        event->to = to;
        event->topic_len = (uint32_t)topic.len;
        event->payload_len = (uint32_t)payload.len;
        memcpy(event->bytes, topic.data, topic.len);
        if (payload.len)
            memcpy(event->bytes + topic.len, payload.data, payload.len);
        if (mailbox_post(to->mailbox, &event->mail))
            return;
        free(event);
    }
    metrics_count(from->metrics, METRIC_BUS_DROPPED);
}

static void mailbox_bus_publish(struct bus *port, struct slice topic, struct slice payload)
{
    struct mailbox_bus *bus = mailbox_bus_of(port);
    size_t slot = mailbox_bus_filter_slot(bus->group, topic);
    for (size_t i = 0; i < bus->group->workers; i++) {
        struct mailbox_bus_place *place = &bus->group->places[i];
        if (place != bus->self && atomic_load(&place->interest[slot]))
            mailbox_bus_post(bus, place->bus, topic, payload);
    }
    if (atomic_load(&bus->self->interest[slot]))
        mailbox_bus_pass_on(bus, topic, payload);
}

/* From here on no other bus of the group posts to this one. */
static void mailbox_bus_free(struct bus *port)
{
    struct mailbox_bus *bus = mailbox_bus_of(port);
    for (size_t slot = 0; slot < MAILBOX_BUS_FILTER_SLOTS; slot++)
        atomic_store(&bus->self->interest[slot], 0);
    free(bus);
}

static const struct bus_operations MAILBOX_BUS_OPERATIONS = {
    .subscribe = mailbox_bus_subscribe,
    .unsubscribe = mailbox_bus_unsubscribe,
    .publish = mailbox_bus_publish,
    .free = mailbox_bus_free,
};

struct bus *mailbox_bus_make(struct mailbox_bus_group *group, size_t index, struct mailbox *mailbox,
                             struct metrics *metrics, bus_on_event on_event, void *arg)
{
    struct mailbox_bus *bus = malloc(sizeof(*bus));
    if (!bus)
        return NULL;
    *bus = (struct mailbox_bus){
        .bus = {.operations = &MAILBOX_BUS_OPERATIONS, .on_event = on_event, .arg = arg},
        .group = group,
        .self = &group->places[index],
        .mailbox = mailbox,
        .metrics = metrics,
    };
    bus->self->bus = bus;
    return &bus->bus;
}
