/*
 * The call store on Redis, shared by a fleet.
 *
 *   call:<id>            HASH    the call's record; on a cluster call:{<shard>}:<id>
 *   calls:due            ZSET    ids by their next deadline; on a cluster calls:due:{<shard>}
 *   user:<user>:call     STRING  the user's claim: the call that the user may be in
 *
 * Times in a record are texts (text/time_text.h); a time that is not known yet has no field.
 *
 * A record and the index of deadlines share a slot and change together in one script (store/redis/lua/calls.lua).
 * There are REDIS_CALL_SHARDS such slots, so that no key of a cluster is hot. The claims of the two users are in
 * their users' slots, and no script can cover all three. So a request takes three steps:
 *
 *   1 prepare    create the record, invisible and short-lived, under a random nonce
 *   2 claim      set both users' claims to nonce and id, the smaller user id first; each only where there is no claim,
 *                or where the current claim was checked and its call is dead
 *   3 commit     let the record ring, if it is still the one that was prepared
 *
 * Nobody is in two calls. A call is alive only from its commit on, and the commit comes after both claims. A claim is
 * overwritten only after a check found its call dead, and a dead call never becomes alive again: it has ended, or its
 * record is gone, or the check itself removed the record, so that its commit fails. The nonce keeps a later call under
 * the same id from being taken for the one that was checked. A claim counts only while its call is alive and names the
 * user.
 *
 * Nobody is stuck. A gateway that dies during steps 1 to 3 leaves a record in the state `preparing`, which times out;
 * the next request that meets its claim, or the reaper, removes it. A gateway that dies after it ended a call leaves
 * claims of a dead call, which do not count. If a gateway ends a call and dies before it has notified the parties, the
 * next reaper notifies them. Two requests that cross take the claims in the same order, so one of them gets both. The
 * other one waits for it, for at most REDIS_CALL_CHECKS_MAX checks (two seconds), and then answers that call (glare) or
 * is refused.
 *
 * A claim outlives by a minute the longest time that its call can last without a renewal, and a renewal extends both.
 * If Redis loses a claim (a failover), the next renewal of its owner finds that out and ends the call for that user.
 *
 * When Redis does not answer the step that changes the call, the result is CALL_UNKNOWN. When it does not answer an
 * earlier step or a get(), or when a reply is malformed, the result is CALL_UNAVAILABLE. In these cases reap() ends
 * nothing and renew() reports nobody as lost. reap() also ends nothing while another pass of the same worker runs.
 * Foreign values under these keys count as absent and are overwritten.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_CALL_H
#define ROLLCALL_STORE_REDIS_REDIS_CALL_H

#include "base/clock.h"
#include "base/random.h"
#include "redis/redis_client.h"
#include "store/call_store.h"

enum {
    REDIS_CALL_SHARDS = 16, /* on a cluster; one on a single server */
    REDIS_CALL_CHECKS_MAX = 200,
    REDIS_CALL_CHECKS_AT_ONCE = 4, /* later checks wait REDIS_CALL_CHECK_PAUSE_MS before each */
    REDIS_CALL_CHECK_PAUSE_MS = 10,
};

struct redis_call_options {
    struct redis_client *client; /* these three are borrowed for the store's life */
    struct loop *loop;
    struct random *random;
    int64_t ring_timeout_ms;
    int64_t reconnect_grace_ms;
    int64_t lease_window_ms;
    const struct clock *clock; /* NULL: Redis's own (redis_store.h) */
};

/* Creates one worker's store. Returns NULL when out of memory. It may be freed while operations are pending; they
 * complete when the client answers them. */
struct call_store *redis_call_make(const struct redis_call_options *options);

#endif
