#include "bus/fleet/redis_carrier.h"

#include "base/container.h"
#include "redis/redis_pubsub.h"

#include <stdlib.h>

struct redis_carrier {
    struct bus_carrier carrier;
    struct redis_client *client;
    struct redis_pubsub *pubsub;
};

static const struct redis_carrier *redis_carrier_of(const struct bus_carrier *carrier)
{
    return CONTAINER_OF(carrier, const struct redis_carrier, carrier);
}

static void on_redis_message(void *arg, struct slice channel, struct slice message)
{
    struct bus_carrier *carrier = arg;
    carrier->on_event(carrier->arg, channel, message);
}

static void on_redis_subscribed(void *arg, struct slice channel)
{
    struct bus_carrier *carrier = arg;
    carrier->on_live(carrier->arg, channel);
}

static const struct redis_pubsub_owner PUBSUB_OWNER = {.on_message = on_redis_message,
                                                       .on_subscribed = on_redis_subscribed};

static bool redis_carrier_reaches(const struct bus_carrier *carrier, struct slice topic)
{
    return redis_reaches(redis_carrier_of(carrier)->client, topic);
}

static void on_redis_published(void *arg, const struct resp_value *reply)
{
    struct bus_carriage *carriage = arg;
    carriage->on_carried(carriage, reply && reply->type == RESP_INTEGER ? reply->integer : -1);
}

static void redis_carrier_publish(struct bus_carrier *carrier, struct slice topic,
                                  struct slice payload, struct bus_carriage *carriage)
{
    redis_publish(redis_carrier_of(carrier)->client, topic, payload, on_redis_published, carriage);
}

static bool redis_carrier_subscribe(struct bus_carrier *carrier, struct slice topic)
{
    return redis_pubsub_subscribe(redis_carrier_of(carrier)->pubsub, topic);
}

static void redis_carrier_unsubscribe(struct bus_carrier *carrier, struct slice topic)
{
    redis_pubsub_unsubscribe(redis_carrier_of(carrier)->pubsub, topic);
}

static bool redis_carrier_is_live(const struct bus_carrier *carrier, struct slice topic)
{
    return redis_pubsub_is_live(redis_carrier_of(carrier)->pubsub, topic);
}

static bool redis_carrier_is_settled(const struct bus_carrier *carrier)
{
    return redis_pubsub_settled(redis_carrier_of(carrier)->pubsub);
}

static void redis_carrier_free(struct bus_carrier *port)
{
    struct redis_carrier *carrier = CONTAINER_OF(port, struct redis_carrier, carrier);
    redis_pubsub_free(&carrier->pubsub);
    free(carrier);
}

static const struct bus_carrier_operations OPERATIONS = {
    .reaches = redis_carrier_reaches,
    .publish = redis_carrier_publish,
    .subscribe = redis_carrier_subscribe,
    .unsubscribe = redis_carrier_unsubscribe,
    .is_live = redis_carrier_is_live,
    .is_settled = redis_carrier_is_settled,
    .free = redis_carrier_free,
};

struct bus_carrier *redis_carrier_make(struct redis_client *client)
{
    struct redis_carrier *carrier = calloc(1, sizeof(*carrier));
    if (!carrier)
        return NULL;
    carrier->carrier.operations = &OPERATIONS;
    carrier->client = client;
    carrier->pubsub = redis_pubsub_make(client, &PUBSUB_OWNER, &carrier->carrier);
    if (carrier->pubsub)
        return &carrier->carrier;
    free(carrier);
    return NULL;
}
