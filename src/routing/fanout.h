/*
 * Fan-out sends every persisted message to every device of every member of its chat.
 *
 *   feed item → read the chat's members → state store: which gateways → one publish per gateway → settle
 *
 * The members of a chat are cached. They serve an event as long as the event's members_version is not
 * above theirs, so that a removed member receives nothing and an added member misses nothing. An event
 * without a version (replayed, or sent again) needs members that were read after it arrived. The items of
 * one chat wait in order while its members are read; a chat that is slow to read delays no other chat.
 *
 *   ARRIVED ── a read of the members begins ──► READING
 *   ARRIVED, READING ── the members are new enough ──► SENDING ── sent ──► settled as FEED_DONE
 *   READING ── the members cannot be read, or are still too old ──► RETRYING
 *   SENDING ── out of memory ──► RETRYING ── the timer fires ──► ARRIVED
 *   SENDING ── routes are unknown (delivery.h) ──► settled as FEED_SKIPPED, without a retry
 *
 * An item for which there is no memory goes from ARRIVED to RETRYING at once. An item whose attempts are
 * used up is settled instead of entering RETRYING.
 *
 * Delivery is best effort. An item that fails waits for initial_backoff, which doubles up to max_backoff,
 * and is tried max_attempts times in all; then it is skipped, and clients get the message when they sync.
 * An event that no attempt can deliver is poison and becomes a dead letter. There is no queue of failed
 * deliveries of its own: the feed bounds the number of items.
 *
 * Memory: the cache holds at most FANOUT_CHATS_MAX chats and FANOUT_MEMBERS_MAX members; the least recently
 * used chats go first. Chats with waiting items stay, even beyond the bounds. One thread.
 */
#ifndef ROLLCALL_ROUTING_FANOUT_H
#define ROLLCALL_ROUTING_FANOUT_H

#include "base/clock.h"
#include "base/table.h"
#include "base/wheel.h"
#include "config/config.h"
#include "feed/feed_consumer.h"
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
    /* ---- */
    struct table chats;
    struct list recent;   /* chats, the most recently used last */
    struct list retrying; /* items in FEED_ITEM_RETRYING */
    size_t member_count;
    bool stopped; /* nothing is delivered any more; set before the ledger is closed */
};

/* The caller sets the fields above the line first. Returns false when out of memory. */
bool fanout_init(struct fanout *fanout, uint64_t seed);

/* Gives unfinished items back to the feed. The ledger is closed by now. */
void fanout_free(struct fanout *fanout);

/* Handles the items of a feed's consumer; `arg` is the fan-out. */
void fanout_on_item(void *arg, struct feed_item *item);

#endif
