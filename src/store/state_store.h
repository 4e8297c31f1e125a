/*
 * The state store: the port to leases, routes and presence.
 *
 * A lease says "this connection of this user lives on this gateway until …". A user is online while at
 * least one lease lives, away while all living leases are idle, and offline otherwise; the first and the
 * last lease make the transitions. Each operation is one atomic transition of one user and returns what
 * changed, so exactly one gateway of a fleet gets each change and publishes it.
 *
 *   no record ──open──► ONLINE ◄──activity── AWAY        version grows by at least 1 at each arrow
 *                       │  ▲  └──all idle──►  │          and never goes back, restarts included
 *           last closed │  │ open             │ last closed or expired
 *           or expired  ▼  │                  ▼
 *                   LINGERING (only with a grace; shown as before) ──grace over──► OFFLINE
 *
 * A lease's window starts at its last refresh (open or renew). state_reap() finds the leases that were not
 * refreshed, and the lingering users whose grace is over; any gateway calls it from time to time.
 *
 * Contract of every operation: it is asynchronous and never blocks. The completion runs exactly once, on the
 * calling worker's thread, possibly before the operation returns (so start it as the last thing a function
 * does). Arguments are borrowed until the operation returns, results until the completion returns. The
 * status is whether it took effect (enum state_status). There is one `struct state_store` per worker; its
 * operations on one lease take effect in the order in which they were started, answered or not.
 *
 * The suite in tests/conformance/state_store_suite.c tests all of this for every backend.
 */
#ifndef ROLLCALL_STORE_STATE_STORE_H
#define ROLLCALL_STORE_STATE_STORE_H

#include "base/slice.h"
#include "base/ulid.h"
#include "protocol/presence.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GATEWAY_ID_BYTES_MAX = 128, STATE_PEER_ADDRESS_MAX = 272 };

enum state_status {
    STATE_OK,
    STATE_UNAVAILABLE, /* the store certainly did nothing and read nothing */
    STATE_UNKNOWN, /* the store did not answer: the change may have happened. A read never returns it */
};

struct lease {
    struct ulid conn_id;
    struct slice user_id;
    struct slice device_id;
    struct slice gateway_id;
    int64_t connected_at_ms;   /* wall clock; the time in conn_id */
    int64_t last_heartbeat_ms; /* wall clock: the last heartbeat that reached the store */
    bool idle;
    /* For state_open(): since when this gateway has had the user connected, by any connection (wall clock);
     * 0: it has not. A store without a record of that time has lost it, so the open is no transition. */
    int64_t known_since_ms;
    /* For state_open(): how many leases the user may have, this one included; 0: any number. */
    uint32_t user_leases_max;
    /* For state_open() with such a maximum: of the user's other connections to this gateway the one that has been
     * silent longest, and when it was heard last (wall clock); 0: there is none. */
    struct ulid silent_conn_id;
    int64_t silent_heard_ms;
    /* For state_open(): the highest version of the user that this gateway knows of; a new version is above it. */
    int64_t version_min;
};

/* What a gateway knows of a user, and the store may have lost. */
struct state_claim {
    struct slice user_id;
    struct ulid conn_id; /* a lease of this gateway that has ended */
    int64_t left_at_ms;  /* wall clock: when; 0: no lease has ended */
    int64_t version_min; /* the highest version that others were told; 0: none */
    bool was_connected;  /* others were told that the user is online or away */
    /* Every gateway has had the time to register its leases, so a user without one has left. */
    bool is_final;
};

/* What one operation did to a user. With STATE_UNKNOWN only the user's id is set, with STATE_UNAVAILABLE
 * nothing. */
struct state_transition {
    bool changed;             /* something that others may see: publish it */
    struct presence presence; /* the new presence; user_id is valid until the completion returns */
    int64_t at_ms;            /* wall clock */
    bool was_here;            /* of an opened lease: the user was not offline before */
    bool undecided;           /* of a claim: it must be made again as the final one */
    /* Of an opened lease: the user had too many, and this one has ended for it. Its gateway must close the
     * connection; an empty gateway id: none has ended. Valid until the completion returns. */
    struct ulid displaced;
    struct slice displaced_gateway;
};

