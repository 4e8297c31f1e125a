#include "redis/redis_pubsub.h"

#include "base/container.h"
#include "base/table.h"
#include "log/log.h"
#include "redis/redis_cluster.h"
#include "redis/redis_subscriber.h"

#include <stdlib.h>

/* Those without a line wait so long for the cluster's table to settle. */
enum { PLACE_DELAY_MS = 100 };

struct redis_pubsub {
    struct redis_client *client;
    struct redis_cluster *cluster;
    const struct redis_pubsub_owner *owner;
    void *arg;
    struct redis_observer listener;
    struct table channels;
    struct list lines;
    struct list homeless;
    struct wheel_timer timer; /* finds places */
    bool moved;               /* channels may be on the wrong line */
};

static bool matches(const struct table_node *node, struct slice key)
{
    const struct redis_channel *channel = CONTAINER_OF(node, struct redis_channel, node);
    return slice_equal((struct slice){channel->name, channel->len}, key);
}

static struct redis_channel *find_channel(const struct redis_pubsub *pubsub, struct slice name)
{
    struct table_node *node = table_find(&pubsub->channels, name);
    return node ? CONTAINER_OF(node, struct redis_channel, node) : NULL;
}

/* ---- what lines report ---- */

static struct redis_channel *find(struct redis_subscriber *line, struct slice name)
{
    return find_channel(line->arg, name);
}

static void pass_message(struct redis_subscriber *line, struct slice name, struct slice message)
{
    struct redis_pubsub *pubsub = line->arg;
    const struct redis_channel *channel = find_channel(pubsub, name);
    if (channel && channel->line == line && channel->state == REDIS_CHANNEL_LIVE)
        pubsub->owner->on_message(pubsub->arg, name, message);
}

static void note_live(struct redis_subscriber *line, struct slice name)
{
    struct redis_pubsub *pubsub = line->arg;
    if (pubsub->owner->on_subscribed)
        pubsub->owner->on_subscribed(pubsub->arg, name);
}

static void note_refused(struct redis_subscriber *line, const struct resp_value *error)
{
    struct redis_pubsub *pubsub = line->arg;
    struct redis_endpoint endpoint;
    uint16_t slot;
    if (resp_is_error(error, "MOVED") &&
        redis_topology_redirect(error->text, redis_connection_endpoint(line->link)->host, &slot,
                                &endpoint))
        redis_cluster_slot_moved(pubsub->cluster, slot, &endpoint);
    else
        log_warn("redis_subscribe_refused", "error=%s", log_sentence(error->text));
    redis_cluster_refresh_soon(pubsub->cluster);
}

static void place_soon(struct redis_pubsub *pubsub, int64_t delay_ms)
{
    struct loop *loop = pubsub->cluster->links.loop;
    if (!wheel_is_set(&pubsub->timer))
        loop_set_timer(loop, &pubsub->timer, loop->clock.now_ms + delay_ms);
}

static void note_homeless(struct redis_subscriber *line, struct redis_channel *channel)
{
    struct redis_pubsub *pubsub = line->arg;
    list_append(&pubsub->homeless, &channel->place);
    redis_cluster_refresh_soon(pubsub->cluster);
    place_soon(pubsub, PLACE_DELAY_MS);
}

static const struct redis_subscriber_owner line_owner = {.on_message = pass_message,
                                                         .on_live = note_live,
                                                         .on_refused = note_refused,
                                                         .on_unassigned = note_homeless,
                                                         .find = find};

/* ---- finding places ---- */

/* Where a channel belongs; NULL when nobody serves its slot. */
static const struct redis_endpoint *home_of(const struct redis_pubsub *pubsub, struct slice name)
{
    struct redis_connection *link = redis_cluster_connection(pubsub->cluster, redis_slot(name));
    return link ? redis_connection_endpoint(link) : NULL;
}

static struct redis_subscriber *need_line(struct redis_pubsub *pubsub,
                                          const struct redis_endpoint *endpoint)
{
    for (struct list *at = pubsub->lines.next; at != &pubsub->lines; at = at->next) {
        struct redis_subscriber *line = CONTAINER_OF(at, struct redis_subscriber, place);
        if (redis_endpoint_equal(redis_connection_endpoint(line->link), endpoint))
            return line;
    }
    struct redis_subscriber *line = redis_subscriber_make(
        &pubsub->cluster->links, endpoint, redis_is_cluster(pubsub->client), &line_owner, pubsub);
    if (line)
        list_append(&pubsub->lines, &line->place);
    return line;
}

static bool place(struct redis_pubsub *pubsub, struct redis_channel *channel)
{
    const struct redis_endpoint *home =
        home_of(pubsub, (struct slice){channel->name, channel->len});
    struct redis_subscriber *line = home ? need_line(pubsub, home) : NULL;
    if (!line)
        return false;
    list_remove(&channel->place);
    redis_subscriber_add(line, channel);
    return true;
}

