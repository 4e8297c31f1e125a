/*
 * Calls, the part of the presence plane on one gateway: who may call whom, what becomes of it, who is
 * told, and that `in_call` says the truth.
 *
 *   command ──► contact? connected? ──► call store (one atomic transition) ──► who made it …
 *                                                                … answers the command, tells devices,
 *                                                                sets `in_call`, writes the history
 *
 * The truth about calls is in the call store, behind which all gateways meet; this plane keeps only the
 * connections it must speak for (call_bindings.h). Whichever gateway makes a transition tells of it, by
 * delivery, so the two sides may be anywhere.
 *
 * `in_call` of a user is another record, in the state store; it follows the call store (call_sync.h).
 *
 * A user whom the asker may not call, one who is not there, and one who is not known look the same:
 * CALL_UNAVAILABLE. So do a call of other people and none at all: NOT_FOUND.
 *
 * A device that connects while it is in a call, or while one rings for its user, is told how it stands:
 * call_ringing, call_accepted or call_incoming. One that hears none of them is in no call (any more).
 *
 * One per worker, on its thread.
 */
#ifndef ROLLCALL_CALLS_CALL_PLANE_H
#define ROLLCALL_CALLS_CALL_PLANE_H

#include "base/random.h"
#include "calls/call_bindings.h"
#include "calls/call_sync.h"
#include "presence/presence_plane.h"
#include "routing/delivery.h"
#include "store/call_store.h"

enum { CALL_SIGNAL_BYTES_MAX = 32 * 1024 };

struct call_plane {
    struct call_store *store;
    struct presence_plane *presence; /* its configuration, clock, ledger and metrics are ours too */
    struct delivery *delivery;
    struct random *random;
    /* Whether this gateway still has that connection. */
    bool (*is_connected)(void *arg, struct slice user_id, const struct ulid *conn_id);
    void *arg;
    struct call_bindings bindings;
    struct call_sync sync;
    int64_t renew_at_ms;
};

/* For the parts that are the plane's own; those above are set by its maker. False: memory is short. */
bool call_plane_init(struct call_plane *plane, uint64_t hash_seed);

/* When nothing is under way any more. The store stays its maker's. */
void call_plane_free(struct call_plane *plane);

/* How a command ended. */
struct call_reply {
    const char *problem;     /* NULL: it was done */
    enum error_code code;    /* of the problem */
    const struct call *call; /* as it is now, where it was done; lasts as long as the completion */
};

/* Commands of a device. Arguments are borrowed for the call; `done` runs exactly once, possibly before
 * the call returns, and before anybody else hears of it. */

/* Rings `to`. `call_id` SLICE_NONE: one is made. The reply's call may be another than that of the id:
 * the one that rang the other way, which the request has answered. */
void call_plane_request(struct call_plane *plane, const struct call_device *device, struct slice to,
                        struct slice call_id,
                        void (*done)(void *arg, const struct call_reply *reply), void *arg);

/* Of these the id may be SLICE_NONE: the call the user is in. */
void call_plane_accept(struct call_plane *plane, const struct call_device *device,
                       struct slice call_id,
                       void (*done)(void *arg, const struct call_reply *reply), void *arg);
void call_plane_reject(struct call_plane *plane, const struct call_device *device,
                       struct slice call_id,
                       void (*done)(void *arg, const struct call_reply *reply), void *arg);
void call_plane_end(struct call_plane *plane, const struct call_device *device,
                    struct slice call_id, void (*done)(void *arg, const struct call_reply *reply),
                    void *arg);

/* Relays raw JSON to the other side. */
void call_plane_signal(struct call_plane *plane, const struct call_device *device,
                       struct slice call_id, struct slice data,
                       void (*done)(void *arg, const struct call_reply *reply), void *arg);

/* call:start of Socket.IO clients: the user is in a call of which we know no more. Done already when they
 * are in an accepted one. */
void call_plane_declare_start(struct call_plane *plane, const struct call_device *device,
                              void (*done)(void *arg, const struct call_reply *reply), void *arg);

/* call:end of Socket.IO clients: ends whatever call the user is in. Done already when there is none. */
void call_plane_declare_end(struct call_plane *plane, const struct call_device *device,
                            void (*done)(void *arg, const struct call_reply *reply), void *arg);

/* Two users may not call each other any more: ends the call between them, if there is one, as if `user`
 * had ended it. */
void call_plane_part(struct call_plane *plane, struct slice user, struct slice peer);

/* A device goes and will not come back: ends the call it is in. Its connection is detached. */
void call_plane_leave(struct call_plane *plane, const struct call_device *device);

/* A device has connected here (and its lease is registered), or a connection is gone. */
void call_plane_attach(struct call_plane *plane, const struct call_device *device);
void call_plane_detach(struct call_plane *plane, struct slice user_id, const struct ulid *conn_id);

/* Ends what is due, in a bounded pass, and renews what this gateway holds. */
void call_plane_tick(struct call_plane *plane);

#endif
