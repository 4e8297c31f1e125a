/*
 * The presence plane of one gateway: leases in, transitions out, and who is told.
 *
 *   session ──open, renew, idle, close──► plane ──► state store ──transition──► plane ──► bus
 *   bus ──event──► plane ──(privacy decides per subscriber)──► router ──► sockets
 *
 * Renewals are collected and go to the store in batches (presence_flush(), some times a second). The reaper
 * (presence_reap()) makes transitions of leases that nobody renewed. Whatever the source, a transition
 * is published once, by the gateway whose operation made it, or where that was not told what it made, by what it
 * reads later (doubt.h); its last seen goes to the ledger behind the writers' back.
 *
 * One per worker, on its thread. It knows no socket and no connection.
 */
#ifndef ROLLCALL_PRESENCE_PRESENCE_PLANE_H
#define ROLLCALL_PRESENCE_PRESENCE_PLANE_H

#include "base/clock.h"
#include "base/list.h"
#include "bus/bus.h"
#include "config/config.h"
#include "ledger/last_seen.h"
#include "ledger/ledger.h"
#include "metrics/metrics.h"
#include "presence/audience.h"
#include "presence/last_known.h"
#include "presence/resync.h"
#include "presence/uncertain_users.h"
#include "routing/router.h"
#include "store/state_store.h"

#include <stdbool.h>
#include <stddef.h>

enum { PRESENCE_RENEWALS_MAX = 256 };

struct presence_plane {
    const struct config *config;
    const struct clock *clock;
    struct state_store *store;
    struct bus *bus;
    struct router *router;
    struct ledger_client *ledger;
    struct last_seen *last_seen;
    struct metrics *metrics;
    struct last_known *last_known; /* NULL: nothing is kept for when the store is out of reach */
    struct audience audience;      /* made with audience_init(); without it nobody has contacts */
    /* The store no longer knew this lease of ours: its session must open it again. */
    void (*lost)(void *arg, struct slice user_id, const struct ulid *conn_id);
    /* The store could not be asked about this one: its session should renew it again soon. May be NULL. */
    void (*unrenewed)(void *arg, struct slice user_id, const struct ulid *conn_id);
    /* Since when a user is connected here, on the wall clock; 0: is not. May be NULL. */
    int64_t (*known_since)(void *arg, struct slice user_id);
    void *lost_arg; /* of all three */
    struct lease_renewal renewals[PRESENCE_RENEWALS_MAX];
    char renewal_users[PRESENCE_RENEWALS_MAX][USER_ID_BYTES_MAX];
    size_t renewal_count;
    struct list looks;    /* that will set views (look.h) */
    struct list reviews;  /* under way, or waiting to be tried again (review.h) */
    struct resync resync; /* after events may have been missed; refresh_chat is set by the maker */
    struct uncertain_users doubts;
};

/* For the parts that are the plane's own; those above are set by its maker. */
void presence_init(struct presence_plane *plane);

/* When nothing is under way any more. */
void presence_free(struct presence_plane *plane);

/* Registers a connection. `done` learns whether the store took it. */
void presence_open(struct presence_plane *plane, const struct lease *lease,
                   void (*done)(void *arg, bool registered), void *arg);

/* Keeps a lease, with the next presence_flush(). */
void presence_renew(struct presence_plane *plane, struct slice user_id, const struct ulid *conn_id,
                    int64_t last_heartbeat_ms);
void presence_flush(struct presence_plane *plane);

void presence_set_idle(struct presence_plane *plane, struct slice user_id,
                       const struct ulid *conn_id, bool idle);
void presence_close(struct presence_plane *plane, struct slice user_id, const struct ulid *conn_id);

/* The user is in a call, or no longer. `done` learns whether the store took it. */
void presence_set_call(struct presence_plane *plane, struct slice user_id, bool in_call,
                       void (*done)(void *arg, bool set), void *arg);

/* One bounded pass over leases that ran out, reviews that could not be made, and what must be read anew. */
void presence_reap(struct presence_plane *plane);

/* Tells everybody who may hear of it. */
void presence_tell(struct presence_plane *plane, const struct presence_change *change);

/* An event from the bus, on a topic of this plane. */
void presence_received(struct presence_plane *plane, struct slice topic, struct slice payload);

/* Tells all gateways that what may be seen of a user is different now. */
void presence_publish_privacy(struct presence_plane *plane, struct slice user_id);

#endif
