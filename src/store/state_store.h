/*
 * The state store: the port behind which leases, routes and presence are kept.
 *
 * A lease says "this connection of this user lives on this gateway until …". A user is online while at
 * least one lease lives, away while all that live are idle, offline otherwise; first and last lease make
 * the transitions. Each operation is one atomic transition of one user and answers with what changed,
 * so that exactly one gateway of a fleet learns of each change and publishes it.
 *
 *   no record ──open──► ONLINE ◄──activity── AWAY        version grows by at least 1 at each arrow
 *                       │  ▲  └──all idle──►  │          and never goes back, restarts included
 *           last closed │  │ open             │ last closed or expired
 *           or expired  ▼  │                  ▼
 *                   LINGERING (only with a grace; still shown as it was) ──grace over──► OFFLINE
 *
 * A lease's window runs from its last refresh (open or renew). What is not refreshed is found by
 * state_reap(), which any gateway calls now and then; it also ends the grace of those who linger.
 *
 * Contract of every call: asynchronous; the completion runs exactly once, on the calling worker's
 * thread, possibly before the call returns (so make the call the last thing a function does); it
 * never blocks; arguments are borrowed for the call, results for the completion. The
 * status says what is known (enum state_status). One `struct state_store` per worker; its operations on one
 * lease take effect in the order of the calls, answered or not.
 *
 * The suite in tests/conformance/state_store_suite.c says all of this in code, for every backend.
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
    STATE_UNAVAILABLE, /* the store certainly did nothing, and nothing was learned */
    STATE_UNKNOWN, /* the store did not answer: the change may have happened; reads never say this */
};

struct lease {
    struct ulid conn_id;
    struct slice user_id;
    struct slice device_id;
    struct slice gateway_id;
    int64_t connected_at_ms;   /* wall clock; the time in conn_id */
    int64_t last_heartbeat_ms; /* wall clock: the last sign of life known to the store */
    bool idle;
    /* Of an open: since when the gateway has had the user connected, by this connection or another, on the wall
     * clock; 0: it has not. A store that does not know of that has lost it, and the user is no news. */
    int64_t known_since_ms;
};

/* What one operation did to a user. With STATE_UNKNOWN it has the user's id and nothing else, with
 * STATE_UNAVAILABLE nothing at all. */
struct state_transition {
    bool changed;             /* something others may see is different: publish it */
    struct presence presence; /* as it is now; user_id lasts as long as the completion */
    int64_t at_ms;            /* wall clock */
    bool was_here; /* of a lease that opened: the user was not offline before, only away */
};

struct lease_renewal {
    struct ulid conn_id;
    struct slice user_id;
    int64_t last_heartbeat_ms;
    bool lost;   /* set by the store: it no longer knew this lease; open it again */
    bool failed; /* set by the store: it could not be asked for this one; try again soon */
};

struct gateway_info {
    struct slice gateway_id;
    size_t connections;
    int64_t started_at_ms;
    bool draining;
    struct slice peer_address; /* HOST:PORT where other gateways link to it; empty: nowhere */
};

/* Users who have connections on one gateway. */
struct state_route {
    struct slice gateway_id;
    const struct slice *users;
    size_t count;
};

/* Where to reach users. */
struct state_routes {
    const struct state_route *items;
    size_t count;
    const struct slice
        *parked; /* those with a session that waits to be recovered (recovery_store.h) */
    size_t parked_count;
};

