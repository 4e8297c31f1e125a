/*
 * The embedded feed: the ledger's outbox makes it durable, this process consumes it.
 *
 * A message is in the outbox from the transaction that stored it, so publishing only hands it to the
 * consumer; it leaves the outbox, in batches, after the consumer has settled it. What a crash leaves
 * there is found at the start. What is left there for another reason (the publish was refused for
 * lack of room, the removal failed) is found by a sweep that takes whatever is older than
 * LOCAL_FEED_SWEEP_AGE_MS. One worker of a process replays, chosen by its maker.
 *
 * Gateways that share a ledger share its outbox, and sweep for one another: what a crashed one left is
 * replayed within LOCAL_FEED_REPLAY_WITHIN_MS by whichever sweeps first. At its start such a gateway takes
 * only what is that old as well, since younger messages may be on their way elsewhere. Sweeps are spread
 * by chance, so that who comes second mostly finds the outbox empty; what two replay all the same is a
 * duplicate that consumers bear.
 *
 * Bound: LOCAL_FEED_EVENTS_MAX items. Replays take part of it only, so that they cannot crowd out what
 * is sent now.
 */
#ifndef ROLLCALL_FEED_LOCAL_LOCAL_FEED_H
#define ROLLCALL_FEED_LOCAL_LOCAL_FEED_H

#include "base/random.h"
#include "feed/feed.h"
#include "ledger/ledger_messages.h"
#include "metrics/metrics.h"

enum {
    LOCAL_FEED_EVENTS_MAX = 16384,
    LOCAL_FEED_SWEEP_INTERVAL_MS = 10000, /* at most; half of it at least */
    LOCAL_FEED_SWEEP_AGE_MS = 30000,
    /* of its sending, an outbox of one page, and a ledger that answers */
    LOCAL_FEED_REPLAY_WITHIN_MS = LOCAL_FEED_SWEEP_AGE_MS + LOCAL_FEED_SWEEP_INTERVAL_MS + 5000,
};

struct local_feed_options {
    struct ledger_client *ledger;
    struct metrics *metrics;
    struct random *random;
    bool replays;
    bool shared;           /* other gateways publish from the same outbox */
    uint32_t replay_page;  /* messages read from the outbox at a time */
    int64_t started_at_ms; /* wall clock: older messages in the outbox are of another life */
};

/* NULL when memory is short. `options` is copied, what it points to is borrowed. */
struct feed *local_feed_make(const struct local_feed_options *options, feed_consumer on_item,
                             void *arg);

/* Now and then: replays what is due. */
void local_feed_tick(struct feed *feed);

/* No more of the ledger is asked from now on; publishing is refused. */
void local_feed_stop(struct feed *feed);

#endif
