/*
 * Subscriptions to channels, on connections of their own: one to a single server, on a cluster one to each
 * server that has a channel's slot (sharded channels: SSUBSCRIBE).
 *
 * The caller subscribes to a channel once, however many want it; counting is the caller's. What is
 * subscribed stays so over reconnections, failovers and moved slots, but messages published meanwhile are
 * lost, as pub/sub promises nothing. That is a gap, and the first while is one too: `subscribed` says that a
 * channel is live, or live again, so that who reads the state anew then misses nothing.
 *
 *   (none) ── subscribe ──► WANTED ──sent──► ASKED ──confirmed──► LIVE
 *                             ▲                │ error              │ connection lost, slot moved,
 *                             └────────────────┴────────────────────┘ sunsubscribe nobody asked for
 *
 * Commands go in batches of REDIS_SUBSCRIBE_BATCH channels a server; the next is sent when the last is
 * through. At most REDIS_CHANNELS_MAX channels. One thread, that of the client's loop; callbacks may
 * subscribe and unsubscribe.
 */
#ifndef ROLLCALL_REDIS_REDIS_PUBSUB_H
#define ROLLCALL_REDIS_REDIS_PUBSUB_H

#include "redis/redis_client.h"

#include <stdbool.h>
#include <stddef.h>

enum { REDIS_SUBSCRIBE_BATCH = 512, REDIS_CHANNELS_MAX = 1 << 20, REDIS_CHANNEL_BYTES_MAX = 1024 };

struct redis_pubsub_owner {
    void (*on_message)(void *arg, struct slice channel, struct slice message);
    /* Live, for the first time or again: what is published from now on comes. May be NULL. */
    void (*on_subscribed)(void *arg, struct slice channel);
};

struct redis_pubsub;

/* NULL when memory is short. Connects when there is something to subscribe to. The client outlives it. */
struct redis_pubsub *redis_pubsub_make(struct redis_client *client,
                                       const struct redis_pubsub_owner *owner, void *arg);

/* Only while the loop makes no turn; before the client. */
void redis_pubsub_free(struct redis_pubsub **pubsub);

/* Harmless when it is subscribed already. False: too many, too long, or memory is short. */
bool redis_pubsub_subscribe(struct redis_pubsub *pubsub, struct slice name);

/* From now on no message of it is passed on. */
void redis_pubsub_unsubscribe(struct redis_pubsub *pubsub, struct slice name);

/* Whether all that is subscribed is live. */
bool redis_pubsub_settled(const struct redis_pubsub *pubsub);

#endif