struct lease_renewal {
    struct ulid conn_id;
    struct slice user_id;
    int64_t last_heartbeat_ms;
    bool lost;   /* set by the store: it has no such lease; open it again */
    bool failed; /* set by the store: it did not answer for this lease; try again soon */
};

struct gateway_info {
    struct slice gateway_id;
    size_t connections;
    int64_t started_at_ms;
    bool draining;
    struct slice peer_address; /* HOST:PORT on which peers connect to it; empty: none */
};

/* Users who have connections on one gateway. */
struct state_route {
    struct slice gateway_id;
    const struct slice *users;
    size_t count;
};

/* Where users can be reached. */
struct state_routes {
    const struct state_route *items;
    size_t count;
    const struct slice *parked; /* the users who have a parked session (recovery_store.h) */
    size_t parked_count;
    size_t devices; /* how many leases there are, where a single user was asked for; else 0 */
    /* Of state_routes_early(): the routes and parked users that `early` did not get; NULL: it did not run. */
    const struct state_routes *added;
};

/* One past transition of a user, for explanations. */
struct state_history {
    int64_t at_ms;
    enum presence_status status;
    int64_t version;
    /* "connected", "disconnected", "expired", "idle", "active", "grace over", … */
    const char *cause;
};

/* A page of the users who are online or away. */
struct state_online {
    const struct slice *users;
    size_t count;
    struct slice next; /* where the next page begins; empty: this is the last one */
};

struct state_store;

typedef void (*state_transition_done)(void *arg, enum state_status status,
                                      const struct state_transition *transition);
typedef void (*state_transitions_done)(void *arg, enum state_status status,
                                       const struct state_transition *transitions, size_t count);
typedef void (*state_renewals_done)(void *arg, enum state_status status,
                                    const struct lease_renewal *renewals, size_t count);
typedef void (*state_presences_done)(void *arg, enum state_status status,
                                     const struct presence *presences, size_t count);
typedef void (*state_routes_done)(void *arg, enum state_status status,
                                  const struct state_routes *routes);
typedef void (*state_routes_remembered)(void *arg, const struct state_routes *routes);
typedef void (*state_leases_done)(void *arg, enum state_status status, const struct lease *leases,
                                  size_t count);
typedef void (*state_lease_done)(void *arg, enum state_status status, const struct lease *lease);
typedef void (*state_history_done)(void *arg, enum state_status status,
                                   const struct state_history *history, size_t count);
typedef void (*state_gateways_done)(void *arg, enum state_status status,
                                    const struct gateway_info *gateways, size_t count);

typedef void (*state_online_done)(void *arg, enum state_status status,
                                  const struct state_online *page);
typedef void (*state_count_done)(void *arg, enum state_status status, size_t count);

typedef void (*state_forget_done)(void *arg, enum state_status status);

struct state_store_operations {
    void (*open)(struct state_store *store, const struct lease *lease, state_transition_done done,
                 void *arg);
    void (*renew)(struct state_store *store, struct lease_renewal *renewals, size_t count,
                  state_renewals_done done, void *arg);
    void (*set_idle)(struct state_store *store, struct slice user_id, const struct ulid *conn_id,
                     bool idle, state_transition_done done, void *arg);
    void (*close)(struct state_store *store, struct slice user_id, const struct ulid *conn_id,
                  state_transition_done done, void *arg);
    void (*settle)(struct state_store *store, const struct state_claim *claim,
                   state_transition_done done, void *arg);
    void (*read)(struct state_store *store, const struct slice *user_ids, size_t count,
                 state_presences_done done, void *arg);
    void (*set_call)(struct state_store *store, struct slice user_id, bool in_call,
                     state_transition_done done, void *arg);
    void (*routes)(struct state_store *store, const struct slice *user_ids, size_t count,
                   state_routes_done done, void *arg);
    void (*routes_early)(struct state_store *store, const struct slice *user_ids, size_t count,
                         state_routes_remembered early, state_routes_done done,
                         void *arg); /* NULL: as `routes` */
    void (*leases)(struct state_store *store, struct slice user_id, state_leases_done done,
                   void *arg);
    void (*find)(struct state_store *store, const struct ulid *conn_id, state_lease_done done,
                 void *arg);
    void (*history)(struct state_store *store, struct slice user_id, state_history_done done,
                    void *arg);
    void (*reap)(struct state_store *store, size_t max, state_transitions_done done, void *arg);
    void (*forget)(struct state_store *store, struct slice user_id, state_forget_done done,
                   void *arg);
    void (*put_gateway)(struct state_store *store, const struct gateway_info *info);
    void (*gateways)(struct state_store *store, state_gateways_done done, void *arg);
    /* NULL: `gateways` is as cheap. */
    void (*list_gateways)(struct state_store *store, state_gateways_done done, void *arg);
    void (*online)(struct state_store *store, struct slice after, size_t limit,
                   state_online_done done, void *arg);
    void (*count_online)(struct state_store *store, state_count_done done, void *arg);
    bool (*available)(struct state_store *store);
    void (*free)(struct state_store *store);
};