/* Each once: those that find no place come back to the list. */
static void place_all(struct redis_pubsub *pubsub)
{
    struct list rest;
    list_init(&rest);
    while (!list_empty(&pubsub->homeless)) {
        struct redis_channel *channel =
            CONTAINER_OF(pubsub->homeless.next, struct redis_channel, place);
        if (!place(pubsub, channel)) {
            list_remove(&channel->place);
            list_append(&rest, &channel->place);
        }
    }
    while (!list_empty(&rest)) {
        struct list *item = rest.next;
        list_remove(item);
        list_append(&pubsub->homeless, item);
    }
    if (!list_empty(&pubsub->homeless))
        place_soon(pubsub, PLACE_DELAY_MS);
}

static void leave_wrong_line(struct table_node *node, void *arg)
{
    struct redis_pubsub *pubsub = arg;
    struct redis_channel *channel = CONTAINER_OF(node, struct redis_channel, node);
    struct redis_subscriber *line = channel->line;
    const struct redis_endpoint *home =
        home_of(pubsub, (struct slice){channel->name, channel->len});
    if (!line || !home || redis_endpoint_equal(redis_connection_endpoint(line->link), home))
        return;
    redis_subscriber_remove(line, channel, true);
    list_append(&pubsub->homeless, &channel->place);
}

/* A line without channels stays for the next, unless its server serves nothing any more, or until its last
 * answer has come. */
static void drop_idle_lines(struct redis_pubsub *pubsub)
{
    for (struct list *at = pubsub->lines.next, *next; at != &pubsub->lines; at = next) {
        struct redis_subscriber *line = CONTAINER_OF(at, struct redis_subscriber, place);
        next = at->next;
        if (line->channel_count > 0 ||
            redis_cluster_serves(pubsub->cluster, redis_connection_endpoint(line->link)))
            continue;
        if (line->in_flight)
            place_soon(pubsub, PLACE_DELAY_MS);
        else
            redis_subscriber_free(&line);
    }
}

static void fire(struct wheel_timer *timer)
{
    struct redis_pubsub *pubsub = CONTAINER_OF(timer, struct redis_pubsub, timer);
    if (pubsub->moved) {
        pubsub->moved = false;
        table_each(&pubsub->channels, leave_wrong_line, pubsub);
    }
    place_all(pubsub);
    drop_idle_lines(pubsub);
}

static void slots_moved(struct redis_observer *listener)
{
    struct redis_pubsub *pubsub = CONTAINER_OF(listener, struct redis_pubsub, listener);
    pubsub->moved = redis_is_cluster(pubsub->client);
    if (pubsub->moved || !list_empty(&pubsub->homeless))
        place_soon(pubsub, PLACE_DELAY_MS);
}

/* ---- what the owner does ---- */

bool redis_pubsub_subscribe(struct redis_pubsub *pubsub, struct slice name)
{
    if (find_channel(pubsub, name))
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
    if (!place(pubsub, channel)) {
        list_append(&pubsub->homeless, &channel->place);
        place_soon(pubsub, PLACE_DELAY_MS);
    }
    return true;
}

void redis_pubsub_unsubscribe(struct redis_pubsub *pubsub, struct slice name)
{
    struct redis_channel *channel = find_channel(pubsub, name);
    if (!channel)
        return;
    if (channel->line)
        redis_subscriber_remove(channel->line, channel, true);
    list_remove(&channel->place);
    table_remove(&pubsub->channels, &channel->node);
    free(channel);
}

bool redis_pubsub_settled(const struct redis_pubsub *pubsub)
{
    for (const struct list *at = pubsub->lines.next; at != &pubsub->lines; at = at->next) {
        const struct redis_subscriber *line = CONTAINER_OF(at, struct redis_subscriber, place);
        if (!list_empty(&line->wanted) || !list_empty(&line->asked))
            return false;
    }
    return list_empty(&pubsub->homeless);
}

struct redis_pubsub *redis_pubsub_make(struct redis_client *client,
                                       const struct redis_pubsub_owner *owner, void *arg)
{
    struct redis_cluster *cluster = redis_client_cluster(client);
    struct redis_pubsub *pubsub = calloc(1, sizeof(*pubsub));
    if (!pubsub || !table_init(&pubsub->channels, random_u64(cluster->links.random), matches)) {
        free(pubsub);
        return NULL;
    }
    pubsub->client = client;
    pubsub->cluster = cluster;
    pubsub->owner = owner;
    pubsub->arg = arg;
    pubsub->listener.on_slots_moved = slots_moved;
    pubsub->timer.fire = fire;
    list_init(&pubsub->lines);
    list_init(&pubsub->homeless);
    redis_observe(client, &pubsub->listener);
    return pubsub;
}

static void forget_channel(struct table_node *node, void *arg)
{
    struct redis_pubsub *pubsub = arg;
    struct redis_channel *channel = CONTAINER_OF(node, struct redis_channel, node);
    if (channel->line)
        redis_subscriber_remove(channel->line, channel, false);
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
    redis_unobserve(&freed->listener);
    table_each(&freed->channels, forget_channel, freed);
    while (!list_empty(&freed->lines)) {
        struct redis_subscriber *line =
            CONTAINER_OF(freed->lines.next, struct redis_subscriber, place);
        redis_subscriber_free(&line);
    }
    loop_cancel_timer(freed->cluster->links.loop, &freed->timer);
    table_free(&freed->channels);
    free(freed);
}
