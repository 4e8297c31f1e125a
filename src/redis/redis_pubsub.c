#include "redis/redis_pubsub.h"

#include "base/container.h"
#include "base/table.h"
#include "log/log.h"
#include "redis/redis_cluster.h"
#include "redis/redis_subscriber.h"

#include <stdlib.h>

/* How long unassigned channels wait for the cluster's table to settle. */
enum { ASSIGN_DELAY_MS = 100 };

struct redis_pubsub {
    struct redis_client *client;
    struct redis_cluster *cluster;
    const struct redis_pubsub_owner *owner;
    void *arg;
    struct redis_observer observer;
    struct table channels;
    struct list subscribers;
    struct list unassigned;   /* channels without a subscriber */
    struct wheel_timer timer; /* assigns channels */
    enum redis_subscription subscription;
    bool moved; /* channels may have the wrong subscriber */
};

static bool pubsub_channel_matches(const struct table_node *node, struct slice key)
{
    const struct redis_channel *channel = CONTAINER_OF(node, struct redis_channel, node);
    return slice_equal((struct slice){channel->name, channel->len}, key);
}

static struct redis_channel *find_pubsub_channel(const struct redis_pubsub *pubsub,
                                                 struct slice name)
{
    struct table_node *node = table_find(&pubsub->channels, name);
    return node ? CONTAINER_OF(node, struct redis_channel, node) : NULL;
}

/* ---- reports of the subscribers ---- */

static struct redis_channel *find_pubsub_subscriber_channel(struct redis_subscriber *subscriber,
                                                            struct slice name)
{
    return find_pubsub_channel(subscriber->arg, name);
}

static void on_pubsub_message(struct redis_subscriber *subscriber, struct slice name,
                              struct slice channel, struct slice message)
{
    struct redis_pubsub *pubsub = subscriber->arg;
    const struct redis_channel *known = find_pubsub_channel(pubsub, name);
    if (known && known->subscriber == subscriber && known->state == REDIS_CHANNEL_LIVE)
        pubsub->owner->on_message(pubsub->arg, channel, message);
}

static void on_pubsub_channel_live(struct redis_subscriber *subscriber, struct slice name)
{
    struct redis_pubsub *pubsub = subscriber->arg;
    if (pubsub->owner->on_subscribed)
        pubsub->owner->on_subscribed(pubsub->arg, name);
}

static void on_pubsub_subscription_refused(struct redis_subscriber *subscriber,
                                           const struct resp_value *error)
{
    struct redis_pubsub *pubsub = subscriber->arg;
    struct redis_address address;
    uint16_t slot;
    if (resp_is_error(error, "MOVED") &&
        redis_topology_redirect(error->text, redis_connection_address(subscriber->connection)->host,
                                &slot, &address))
        redis_cluster_slot_moved(pubsub->cluster, slot, &address);
    else
        log_warn("redis_subscribe_refused", "error=%s", log_sentence(error->text));
    redis_cluster_refresh_soon(pubsub->cluster);
}

static void assign_pubsub_channels_soon(struct redis_pubsub *pubsub, int64_t delay_ms)
{
    struct loop *loop = pubsub->cluster->context.loop;
    if (!wheel_is_set(&pubsub->timer))
        loop_set_timer(loop, &pubsub->timer, loop->clock.now_ms + delay_ms);
}

static void on_pubsub_channel_unassigned(struct redis_subscriber *subscriber,
                                         struct redis_channel *channel)
{
    struct redis_pubsub *pubsub = subscriber->arg;
    list_append(&pubsub->unassigned, &channel->place);
    redis_cluster_refresh_soon(pubsub->cluster);
    assign_pubsub_channels_soon(pubsub, ASSIGN_DELAY_MS);
}

static const struct redis_subscriber_owner SUBSCRIBER_OWNER = {
    .on_message = on_pubsub_message,
    .on_live = on_pubsub_channel_live,
    .on_refused = on_pubsub_subscription_refused,
    .on_unassigned = on_pubsub_channel_unassigned,
    .find = find_pubsub_subscriber_channel};

/* ---- assigning channels to subscribers ---- */

/* The server of the channel's slot; NULL when there is none. */
static const struct redis_address *find_pubsub_channel_server(const struct redis_pubsub *pubsub,
                                                              struct slice name)
{
    struct redis_connection *connection =
        redis_cluster_connection(pubsub->cluster, redis_slot(name));
    return connection ? redis_connection_address(connection) : NULL;
}

