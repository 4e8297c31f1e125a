/*
 * A subscriber is pub/sub's connection to one server, with the channels that belong there (redis_pubsub.h).
 *
 * It sends fenced batches, one at a time, of subscriptions or of unsubscriptions: when the fence is
 * answered, every channel of the batch was confirmed by a push, or was refused. It removes a channel before
 * it sends the unsubscription, and subscribes to it again only after that was answered. So when a push
 * unsubscribes a channel that is live or asked for, the server gave its slot away.
 */
#ifndef ROLLCALL_REDIS_REDIS_SUBSCRIBER_H
#define ROLLCALL_REDIS_REDIS_SUBSCRIBER_H

#include "base/buffer.h"
#include "base/list.h"
#include "base/table.h"
#include "redis/redis_connection.h"

#include <stdbool.h>
#include <stdint.h>

/* How a subscriber names what it subscribes to. */
enum redis_subscription {
    REDIS_SUBSCRIBE_CHANNELS,
    REDIS_SUBSCRIBE_SHARDED,
    REDIS_SUBSCRIBE_PATTERNS
};

/* Up to so many channels, those that every gateway has, a connection is quiet (redis_connection.h). */
enum { REDIS_SUBSCRIBER_QUIET_CHANNELS = 2 };

enum redis_channel_state { REDIS_CHANNEL_WANTED, REDIS_CHANNEL_ASKED, REDIS_CHANNEL_LIVE };

struct redis_channel {
    struct table_node node;
    struct list place; /* in a list of its subscriber, or the owner's list of unassigned channels */
    struct redis_subscriber *subscriber; /* NULL: unassigned */
    enum redis_channel_state state;
    size_t len;
    char name[];
};

struct redis_subscriber;

struct redis_subscriber_owner {
    /* `name` is that of the subscription: the channel itself, or the pattern that it matches. */
    void (*on_message)(struct redis_subscriber *subscriber, struct slice name, struct slice channel,
                       struct slice message);
    /* The channel of that name is live. */
    void (*on_live)(struct redis_subscriber *subscriber, struct slice name);
    /* The server refused some channels of a batch; each of them becomes unassigned. */
    void (*on_refused)(struct redis_subscriber *subscriber, const struct resp_value *error);
    /* The channel has no subscriber any more. Assign it to another one after this has returned. */
    void (*on_unassigned)(struct redis_subscriber *subscriber, struct redis_channel *channel);
    struct redis_channel *(*find)(struct redis_subscriber *subscriber, struct slice name);
};

struct redis_subscriber {
    struct list place; /* the owner's */
    const struct redis_subscriber_owner *owner;
    void *arg;
    struct redis_connection *connection;
    enum redis_subscription subscription;
    bool in_flight;
    struct list wanted;
    struct list asked;
    struct list live;
    size_t channel_count;
    struct buffer leaving; /* unsubscriptions, sent before anything else */
    struct buffer scratch;
    struct wheel_timer timer; /* sends what a turn has collected */
    struct loop *loop;
};

/* Returns NULL when out of memory. */
struct redis_subscriber *redis_subscriber_make(struct redis_connection_context *context,
                                               const struct redis_address *address,
                                               enum redis_subscription subscription,
                                               const struct redis_subscriber_owner *owner,
                                               void *arg);

/* It must have no channels any more. */
void redis_subscriber_free(struct redis_subscriber **subscriber);

/* Takes the channel and subscribes to it. */
void redis_subscriber_add(struct redis_subscriber *subscriber, struct redis_channel *channel);

/* Removes the channel; with `unsubscribe` also on the server. */
void redis_subscriber_remove(struct redis_subscriber *subscriber, struct redis_channel *channel,
                             bool unsubscribe);

#endif
