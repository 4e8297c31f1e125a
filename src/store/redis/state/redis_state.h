/*
 * The state store in Redis: the backend of a fleet, on one server or on a cluster.
 *
 * Keys, types and lifetimes are those of the design: connection:<conn>, user_connections:<user>,
 * user_servers:<user>, server_connections:<gateway>, user_presence:<user>, last_seen:<user>, the index of
 * leases presence:v_heartbeat (member "<conn>:<user>", score = expiry in ms; ":<user>" is the end of a grace),
 * presence:online and presence:incall. Added: presence_history:<user> (a list, an hour), gateway:<id> and
 * presence:gateways (who lives), and on a cluster connection_user:<conn> (whose it is).
 *
 * One user's transition is one script (lua/), so it is atomic and exactly one gateway learns of it. Time
 * is Redis's own inside scripts; outside, only the monotonic clock decides anything. On a single server a
 * script also keeps the index and the sets. On a cluster a user's keys share a slot and connection:<conn>
 * is connection:{<user>}:<conn>; the index and the sets are in REDIS_STATE_SHARDS shards of their own, by
 * user. There a lease is entered in the index before it is made, so that a crash in between never leaves
 * one that no reaper finds; everything else beside the script follows it and is mended by renewals.
 *
 * Renewals go many users to a script (one, on a cluster). The last sign of life the store knows of a lease
 * is its last refresh: that is what last_heartbeat says, and the last seen of those who are reaped.
 *
 * Reaping: any gateway, a few at a time; the scripts make each transition once. It is held off for a
 * window after Redis, or a part of it, was out of reach: whoever lives registers again first.
 *
 * Fencing: with redis_state_claim() a gateway's id belongs to one process. Its record lives for a window
 * from the last state_put_gateway(); a process whose record may have run out (it was stopped, or Redis out
 * of reach) writes nothing until it has put it again, and one whose id another has taken never does.
 *
 * Wrong types and garbage under our keys are removed by the script that meets them, counted and logged.
 * Whatever Redis refuses (out of memory, read-only, loading, …) is STATE_UNAVAILABLE.
 *
 * Owned by one worker, on its loop's thread. Calls under way are bounded by the client's bound.
 */
#ifndef ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_H
#define ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_H

#include "redis/redis_client.h"
#include "store/state_store.h"

enum {
    REDIS_STATE_SHARDS = 16,
    REDIS_STATE_USERS_PER_SCRIPT = 64,
    REDIS_STATE_GATEWAYS_MAX = 1024,
};

struct redis_state_options {
    struct redis_client *client; /* these four are borrowed for the store's life */
    struct loop *loop;
    struct random *random;
    struct metrics *metrics;
    struct slice gateway_id; /* copied */
    int64_t lease_window_ms;
    int64_t offline_grace_ms;
    /* Another process has this gateway's id: nothing is written any more. May be NULL. */
    void (*fenced)(void *arg);
    /* Redis knew nothing of this gateway any more: every lease should be renewed soon. May be NULL. */
    void (*forgotten)(void *arg);
    void *arg;
};

/* NULL when memory is short. Freed by state_store_free(), before the client; calls that are under way then are
 * answered when the client is freed. */
struct state_store *redis_state_make(const struct redis_state_options *options);

enum redis_claim {
    REDIS_CLAIM_GRANTED,
    REDIS_CLAIM_TAKEN,
    REDIS_CLAIM_OPEN, /* Redis is out of reach: settled by state_put_gateway() when it reaches it */
    REDIS_CLAIM_GIVEN_UP, /* the store was freed first */
};

/* Claims the gateway's id for this process. A record that nobody renews is waited for, a window at most (by the
 * puts, where the claim is left open); one that is renewed is TAKEN, and `since` is when its process started
 * (RFC 3339, may be empty). Once, and before anything is written. */
void redis_state_claim(struct state_store *store, const struct gateway_info *info,
                       void (*done)(void *arg, enum redis_claim claim, struct slice since),
                       void *arg);

/* Takes all keys of this gateway away, as far as Redis can be reached; `done` when that is through. Its leases
 * must be closed before. */
void redis_state_release(struct state_store *store, void (*done)(void *arg), void *arg);

/* How many calls wait for Redis. */
size_t redis_state_under_way(const struct state_store *store);

#endif
