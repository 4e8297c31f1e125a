/*
 * A line is pub/sub's connection to one server, and the channels that belong there (see redis_pubsub.h).
 *
 * It sends fenced batches, one at a time, of subscriptions or of unsubscriptions: when the fence is
 * answered, every channel of the batch has been confirmed by a push, or was refused. A channel that is
 * unsubscribed is forgotten before that is sent, and asked for again only when it is through. So a push
 * that unsubscribes a channel which is live or asked for was nobody's wish: the server gave its slot away.
 */
#ifndef ROLLCALL_REDIS_REDIS_SUBSCRIBER_H
#define ROLLCALL_REDIS_REDIS_SUBSCRIBER_H

#include "base/buffer.h"
#include "base/list.h"
#include "base/table.h"
#include "redis/redis_connection.h"

#include <stdbool.h>
#include <stdint.h>

enum redis_channel_state { REDIS_CHANNEL_WANTED, REDIS_CHANNEL_ASKED, REDIS_CHANNEL_LIVE };

struct redis_channel {
    struct table_node node;
    struct list place; /* in one list of its line, or in the owner's of those without */
    struct redis_subscriber *line;
    enum redis_channel_state state;
    size_t len;
    char name[];
};

struct redis_subscriber;

struct redis_subscriber_owner {
    void (*on_message)(struct redis_subscriber *line, struct slice channel, struct slice message);
    /* The channel of that name is live. */
    void (*on_live)(struct redis_subscriber *line, struct slice name);
    /* The server refused some of a batch; each of them becomes homeless. */
    void (*on_refused)(struct redis_subscriber *line, const struct resp_value *error);
    /* The channel is on no line any more, and must be placed anew, but not from within. */
    void (*on_unassigned)(struct redis_subscriber *line, struct redis_channel *channel);
    struct redis_channel *(*find)(struct redis_subscriber *line, struct slice name);
};

struct redis_subscriber {
    struct list place; /* the owner's */
    const struct redis_subscriber_owner *owner;
    void *arg;
    struct redis_connection *link;
    bool sharded;
    bool in_flight;
    struct list wanted;
    struct list asked;
    struct list live;
    size_t channel_count;
    struct buffer leaving; /* unsubscriptions to be sent first */
    struct buffer scratch;
    struct wheel_timer timer; /* sends what a turn has gathered */
    struct loop *loop;
};

/* NULL when memory is short. */
struct redis_subscriber *redis_subscriber_make(struct redis_connection_context *links,
                                               const struct redis_endpoint *endpoint, bool sharded,
                                               const struct redis_subscriber_owner *owner,
                                               void *arg);

/* There must be no channel on it any more. */
void redis_subscriber_free(struct redis_subscriber **line);

/* Takes the channel over, and subscribes to it. */
void redis_subscriber_add(struct redis_subscriber *line, struct redis_channel *channel);

/* Lets the channel go; `unsubscribe` tells the server so. */
void redis_subscriber_remove(struct redis_subscriber *line, struct redis_channel *channel,
                             bool unsubscribe);

#endif
