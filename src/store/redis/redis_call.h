/*
 * The call store on Redis: one for a fleet.
 *
 *   call:<id>            HASH    the truth about a call; on a cluster call:{<shard>}:<id>
 *   calls:due            ZSET    ids by when something falls due; on a cluster calls:due:{<shard>}
 *   user:<user>:call     STRING  the call a user claims to be in
 *
 * Times in a call's record are texts (text/time_text.h); one that has not come is not there.
 *
 * A call and its index share a slot and change together, by one script (store/redis/lua/calls.lua); there are
 * REDIS_CALL_SHARDS of them, so that no key of a cluster is hot. The two users' claims are elsewhere, and no
 * script covers all three. So:
 *
 *   1 prepare    the record is made, invisible and with a short life, under a random claim
 *   2 claim      both users' keys are set to it, the lesser user's first, each only over nothing or over a
 *                claim whose call was looked at and is dead
 *   3 commit     the record rings, if it is still the one that was prepared
 *
 * Nobody is in two calls: a call lives only from its commit on, which comes after both claims; a claim is
 * overwritten only after a look found its call dead, and what a look finds dead never lives again: it
 * has ended, or is gone, or the look itself removed it so that its commit fails. Claims carry a random number
 * beside the id, so that a call made later under the same id is not taken for the one that was looked at. A
 * claim is read as nothing unless its call lives and names the user.
 *
 * Nobody is stuck: a gateway that dies in 1 to 3 leaves a preparing record, which dies by its time, found by
 * whoever meets its claim or by the reaper; one that dies after an end leaves claims of a dead call, which
 * are nothing. Ends that a gateway made but did not live to tell are told by the next reaper. Two requests
 * that cross take the claims in the same order, so that one of them gets both; the other waits for it, by at
 * most REDIS_CALL_LOOKS_MAX looks (two seconds), and then answers it (glare) or is refused.
 *
 * A claim lasts a minute longer than its call can without being renewed, and a renewal renews both. A claim
 * that Redis lost (a failover) is found by its owner's next renewal, which ends the call for it.
 *
 * No answer to the step that changes the call: CALL_UNKNOWN; none before it, or one that makes no sense:
 * CALL_UNAVAILABLE; reap() ends nothing (nor while another
 * pass of the same worker is under way), renew() loses nobody. Foreign values under these keys count as
 * nothing and are overwritten.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_CALL_H
#define ROLLCALL_STORE_REDIS_REDIS_CALL_H

#include "base/clock.h"
#include "base/random.h"
#include "redis/redis_client.h"
#include "store/call_store.h"

enum {
    REDIS_CALL_SHARDS = 16, /* on a cluster; one on a single server */
    REDIS_CALL_LOOKS_MAX = 200,
    REDIS_CALL_LOOKS_AT_ONCE = 4, /* the others REDIS_CALL_LOOK_PAUSE_MS after one another */
    REDIS_CALL_LOOK_PAUSE_MS = 10,
};

struct redis_call_options {
    struct redis_client *client; /* borrowed for the store's life, */
    struct loop *loop;           /* likewise, */
    struct random *random;       /* likewise */
    int64_t ring_timeout_ms;
    int64_t reconnect_grace_ms;
    int64_t lease_window_ms;
    const struct clock *clock; /* NULL: Redis's own (redis_store.h) */
};

/* A worker's port. NULL when memory is short. May be freed while answers are owed; they come when the client
 * gives them. */
struct call_store *redis_call_make(const struct redis_call_options *options);

#endif