struct state_store {
    const struct state_store_operations *operations;
};

/* Registers a connection. A user who then has more than `user_leases_max` leases loses the one that was refreshed
 * longest ago; a gateway names its own most silent connection, which goes instead of another one of that gateway, or of
 * one that was refreshed later than it was heard. A user's first live lease makes a transition to online (to away if it starts idle),
 * except when `known_since_ms` says that the user has been connected and the store did not turn the user
 * offline since. An open lease is refreshed and takes the new idle flag. */
static inline void state_open(struct state_store *store, const struct lease *lease,
                              state_transition_done done, void *arg)
{
    store->operations->open(store, lease, done, arg);
}

/* Extends each lease to one window from now. Never makes a transition. The status is STATE_OK when the store
 * answered for at least one lease; the others have `failed` set. */
static inline void state_renew(struct state_store *store, struct lease_renewal *renewals,
                               size_t count, state_renewals_done done, void *arg)
{
    store->operations->renew(store, renewals, count, done, arg);
}

/* Marks a connection's user as idle or active on it. An unknown lease changes nothing. */
static inline void state_set_idle(struct state_store *store, struct slice user_id,
                                  const struct ulid *conn_id, bool idle, state_transition_done done,
                                  void *arg)
{
    store->operations->set_idle(store, user_id, conn_id, idle, done, arg);
}

/* Ends a lease. An unknown lease, or another user's, is no error and changes nothing. A user who goes offline
 * by this was last seen now. */
static inline void state_close(struct state_store *store, struct slice user_id,
                               const struct ulid *conn_id, state_transition_done done, void *arg)
{
    store->operations->close(store, user_id, conn_id, done, arg);
}

/* Reconciles a user with what this gateway knows. A lease that has ended is removed, as state_close() does, and the user was
 * last seen at that time, also when the store had no record any more: then a user without a lease goes offline, if others
 * have been told of a connection and nobody has turned the user offline since. A version below the claim's
 * is raised above it, as a change. Without `is_final` nothing is decided about a user whose leases may be lost. A store that
 * can lose nothing only ends the lease. */
static inline void state_settle(struct state_store *store, const struct state_claim *claim,
                                state_transition_done done, void *arg)
{
    store->operations->settle(store, claim, done, arg);
}

/* Returns each user's presence in the order of `user_ids`; a user without a record is offline, never seen. */
static inline void state_read(struct state_store *store, const struct slice *user_ids, size_t count,
                              state_presences_done done, void *arg)
{
    store->operations->read(store, user_ids, count, done, arg);
}

/* Sets the user's call flag. An offline user has none: the end of the last lease clears it. */
static inline void state_set_call(struct state_store *store, struct slice user_id, bool in_call,
                                  state_transition_done done, void *arg)
{
    store->operations->set_call(store, user_id, in_call, done, arg);
}

/* Returns where these users are connected, grouped by gateway, for fan-out. Offline users are left out.
 * A backend that also holds the parked sessions reports them too; others report none. `routes` is NULL
 * unless the status is STATE_OK. */
static inline void state_routes(struct state_store *store, const struct slice *user_ids,
                                size_t count, state_routes_done done, void *arg)
{
    store->operations->routes(store, user_ids, count, done, arg);
}

/* Whether `early` may run for so many users. */
enum { STATE_ROUTES_EARLY_MAX = 64 };
static inline bool state_may_route_early(const struct state_store *store, size_t count)
{
    return store->operations->routes_early && count <= STATE_ROUTES_EARLY_MAX;
}

