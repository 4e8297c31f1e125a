#include "redis/redis_subscriber.h"

#include "base/container.h"
#include "log/log.h"
#include "redis/redis_pubsub.h"

#include <stdlib.h>

enum { LEAVING_BYTES_MAX = 4 * 1024 * 1024 };

/* The commands of each kind of subscription. */
static const struct {
    struct slice subscribe, unsubscribe;
} SUBSCRIPTION_COMMANDS[] = {
    [REDIS_SUBSCRIBE_CHANNELS] = {{"SUBSCRIBE", 9}, {"UNSUBSCRIBE", 11}},
    [REDIS_SUBSCRIBE_SHARDED] = {{"SSUBSCRIBE", 10}, {"SUNSUBSCRIBE", 12}},
    [REDIS_SUBSCRIBE_PATTERNS] = {{"PSUBSCRIBE", 10}, {"PUNSUBSCRIBE", 12}},
};

static struct slice subscriber_channel_name(const struct redis_channel *channel)
{
    return (struct slice){channel->name, channel->len};
}

static struct redis_channel *subscriber_first_channel(const struct list *list)
{
    return CONTAINER_OF(list->next, struct redis_channel, place);
}

static void subscriber_set_channel_state(struct redis_subscriber *subscriber,
                                         struct redis_channel *channel,
                                         enum redis_channel_state state)
{
    struct list *lists[] = {[REDIS_CHANNEL_WANTED] = &subscriber->wanted,
                            [REDIS_CHANNEL_ASKED] = &subscriber->asked,
                            [REDIS_CHANNEL_LIVE] = &subscriber->live};
    channel->state = state;
    list_remove(&channel->place);
    list_append(lists[state], &channel->place);
}

static void subscriber_send_soon(struct redis_subscriber *subscriber)
{
    if (!wheel_is_set(&subscriber->timer))
        loop_set_timer(subscriber->loop, &subscriber->timer, subscriber->loop->clock.now_ms);
}

/* ---- batches ---- */

/* For channels that were refused, or whose connection broke. */
static void subscriber_unassign_channels(struct redis_subscriber *subscriber, struct list *list)
{
    while (!list_empty(list)) {
        struct redis_channel *channel = subscriber_first_channel(list);
        redis_subscriber_remove(subscriber, channel, false);
        subscriber->owner->on_unassigned(subscriber, channel);
    }
}

static void on_subscriber_batch_answered(void *arg, const struct resp_value *reply)
{
    struct redis_subscriber *subscriber = arg;
    subscriber->in_flight = false;
    if (reply && reply->type == RESP_ERROR)
        subscriber->owner->on_refused(subscriber, reply);
    subscriber_unassign_channels(subscriber, &subscriber->asked);
    if (!list_empty(&subscriber->wanted) || subscriber->leaving.len > 0)
        subscriber_send_soon(subscriber);
}

static void on_subscriber_batch_timer(struct wheel_timer *timer)
{
    struct redis_subscriber *subscriber = CONTAINER_OF(timer, struct redis_subscriber, timer);
    struct buffer *out = &subscriber->scratch;
    if (subscriber->in_flight || redis_connection_problem(subscriber->connection) != REDIS_FINE)
        return;
    buffer_clear(out);
    if (subscriber->leaving.len > 0) {
        buffer_append_slice(out, buffer_slice(&subscriber->leaving));
    } else {
        const struct slice name = SUBSCRIPTION_COMMANDS[subscriber->subscription].subscribe;
        for (int i = 0; i < REDIS_SUBSCRIBE_BATCH && !list_empty(&subscriber->wanted); i++) {
            struct redis_channel *channel = subscriber_first_channel(&subscriber->wanted);
            /* one command per channel: on a cluster they are in different slots */
            resp_write_command(out, (const struct slice[]){name, subscriber_channel_name(channel)},
                               2);
            subscriber_set_channel_state(subscriber, channel, REDIS_CHANNEL_ASKED);
        }
    }
    buffer_clear(&subscriber->leaving);
    if (out->len == 0 && !out->failed)
        return;
    subscriber->in_flight =
        !out->failed && redis_connection_send_fenced(subscriber->connection, buffer_slice(out),
                                                     on_subscriber_batch_answered, subscriber);
    if (subscriber->in_flight)
        return;
    /* out of memory: the owner assigns all of them again later */
    subscriber_unassign_channels(subscriber, &subscriber->asked);
    subscriber_unassign_channels(subscriber, &subscriber->wanted);
}

/* ---- pushes of the server ---- */

