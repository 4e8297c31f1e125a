#include "bus/mailbox/mailbox_bus.h"

#include "base/container.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct exchange_member {
    struct mailbox_bus *bus; /* NULL until its worker is made */
    _Atomic uint32_t interest[MAILBOX_BUS_FILTER_SLOTS];
};

struct mailbox_bus_group {
    size_t workers;
    uint64_t hash_seed;
    struct exchange_member members[];
};

struct mailbox_bus {
    struct bus bus;
    struct mailbox_bus_group *exchange;
    struct exchange_member *self;
    struct mailbox *mailbox;
    struct metrics *metrics;
    size_t own_len; /* 0: not subscribed yet */
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
    struct mailbox_bus_group *exchange =
        calloc(1, sizeof(*exchange) + workers * sizeof(struct exchange_member));
    if (!exchange)
        return NULL;
    exchange->workers = workers;
    exchange->hash_seed = hash_seed;
    return exchange;
}

void mailbox_bus_group_free(struct mailbox_bus_group **exchange)
{
    free(*exchange);
    *exchange = NULL;
}

static struct mailbox_bus *bus_of(struct bus *bus)
{
    return CONTAINER_OF(bus, struct mailbox_bus, bus);
}

static size_t slot_of(const struct mailbox_bus_group *exchange, struct slice topic)
{
    return XXH3_64bits_withSeed(topic.data, topic.len, exchange->hash_seed) %
           MAILBOX_BUS_FILTER_SLOTS;
}

static void mailbox_bus_subscribe(struct bus *port, struct slice topic)
{
    struct mailbox_bus *bus = bus_of(port);
    if (bus_topic_gateway(topic).data && topic.len <= sizeof(bus->own)) {
        memcpy(bus->own, topic.data, topic.len);
        bus->own_len = topic.len;
    }
    atomic_fetch_add(&bus->self->interest[slot_of(bus->exchange, topic)], 1);
}

static void mailbox_bus_unsubscribe(struct bus *port, struct slice topic)
{
    struct mailbox_bus *bus = bus_of(port);
    atomic_fetch_sub(&bus->self->interest[slot_of(bus->exchange, topic)], 1);
}

/* Users may be connected to several gateways, so another one's mail must not be taken for one's own. */
static void take(struct mailbox_bus *bus, struct slice topic, struct slice payload)
{
    bool names_a_gateway = bus_topic_gateway(topic).data != NULL;
    if (!names_a_gateway || slice_equal(topic, (struct slice){bus->own, bus->own_len}))
        bus->bus.on_event(bus->bus.arg, topic, payload);
}

static void open_mail(struct mail *mail, void *owner)
{
    (void)owner;
    struct bus_mail *letter = CONTAINER_OF(mail, struct bus_mail, mail);
    take(letter->to, (struct slice){letter->bytes, letter->topic_len},
         (struct slice){letter->bytes + letter->topic_len, letter->payload_len});
    free(letter);
}

/* At most once: without memory, or into a full box, the event is dropped and counted. */
static void post(struct mailbox_bus *from, struct mailbox_bus *to, struct slice topic,
                 struct slice payload)
{
    struct bus_mail *letter = malloc(sizeof(*letter) + topic.len + payload.len);
    if (letter) {
        letter->mail.on_open = open_mail;
        letter->to = to;
        letter->topic_len = (uint32_t)topic.len;
        letter->payload_len = (uint32_t)payload.len;
        memcpy(letter->bytes, topic.data, topic.len);
        if (payload.len)
            memcpy(letter->bytes + topic.len, payload.data, payload.len);
        if (mailbox_post(to->mailbox, &letter->mail))
            return;
        free(letter);
    }
    metrics_count(from->metrics, METRIC_BUS_DROPPED);
}

static void mailbox_bus_publish(struct bus *port, struct slice topic, struct slice payload)
{
    struct mailbox_bus *bus = bus_of(port);
    size_t slot = slot_of(bus->exchange, topic);
    for (size_t i = 0; i < bus->exchange->workers; i++) {
        struct exchange_member *member = &bus->exchange->members[i];
        if (member != bus->self && atomic_load(&member->interest[slot]))
            post(bus, member->bus, topic, payload);
    }
    if (atomic_load(&bus->self->interest[slot]))
        take(bus, topic, payload);
}

static void mailbox_bus_free(struct bus *port)
{
    free(bus_of(port));
}

static const struct bus_operations OPERATIONS = {
    .subscribe = mailbox_bus_subscribe,
    .unsubscribe = mailbox_bus_unsubscribe,
    .publish = mailbox_bus_publish,
    .free = mailbox_bus_free,
};

struct bus *mailbox_bus_make(struct mailbox_bus_group *exchange, size_t index,
                             struct mailbox *mailbox, struct metrics *metrics,
                             bus_on_event on_event, void *arg)
{
    struct mailbox_bus *bus = malloc(sizeof(*bus));
    if (!bus)
        return NULL;
    *bus = (struct mailbox_bus){
        .bus = {.operations = &OPERATIONS, .on_event = on_event, .arg = arg},
        .exchange = exchange,
        .self = &exchange->members[index],
        .mailbox = mailbox,
        .metrics = metrics,
    };
    bus->self->bus = bus;
    return &bus->bus;
}