/* The same for whoever sends at once to the routes that the store remembers, and again to those that it did not. `early`
 * runs at most once, before this function returns, and only if no operation of before is without its routes, so that what is
 * sent stays in order. Then `done` runs as always; routes that have gone meanwhile are not in its result. */
static inline void state_routes_early(struct state_store *store, const struct slice *user_ids,
                                      size_t count, state_routes_remembered early,
                                      state_routes_done done, void *arg)
{
    if (state_may_route_early(store, count))
        store->operations->routes_early(store, user_ids, count, early, done, arg);
    else
        store->operations->routes(store, user_ids, count, done, arg);
}

enum { STATE_LEASES_MAX = 256, STATE_HISTORY_MAX = 32 };

/* Returns a user's live leases, at most STATE_LEASES_MAX. */
static inline void state_leases(struct state_store *store, struct slice user_id,
                                state_leases_done done, void *arg)
{
    store->operations->leases(store, user_id, done, arg);
}

/* Returns the lease of a connection of any user on any gateway; NULL when there is none. */
static inline void state_find(struct state_store *store, const struct ulid *conn_id,
                              state_lease_done done, void *arg)
{
    store->operations->find(store, conn_id, done, arg);
}

/* Returns the user's last transitions that the store still holds, oldest first, at most STATE_HISTORY_MAX. */
static inline void state_history(struct state_store *store, struct slice user_id,
                                 state_history_done done, void *arg)
{
    store->operations->history(store, user_id, done, arg);
}

/* Removes at most `max` expired leases and ended graces; returns one transition for each, changed or not. A
 * user who goes offline by this was last seen at the last heartbeat. The next call says that these transitions were told:
 * publish them before the completion returns. A fleet's store returns a transition again, with the same version, perhaps
 * to another gateway, when nobody said so. */
static inline void state_reap(struct state_store *store, size_t max, state_transitions_done done,
                              void *arg)
{
    store->operations->reap(store, max, done, arg);
}

/* Forgets everything of a user who has no lease: last seen, record, history. A user with a lease stays as it is. The user's
 * next version is greater than any before, some milliseconds later. */
static inline void state_forget(struct state_store *store, struct slice user_id,
                                state_forget_done done, void *arg)
{
    store->operations->forget(store, user_id, done, arg);
}

/* Records that a gateway lives; the gateway repeats this at least once per window. */
static inline void state_put_gateway(struct state_store *store, const struct gateway_info *info)
{
    store->operations->put_gateway(store, info);
}

/* Returns the gateways that were put within the last window. */
static inline void state_gateways(struct state_store *store, state_gateways_done done, void *arg)
{
    store->operations->gateways(store, done, arg);
}

/* The same without the numbers of their connections, for who asks every second: costs nothing while no gateway comes, goes
 * or changes. One that died is listed up to half a window longer. */
static inline void state_list_gateways(struct state_store *store, state_gateways_done done,
                                       void *arg)
{
    if (store->operations->list_gateways)
        store->operations->list_gateways(store, done, arg);
    else
        store->operations->gateways(store, done, arg);
}

enum { STATE_ONLINE_PAGE_MAX = 1000, STATE_ONLINE_NEXT_MAX = 192 };

/* Lists at most `limit` (1 to STATE_ONLINE_PAGE_MAX) of the users who are online or away, in an order of the store's
 * own, from the place `after` on, which is the `next` of an earlier page, or empty for the first one. A user who stays
 * online is on one of the pages; on a store in Redis perhaps on two while many come. A page may have fewer users than
 * `limit` and not be the last one. Its cost is bounded by `limit`, however many are online. `page` is NULL unless the
 * status is STATE_OK. */
static inline void state_online(struct state_store *store, struct slice after, size_t limit,
                                state_online_done done, void *arg)
{
    store->operations->online(store, after, limit, done, arg);
}

/* Counts the users who are online or away. */
static inline void state_count_online(struct state_store *store, state_count_done done, void *arg)
{
    store->operations->count_online(store, done, arg);
}

/* Whether the store answers; new connections are refused while it does not. */
static inline bool state_available(struct state_store *store)
{
    return store->operations->available(store);
}

static inline void state_store_free(struct state_store **store)
{
    struct state_store *freed = *store;
    *store = NULL;
    if (freed)
        freed->operations->free(freed);
}

#endif
