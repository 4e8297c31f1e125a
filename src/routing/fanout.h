/*
 * Fan-out: what the durability plane has persisted goes to every device of every member.
 *
 *   feed item → the chat's members → state store: which gateways → one publish per gateway → settled
 *
 * Members are kept per chat and are good for as long as the event's members_version does not pass
 * theirs, so that who was removed gets nothing and who was added misses nothing; for an event without a version
 * (replayed, or sent again) they are read anew. Items of one chat wait in order while its members are read; a
 * chat that is slow to read holds up no other.
 *
 * Best effort: members that cannot be read are tried again after
 * initial_backoff, doubling up to max_backoff, max_attempts times in all; then the item is skipped and
 * syncing heals. An event that no try can deliver is poison and goes to the dead letters. There is no
 * queue of failed deliveries: how many items there are is the feed's bound.
 *
 * Memory: at most FANOUT_CHATS_MAX chats and FANOUT_MEMBERS_MAX members are remembered, the least
 * recently used go first. One thread.
 */
#ifndef ROLLCALL_ROUTING_FANOUT_H
#define ROLLCALL_ROUTING_FANOUT_H

#include "base/clock.h"
#include "base/table.h"
#include "base/wheel.h"
#include "config/config.h"
#include "feed/feed.h"
#include "ledger/ledger.h"
#include "metrics/metrics.h"
#include "routing/delivery.h"

enum { FANOUT_CHATS_MAX = 4096, FANOUT_MEMBERS_MAX = 200000 };

struct fanout {
    const struct config_retry *retry;
    const struct clock *clock;
    struct wheel *wheel;
    struct ledger_client *ledger;
    struct delivery *delivery;
    struct metrics *metrics;
    struct feed *feed; /* set when it is made, which needs the fan-out first */
    /* ---- */
    struct table chats;
    struct list recent;   /* chats, the most recently used last */
    struct list retrying; /* items that wait for their next try */
    size_t member_count;
    bool stopped; /* nothing is delivered any more; set before the ledger is closed */
};

/* The fields above the line are the caller's to set before. False when memory is short. */
bool fanout_init(struct fanout *fanout, uint64_t seed);

/* Gives unfinished items back to the feed. The ledger is closed by now. */
void fanout_free(struct fanout *fanout);

/* feed->consume; the argument is the fan-out. */
void fanout_consume(void *arg, struct feed_item *item);

#endif