static struct redis_subscriber *ensure_pubsub_subscriber(struct redis_pubsub *pubsub,
                                                         const struct redis_address *address)
{
    for (struct list *at = pubsub->subscribers.next; at != &pubsub->subscribers; at = at->next) {
        struct redis_subscriber *subscriber = CONTAINER_OF(at, struct redis_subscriber, place);
        if (redis_address_equal(redis_connection_address(subscriber->connection), address))
            return subscriber;
    }
    struct redis_subscriber *subscriber = redis_subscriber_make(
        &pubsub->cluster->context, address, pubsub->subscription, &SUBSCRIBER_OWNER, pubsub);
    if (subscriber)
        list_append(&pubsub->subscribers, &subscriber->place);
    return subscriber;
}

static bool assign_pubsub_channel(struct redis_pubsub *pubsub, struct redis_channel *channel)
{
    const struct redis_address *server =
        find_pubsub_channel_server(pubsub, (struct slice){channel->name, channel->len});
    struct redis_subscriber *subscriber = server ? ensure_pubsub_subscriber(pubsub, server) : NULL;
    if (!subscriber)
        return false;
    list_remove(&channel->place);
    redis_subscriber_add(subscriber, channel);
    return true;
}

/* Tries each channel once; those without a server go back to the list. */
static void assign_pubsub_channels(struct redis_pubsub *pubsub)
{
    struct list rest;
    list_init(&rest);
    while (!list_empty(&pubsub->unassigned)) {
        struct redis_channel *channel =
            CONTAINER_OF(pubsub->unassigned.next, struct redis_channel, place);
        if (!assign_pubsub_channel(pubsub, channel)) {
            list_remove(&channel->place);
            list_append(&rest, &channel->place);
        }
    }
    while (!list_empty(&rest)) {
        struct list *item = rest.next;
        list_remove(item);
        list_append(&pubsub->unassigned, item);
    }
    if (!list_empty(&pubsub->unassigned))
        assign_pubsub_channels_soon(pubsub, ASSIGN_DELAY_MS);
}

static void unassign_moved_pubsub_channel(struct table_node *node, void *arg)
{
    struct redis_pubsub *pubsub = arg;
    struct redis_channel *channel = CONTAINER_OF(node, struct redis_channel, node);
    struct redis_subscriber *subscriber = channel->subscriber;
    const struct redis_address *server =
        find_pubsub_channel_server(pubsub, (struct slice){channel->name, channel->len});
    if (!subscriber || !server ||
        redis_address_equal(redis_connection_address(subscriber->connection), server))
        return;
    redis_subscriber_remove(subscriber, channel, true);
    list_append(&pubsub->unassigned, &channel->place);
}

/* Keeps a subscriber without channels for later ones, unless its server serves no slots any more; then frees
 * it once its last reply has arrived. */
static void drop_idle_pubsub_subscribers(struct redis_pubsub *pubsub)
{
    for (struct list *at = pubsub->subscribers.next, *next; at != &pubsub->subscribers; at = next) {
        struct redis_subscriber *subscriber = CONTAINER_OF(at, struct redis_subscriber, place);
        next = at->next;
        if (subscriber->channel_count > 0 ||
            redis_cluster_serves(pubsub->cluster, redis_connection_address(subscriber->connection)))
            continue;
        if (subscriber->in_flight)
            assign_pubsub_channels_soon(pubsub, ASSIGN_DELAY_MS);
        else
            redis_subscriber_free(&subscriber);
    }
}

static void on_pubsub_assign_timer(struct wheel_timer *timer)
{
    struct redis_pubsub *pubsub = CONTAINER_OF(timer, struct redis_pubsub, timer);
    if (pubsub->moved) {
        pubsub->moved = false;
        table_each(&pubsub->channels, unassign_moved_pubsub_channel, pubsub);
    }
    assign_pubsub_channels(pubsub);
    drop_idle_pubsub_subscribers(pubsub);
}

static void on_pubsub_slots_moved(struct redis_observer *observer)
{
    struct redis_pubsub *pubsub = CONTAINER_OF(observer, struct redis_pubsub, observer);
    pubsub->moved = redis_is_cluster(pubsub->client) || pubsub->cluster->url->sentinel;
    if (pubsub->moved || !list_empty(&pubsub->unassigned))
        assign_pubsub_channels_soon(pubsub, ASSIGN_DELAY_MS);
}

/* ---- for the owner ---- */