/* One line of a user's recent past, for explanations. */
struct state_history {
    int64_t at_ms;
    enum presence_status status;
    int64_t version;
    /* "connected", "disconnected", "expired", "idle", "active", "grace over", … */
    const char *cause;
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
typedef void (*state_leases_done)(void *arg, enum state_status status, const struct lease *leases,
                                  size_t count);
typedef void (*state_lease_done)(void *arg, enum state_status status, const struct lease *lease);
typedef void (*state_history_done)(void *arg, enum state_status status,
                                   const struct state_history *history, size_t count);
typedef void (*state_gateways_done)(void *arg, enum state_status status,
                                    const struct gateway_info *gateways, size_t count);

struct state_store_operations {
    void (*open)(struct state_store *store, const struct lease *lease, state_transition_done done,
                 void *arg);
    void (*renew)(struct state_store *store, struct lease_renewal *renewals, size_t count,
                  state_renewals_done done, void *arg);
    void (*set_idle)(struct state_store *store, struct slice user_id, const struct ulid *conn_id,
                     bool idle, state_transition_done done, void *arg);
    void (*close)(struct state_store *store, struct slice user_id, const struct ulid *conn_id,
                  state_transition_done done, void *arg);
    void (*read)(struct state_store *store, const struct slice *user_ids, size_t count,
                 state_presences_done done, void *arg);
    void (*set_call)(struct state_store *store, struct slice user_id, bool in_call,
                     state_transition_done done, void *arg);
    void (*routes)(struct state_store *store, const struct slice *user_ids, size_t count,
                   state_routes_done done, void *arg);
    void (*leases)(struct state_store *store, struct slice user_id, state_leases_done done,
                   void *arg);
    void (*find)(struct state_store *store, const struct ulid *conn_id, state_lease_done done,
                 void *arg);
    void (*history)(struct state_store *store, struct slice user_id, state_history_done done,
                    void *arg);
    void (*reap)(struct state_store *store, size_t max, state_transitions_done done, void *arg);
    void (*put_gateway)(struct state_store *store, const struct gateway_info *info);
    void (*gateways)(struct state_store *store, state_gateways_done done, void *arg);
    bool (*available)(struct state_store *store);
    void (*free)(struct state_store *store);
};

struct state_store {
    const struct state_store_operations *operations;
};

/* Registers a connection. A user's first live lease makes a transition to online (or away, when it starts
 * idle), but not one whose user the gateway knows to be connected, unless the user was turned offline
 * meanwhile. One that is open already is refreshed, and as idle as this says. */
static inline void state_open(struct state_store *store, const struct lease *lease,
                              state_transition_done done, void *arg)
{
    store->operations->open(store, lease, done, arg);
}

/* Extends each lease by the window from now. Never makes a transition. The status is STATE_OK when the store
 * answered for at least one of them; those it did not answer for have `failed`. */
static inline void state_renew(struct state_store *store, struct lease_renewal *renewals,
                               size_t count, state_renewals_done done, void *arg)
{
    store->operations->renew(store, renewals, count, done, arg);
}

/* The connection's user is idle there, or active again. For an unknown lease nothing changes. */
static inline void state_set_idle(struct state_store *store, struct slice user_id,
                                  const struct ulid *conn_id, bool idle, state_transition_done done,
                                  void *arg)
{
    store->operations->set_idle(store, user_id, conn_id, idle, done, arg);
}

/* Ends a lease. Unknown leases, and other users', are no error: nothing changed. The last seen of one who
 * goes offline so is now. */
static inline void state_close(struct state_store *store, struct slice user_id,
                               const struct ulid *conn_id, state_transition_done done, void *arg)
{
    store->operations->close(store, user_id, conn_id, done, arg);
}

/* Presence of each user, in the order asked; a user without a record is offline, never seen. */
static inline void state_read(struct state_store *store, const struct slice *user_ids, size_t count,
                              state_presences_done done, void *arg)
{
    store->operations->read(store, user_ids, count, done, arg);
}

/* The user is in a call, or no longer. An offline user is in none: a last lease that ends takes the
 * call with it. */
static inline void state_set_call(struct state_store *store, struct slice user_id, bool in_call,
                                  state_transition_done done, void *arg)
{
    store->operations->set_call(store, user_id, in_call, done, arg);
}

/* Where these users are connected, grouped by gateway: what fan-out asks. Offline users are in none. Where
 * sessions are parked in the same place it is told in the same answer; another backend tells of none. NULL
 * unless the status is STATE_OK. */
static inline void state_routes(struct state_store *store, const struct slice *user_ids,
                                size_t count, state_routes_done done, void *arg)
{
    store->operations->routes(store, user_ids, count, done, arg);
}

/* A user's live leases (at most STATE_LEASES_MAX of them). */
enum { STATE_LEASES_MAX = 256, STATE_HISTORY_MAX = 32 };

static inline void state_leases(struct state_store *store, struct slice user_id,
                                state_leases_done done, void *arg)
{
    store->operations->leases(store, user_id, done, arg);
}

/* The lease of a connection, whoever's and wherever it is; NULL when there is none. */
static inline void state_find(struct state_store *store, const struct ulid *conn_id,
                              state_lease_done done, void *arg)
{
    store->operations->find(store, conn_id, done, arg);
}

/* A user's last transitions that are still remembered, oldest first. */
static inline void state_history(struct state_store *store, struct slice user_id,
                                 state_history_done done, void *arg)
{
    store->operations->history(store, user_id, done, arg);
}

/* Removes at most `max` expired leases and graces that are over; answers with one transition for each,
 * changed or not. The last seen of one who goes offline so is their last sign of life. */
static inline void state_reap(struct state_store *store, size_t max, state_transitions_done done,
                              void *arg)
{
    store->operations->reap(store, max, done, arg);
}

/* Says that a gateway lives; repeated at least once a window. */
static inline void state_put_gateway(struct state_store *store, const struct gateway_info *info)
{
    store->operations->put_gateway(store, info);
}

static inline void state_gateways(struct state_store *store, state_gateways_done done, void *arg)
{
    store->operations->gateways(store, done, arg);
}

/* Whether the store answered lately; new connections are refused while it does not. */
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
