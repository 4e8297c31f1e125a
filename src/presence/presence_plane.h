/*
 * The presence plane of one gateway: it turns leases into transitions, and transitions into events for
 * viewers.
 *
 *   session ──open, renew, idle, close──► plane ──► state store ──transition──► plane ──► bus
 *   bus ──event──► plane ──(privacy decides per subscriber)──► router ──► connections
 *
 * Renewals are collected and sent to the store in batches (presence_flush(), several times a second). The
 * reaper (presence_reap()) turns leases that were not renewed into transitions. Every transition is
 * published once, by the gateway whose operation made it; if that gateway does not receive the result, it
 * publishes what it reads later (reread_queue.h). A lease that ended while the store could not be told is settled later
 * (settle_queue.h). The last-seen time goes to the ledger asynchronously.
 *
 * One per worker, on its thread. It has no access to sockets and connections.
 */
#ifndef ROLLCALL_PRESENCE_PRESENCE_PLANE_H
#define ROLLCALL_PRESENCE_PRESENCE_PLANE_H

#include "base/clock.h"
#include "base/list.h"
#include "bus/bus.h"
#include "config/config.h"
#include "contacts/graph_reader.h"
#include "ledger/last_seen.h"
#include "ledger/ledger.h"
#include "metrics/metrics.h"
#include "presence/dwell.h"
#include "presence/last_known.h"
#include "presence/reread_queue.h"
#include "presence/resync.h"
#include "presence/settle_queue.h"
#include "presence/visibility/privacy_repeat.h"
#include "routing/router.h"
#include "store/state_store.h"

#include <stdbool.h>
#include <stddef.h>

enum { PRESENCE_RENEWALS_MAX = 256 };

/* Notifies the session that holds this lease. */
typedef void (*presence_lease_hook)(void *arg, struct slice user_id, const struct ulid *conn_id);

/* A lease of a user has ended for another one. */
typedef void (*presence_displaced_hook)(void *arg, struct slice gateway_id, struct slice user_id,
                                        const struct ulid *conn_id);

/* `stored`: the store has accepted the operation. */
typedef void (*presence_done)(void *arg, bool stored);

/* A change is published, unfiltered by privacy. */
typedef void (*presence_change_hook)(void *arg, const struct presence_change *change);

struct presence_plane {
    const struct config *config;
    const struct clock *clock;
    struct state_store *store;
    struct bus *bus;
    struct router *router;
    struct ledger_client *ledger;
    struct last_seen *last_seen;
    struct metrics *metrics;
    struct last_known *last_known; /* NULL: nothing is kept for when the store is unavailable */
    struct graph_reader graphs; /* made with graph_reader_init(); without it nobody has contacts */
    /* The store has lost this lease: its session must open it again. */
    presence_lease_hook on_lease_lost;
    /* The store did not answer for this lease: its session should renew it again soon. May be NULL. */
    presence_lease_hook on_renewal_failed;
    /* Returns since when a user is connected here, on the wall clock; 0: not connected. May be NULL. */
    int64_t (*connected_since)(void *arg, struct slice user_id);
    /* A user had too many leases, and this one has ended for a new one: its gateway must close the connection. May be
     * NULL. */
    presence_displaced_hook on_displaced;
    void *session_arg;              /* of these four */
    presence_change_hook on_change; /* NULL: nobody asks */
    void *on_change_arg;
    struct lease_renewal renewals[PRESENCE_RENEWALS_MAX];
    char renewal_users[PRESENCE_RENEWALS_MAX][USER_ID_BYTES_MAX];
    size_t renewal_count;
    bool is_in_reap;      /* state_reap() has not returned */
    struct list queries;  /* pending queries that will set views (presence_query.h) */
    struct list reviews;  /* pending, or waiting to be tried again (visibility_review.h) */
    struct resync resync; /* its refresh_chat is set by the owner */
    struct reread_queue rereads;
    struct settle_queue settlements;
    struct privacy_repeats privacy_repeats;
    struct dwell dwell; /* made with dwell_init(); without it every change is published at once */
};

/* Initialises the plane's own parts; the owner sets those above. */
void presence_init(struct presence_plane *plane);

/* No operation may be pending. */
void presence_free(struct presence_plane *plane);

/* Registers a connection's lease. */
void presence_open(struct presence_plane *plane, const struct lease *lease, presence_done done,
                   void *arg);

/* Renews a lease with the next presence_flush(). */
void presence_renew(struct presence_plane *plane, struct slice user_id, const struct ulid *conn_id,
                    int64_t last_heartbeat_ms);
void presence_flush(struct presence_plane *plane);

void presence_set_idle(struct presence_plane *plane, struct slice user_id,
                       const struct ulid *conn_id, bool idle);
void presence_close(struct presence_plane *plane, struct slice user_id, const struct ulid *conn_id);

/* Sets whether the user is in a call. */
void presence_set_call(struct presence_plane *plane, struct slice user_id, bool in_call,
                       presence_done done, void *arg);

/* One bounded pass over expired leases, visibility reviews that failed, and what must be read again. */
void presence_reap(struct presence_plane *plane);

/* Records a change and publishes it to everybody who may see it, at once or when the user's last change is old
 * enough (dwell.h). */
void presence_publish_change(struct presence_plane *plane, const struct presence_change *change);

/* Publishes a recorded change at once. */
void presence_publish_now(struct presence_plane *plane, const struct presence_change *change);

/* A claim was settled with the store (settle_queue.h). `publish`: also if nothing changed by it. */
void presence_settled(struct presence_plane *plane, const struct state_transition *transition,
                      bool publish);

/* Handles an event from the bus, on a topic `presence:<user>`. */
void presence_received(struct presence_plane *plane, struct slice topic, struct slice payload);

/* Makes all gateways review who may see this user. */
void presence_publish_privacy(struct presence_plane *plane, struct slice user_id);

#endif
