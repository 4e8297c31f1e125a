/*
 * Subscriptions to channels, on connections of their own: one to a single server; on a cluster one to each
 * server that serves the slot of a channel (sharded channels: SSUBSCRIBE). Instead of channels, patterns can be subscribed
 * to (PSUBSCRIBE), each on one server: what is published with PUBLISH reaches every server of a cluster.
 *
 * The caller subscribes to a channel once and counts the users of it. A subscription survives reconnections,
 * failovers and moved slots, but messages published meanwhile are lost, because pub/sub guarantees nothing.
 * That is a gap, and so is the time before the first confirmation: `on_subscribed` runs when a channel is
 * live, or live again; a caller that then reads the state misses nothing.
 *
 *   (none) ── subscribe ──► WANTED ──sent──► ASKED ──confirmed──► LIVE
 *                             ▲                │ error              │ connection lost, slot moved,
 *                             └────────────────┴────────────────────┘ unrequested sunsubscribe
 *
 * Commands go in batches of REDIS_SUBSCRIBE_BATCH channels per server; the next batch is sent when the last
 * one was answered. At most REDIS_CHANNELS_MAX channels. One thread, that of the client's loop; callbacks may
 * subscribe and unsubscribe.
 */
#ifndef ROLLCALL_REDIS_REDIS_PUBSUB_H
#define ROLLCALL_REDIS_REDIS_PUBSUB_H

#include "redis/redis_client.h"

#include <stdbool.h>
#include <stddef.h>

enum { REDIS_SUBSCRIBE_BATCH = 512, REDIS_CHANNELS_MAX = 1 << 20, REDIS_CHANNEL_BYTES_MAX = 1024 };

struct redis_pubsub_owner {
    /* `channel` is the one that was published to, also when a pattern was subscribed to. */
    void (*on_message)(void *arg, struct slice channel, struct slice message);
    /* The channel is live, for the first time or again: messages published from now on arrive. May be NULL. */
    void (*on_subscribed)(void *arg, struct slice channel);
};

struct redis_pubsub;

/* Returns NULL when out of memory. Connects with the first subscription. The client must outlive it. */
struct redis_pubsub *redis_pubsub_make(struct redis_client *client,
                                       const struct redis_pubsub_owner *owner, void *arg);

/* The same for patterns: these are then the names. */
struct redis_pubsub *redis_pubsub_make_patterns(struct redis_client *client,
                                                const struct redis_pubsub_owner *owner, void *arg);

/* Only while the loop makes no turn, and before the client is freed. */
void redis_pubsub_free(struct redis_pubsub **pubsub);

/* Does nothing when it is subscribed already. Returns false when there are too many channels, the name is
 * too long, or when out of memory. */
bool redis_pubsub_subscribe(struct redis_pubsub *pubsub, struct slice name);

/* No message of the channel is passed on after that. */
void redis_pubsub_unsubscribe(struct redis_pubsub *pubsub, struct slice name);

/* Whether this channel is live. */
bool redis_pubsub_is_live(const struct redis_pubsub *pubsub, struct slice name);

/* Whether all channels are live. */
bool redis_pubsub_settled(const struct redis_pubsub *pubsub);

#endif