bool redis_pubsub_subscribe(struct redis_pubsub *pubsub, struct slice name)
{
    if (find_pubsub_channel(pubsub, name))
        return true;
    if (pubsub->channels.size >= REDIS_CHANNELS_MAX || name.len > REDIS_CHANNEL_BYTES_MAX)
        return false;
    struct redis_channel *channel = calloc(1, sizeof(*channel) + name.len);
    if (!channel)
        return false;
    channel->len = name.len;
    memcpy(channel->name, name.data, name.len);
    list_init(&channel->place);
    table_insert(&pubsub->channels, &channel->node, name);
    if (!assign_pubsub_channel(pubsub, channel)) {
        list_append(&pubsub->unassigned, &channel->place);
        assign_pubsub_channels_soon(pubsub, ASSIGN_DELAY_MS);
    }
    return true;
}

void redis_pubsub_unsubscribe(struct redis_pubsub *pubsub, struct slice name)
{
    struct redis_channel *channel = find_pubsub_channel(pubsub, name);
    if (!channel)
        return;
    if (channel->subscriber)
        redis_subscriber_remove(channel->subscriber, channel, true);
    list_remove(&channel->place);
    table_remove(&pubsub->channels, &channel->node);
    free(channel);
}

bool redis_pubsub_is_live(const struct redis_pubsub *pubsub, struct slice name)
{
    const struct redis_channel *channel = find_pubsub_channel(pubsub, name);
    return channel && channel->subscriber && channel->state == REDIS_CHANNEL_LIVE;
}

bool redis_pubsub_settled(const struct redis_pubsub *pubsub)
{
    for (const struct list *at = pubsub->subscribers.next; at != &pubsub->subscribers;
         at = at->next) {
        const struct redis_subscriber *subscriber =
            CONTAINER_OF(at, struct redis_subscriber, place);
        if (!list_empty(&subscriber->wanted) || !list_empty(&subscriber->asked))
            return false;
    }
    return list_empty(&pubsub->unassigned);
}

struct redis_pubsub *redis_pubsub_make(struct redis_client *client,
                                       const struct redis_pubsub_owner *owner, void *arg)
{
    struct redis_cluster *cluster = redis_client_cluster(client);
    struct redis_pubsub *pubsub = calloc(1, sizeof(*pubsub));
    if (!pubsub || !table_init(&pubsub->channels, random_u64(cluster->context.random),
                               pubsub_channel_matches)) {
        free(pubsub);
        return NULL;
    }
    pubsub->client = client;
    pubsub->cluster = cluster;
    pubsub->subscription =
        redis_is_cluster(client) ? REDIS_SUBSCRIBE_SHARDED : REDIS_SUBSCRIBE_CHANNELS;
    pubsub->owner = owner;
    pubsub->arg = arg;
    pubsub->observer.on_slots_moved = on_pubsub_slots_moved;
    pubsub->timer.fire = on_pubsub_assign_timer;
    list_init(&pubsub->subscribers);
    list_init(&pubsub->unassigned);
    redis_observe(client, &pubsub->observer);
    return pubsub;
}

struct redis_pubsub *redis_pubsub_make_patterns(struct redis_client *client,
                                                const struct redis_pubsub_owner *owner, void *arg)
{
    struct redis_pubsub *pubsub = redis_pubsub_make(client, owner, arg);
    if (pubsub)
        pubsub->subscription = REDIS_SUBSCRIBE_PATTERNS;
    return pubsub;
}

static void free_pubsub_channel(struct table_node *node, void *arg)
{
    struct redis_pubsub *pubsub = arg;
    struct redis_channel *channel = CONTAINER_OF(node, struct redis_channel, node);
    if (channel->subscriber)
        redis_subscriber_remove(channel->subscriber, channel, false);
    list_remove(&channel->place);
    table_remove(&pubsub->channels, node);
    free(channel);
}

void redis_pubsub_free(struct redis_pubsub **pubsub)
{
    struct redis_pubsub *freed = *pubsub;
    *pubsub = NULL;
    if (!freed)
        return;
    redis_unobserve(&freed->observer);
    table_each(&freed->channels, free_pubsub_channel, freed);
    while (!list_empty(&freed->subscribers)) {
        struct redis_subscriber *subscriber =
            CONTAINER_OF(freed->subscribers.next, struct redis_subscriber, place);
        redis_subscriber_free(&subscriber);
    }
    loop_cancel_timer(freed->cluster->context.loop, &freed->timer);
    table_free(&freed->channels);
    free(freed);
}