/* A push for a channel that was removed meanwhile has no effect. */
static void on_subscriber_push(struct redis_connection *connection, void *arg,
                               const struct resp_value *push)
{
    struct redis_subscriber *subscriber = arg;
    (void)connection;
    if (push->count < 3)
        return;
    struct slice kind = push->items[0].text;
    struct slice name = push->items[1].text;
    if (slice_is(kind, "message") || slice_is(kind, "smessage")) {
        subscriber->owner->on_message(subscriber, name, name, push->items[2].text);
        return;
    }
    if (slice_is(kind, "pmessage")) {
        if (push->count > 3)
            subscriber->owner->on_message(subscriber, name, push->items[2].text,
                                          push->items[3].text);
        return;
    }
    struct redis_channel *channel = subscriber->owner->find(subscriber, name);
    if (!channel || channel->subscriber != subscriber)
        return;
    if (slice_is(kind, "subscribe") || slice_is(kind, "ssubscribe") ||
        slice_is(kind, "psubscribe")) {
        if (channel->state != REDIS_CHANNEL_ASKED)
            return;
        subscriber_set_channel_state(subscriber, channel, REDIS_CHANNEL_LIVE);
        subscriber->owner->on_live(subscriber, name);
    } else if (slice_is(kind, "unsubscribe") || slice_is(kind, "sunsubscribe") ||
               slice_is(kind, "punsubscribe")) {
        if (channel->state == REDIS_CHANNEL_WANTED)
            return;
        log_info("redis_channel_evicted", "channel=%s", log_quote(name));
        redis_subscriber_remove(subscriber, channel, false);
        subscriber->owner->on_unassigned(subscriber, channel);
    }
}

static void on_subscriber_problem_changed(struct redis_connection *connection, void *arg)
{
    struct redis_subscriber *subscriber = arg;
    if (redis_connection_problem(connection) == REDIS_FINE) {
        subscriber_send_soon(subscriber);
        return;
    }
    /* the server dropped the subscriptions with the connection */
    buffer_clear(&subscriber->leaving);
    subscriber_unassign_channels(subscriber, &subscriber->asked);
    subscriber_unassign_channels(subscriber, &subscriber->live);
}

static const struct redis_connection_owner SUBSCRIBER_CONNECTION_OWNER = {
    .on_problem_changed = on_subscriber_problem_changed, .on_push = on_subscriber_push};

/* ---- for the owner ---- */

void redis_subscriber_add(struct redis_subscriber *subscriber, struct redis_channel *channel)
{
    channel->subscriber = subscriber;
    channel->state = REDIS_CHANNEL_WANTED;
    subscriber->channel_count++;
    redis_connection_set_quiet(subscriber->connection,
                               subscriber->channel_count <= REDIS_SUBSCRIBER_QUIET_CHANNELS);
    subscriber_set_channel_state(subscriber, channel, REDIS_CHANNEL_WANTED);
    subscriber_send_soon(subscriber);
}

void redis_subscriber_remove(struct redis_subscriber *subscriber, struct redis_channel *channel,
                             bool unsubscribe)
{
    if (unsubscribe && channel->state != REDIS_CHANNEL_WANTED) {
        const struct slice name = SUBSCRIPTION_COMMANDS[subscriber->subscription].unsubscribe;
        size_t before = subscriber->leaving.len;
        resp_write_command(&subscriber->leaving,
                           (const struct slice[]){name, subscriber_channel_name(channel)}, 2);
        if (subscriber->leaving.failed) { /* the server goes on sending; its messages are ignored */
            subscriber->leaving.failed = false;
            subscriber->leaving.len = before;
        }
        subscriber_send_soon(subscriber);
    }
    subscriber_set_channel_state(subscriber, channel, REDIS_CHANNEL_WANTED);
    list_remove(&channel->place);
    channel->subscriber = NULL;
    subscriber->channel_count--;
    redis_connection_set_quiet(subscriber->connection,
                               subscriber->channel_count <= REDIS_SUBSCRIBER_QUIET_CHANNELS);
}

struct redis_subscriber *redis_subscriber_make(struct redis_connection_context *context,
                                               const struct redis_address *address,
                                               enum redis_subscription subscription,
                                               const struct redis_subscriber_owner *owner,
                                               void *arg)
{
    struct redis_subscriber *subscriber = calloc(1, sizeof(*subscriber));
    if (!subscriber)
        return NULL;
    *subscriber = (struct redis_subscriber){.owner = owner,
                                            .arg = arg,
                                            .subscription = subscription,
                                            .leaving = BUFFER_BOUNDED(LEAVING_BYTES_MAX),
                                            .timer = {.fire = on_subscriber_batch_timer},
                                            .loop = context->loop};
    list_init(&subscriber->place);
    list_init(&subscriber->wanted);
    list_init(&subscriber->asked);
    list_init(&subscriber->live);
    subscriber->connection =
        redis_connection_make(context, address, &SUBSCRIBER_CONNECTION_OWNER, subscriber);
    if (!subscriber->connection) {
        free(subscriber);
        return NULL;
    }
    return subscriber;
}

void redis_subscriber_free(struct redis_subscriber **subscriber)
{
    struct redis_subscriber *freed = *subscriber;
    *subscriber = NULL;
    redis_connection_end(&freed->connection);
    loop_cancel_timer(freed->loop, &freed->timer);
    list_remove(&freed->place);
    buffer_free(&freed->leaving);
    buffer_free(&freed->scratch);
    free(freed);
}
