/*
 * The state store in Redis: the backend of a fleet, on a single server or on a cluster.
 *
 * Keys. Names, types and lifetimes are those of the design: connection:<conn>, user_connections:<user>,
 * user_servers:<user>, server_connections:<gateway>, user_presence:<user>, last_seen:<user>, the lease index
 * presence:v_heartbeat (set member "<conn>:<user>", score = expiry in ms; ":<user>" is the end of a grace),
 * presence:online and presence:incall. This store adds, for a user with several leases, user_leases:<user> (the leases by
 * expiry) and user_lease_counts:<user> (how many are idle, and on which gateway; user_prelude.lua); presence_history:<user>
 * (a list, kept for an hour), gateway:<id> and presence:gateways with presence:gateway_infos:{presence:gateways} (which gateways are alive), and on a cluster
 * connection_user:<conn> (the user of a connection).
 *
 * Transitions. One transition of one user is one script (store/redis/lua/), so it is atomic and exactly one gateway
 * gets it. Scripts use Redis's clock; outside of them only the monotonic clock decides anything. On a single server the
 * script also updates the lease index and the online and in-call sets. On a cluster the keys of one user share a slot
 * (connection:<conn> is connection:{<user>}:<conn>), and every slot has an index and sets of its own, in that slot
 * (presence:v_heartbeat:{<tag>}; redis_state_shards.c). So the same script updates them there, a slot that is lost is lost
 * as a whole, and a renewal notices it. Only server_connections and connection_user are in other slots; the gateway
 * updates them after the script, and renewals repair what was lost.
 *
 * Order per lease. Operations on one lease take effect in the order in which they were started: each one is sent only
 * after the previous one was answered (redis_state_lease.c). An operation without an answer may have happened
 * (STATE_UNKNOWN). The client cuts a connection on which it gave up waiting, so that nothing on it arrives later. If an
 * open that was under way on a lost connection still arrives after its close, a reaper finds its entry in the index.
 *
 * Renewals. One script renews the leases of many users (of one slot on a cluster). For the store, the last refresh of a
 * lease is its last sign of life: it is last_heartbeat, and the last_seen of a user whose leases are reaped.
 *
 * Reaping. Any gateway reaps, a few leases at a time; the script makes each transition only once. Who looks when is in
 * redis_state_looks.c. A user who goes offline by this stays in presence:untold (a sorted set, for each index) until the
 * next state_reap(), which says that the transition was told; if it does not come, another gateway gets the transition
 * again. A store reaps nothing in a shard for a window after that was out of reach: gateways that are alive renew their
 * leases first.
 *
 * Fencing. redis_state_claim() makes a gateway id belong to one process. The gateway's record lives for a window from the
 * last state_put_gateway(). A process whose record may have expired (the process was stopped, or Redis was out of reach)
 * writes nothing until it has put the record again. A process whose id another process has taken never writes again.
 *
 * Errors. Scripts remove values of the wrong type and garbage under our keys; the store counts and logs them. Whatever
 * Redis refuses (out of memory, read-only, loading, …) is STATE_UNAVAILABLE.
 *
 * One store per worker, on its loop's thread. The client bounds the number of pending operations.
 */
#ifndef ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_H
#define ROLLCALL_STORE_REDIS_STATE_REDIS_STATE_H

#include "redis/redis_client.h"
#include "store/state_store.h"

enum {
    REDIS_STATE_SHARDS = REDIS_SLOTS, /* on a cluster: each slot has its own index and sets */
    REDIS_STATE_USERS_PER_SCRIPT = 64,
    REDIS_STATE_GATEWAYS_MAX = 1 << 14,
};

struct redis_state_options {
    struct redis_client *client; /* these four are borrowed for the store's life */
    struct loop *loop;
    struct random *random;
    struct metrics *metrics;
    struct slice gateway_id; /* copied */
    int64_t lease_window_ms;
    int64_t offline_grace_ms;
    /* The name of this process, borrowed for the store's life, and whether another one certainly runs no more
     * (app/process_id.h): its gateway id is taken over at once. NULL: nobody can tell. */
    struct slice process;
    bool (*is_process_gone)(void *arg, struct slice process);
    /* Names one life of the gateway in its record: a store with the same name continues it. Empty: a random one. */
    struct slice instance;
    /* The gateway's record, sent at this time (monotonic), is in Redis; `made` says that Redis did not have it before. May
     * be NULL. */
    void (*on_registered)(void *arg, int64_t sent_at_ms, bool made);
    /* Another process has this gateway's id: this store writes nothing any more. May be NULL. */
    void (*on_fenced)(void *arg);
    /* Redis has lost this gateway's record: every lease should be renewed soon. May be NULL. */
    void (*on_forgotten)(void *arg);
    /* A server of Redis serves again, perhaps without what was written to it last: likewise. May be NULL. */
    void (*on_server_returned)(void *arg);
    void *arg;
};

/* Creates one worker's store. Returns NULL when out of memory. Free it with state_store_free() before the client;
 * operations that are pending then complete when the client is freed. */
struct state_store *redis_state_make(const struct redis_state_options *options);

enum redis_claim {
    REDIS_CLAIM_GRANTED,
    REDIS_CLAIM_TAKEN,
    REDIS_CLAIM_UNDECIDED, /* Redis is out of reach; the first state_put_gateway() that reaches it decides */
    REDIS_CLAIM_CANCELLED, /* the store was freed first */
};

typedef void (*redis_claim_done)(void *arg, enum redis_claim claim, struct slice since);
typedef void (*redis_release_done)(void *arg);

/* Claims the gateway's id for this process. Call it once, before anything is written. If another process's record is in
 * the way whose process is gone, the claim replaces it. If nobody renews it, the claim waits until it expires, for a window at most (the puts wait where the claim is
 * UNDECIDED). If the record is renewed, the claim is TAKEN, and `since` is when that process started (RFC 3339, may be
 * empty). */
void redis_state_claim(struct state_store *store, const struct gateway_info *info,
                       redis_claim_done done, void *arg);

/* Removes all keys of this gateway, as far as Redis can be reached, and then runs `done`. Close its leases before. */
void redis_state_release(struct state_store *store, redis_release_done done, void *arg);

/* Returns how many operations wait for Redis. */
size_t redis_state_pending(const struct state_store *store);

#endif
