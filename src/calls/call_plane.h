/*
 * The call plane of one gateway: it handles call commands, sends the events about calls, and keeps `in_call`
 * correct.
 *
 *   command ──► contact? connected? ──► call store (one atomic transition) ──► the gateway that made it
 *                                       replies, sends events, sets `in_call`, writes the history
 *
 * The call store, which all gateways share, has the state of each call; the plane keeps only the
 * connections it is responsible for (call_bindings.h), ends calls that the store has lost (call_losses.h), and ends those
 * again whose end it has lost (call_endings.h). The gateway that makes a transition sends the events
 * by delivery, so the two sides may be connected anywhere.
 *
 * `in_call` of a user is another record, in the state store; it follows the call store (call_sync.h).
 *
 * A callee who may not be called, one who is not connected and one who does not exist look the same:
 * CALL_UNAVAILABLE. A callee who hides presence from the caller rings until the timeout, connected or not, in
 * another call or not, because a call must not tell what privacy hides. A call of other users and a call that
 * does not exist look the same too: NOT_FOUND.
 *
 * A device that connects while it is in a call, or while a call rings for its user, gets the state by
 * call_ringing, call_accepted or call_incoming. A device that gets none of them is in no call.
 *
 * One per worker, on its thread.
 */
#ifndef ROLLCALL_CALLS_CALL_PLANE_H
#define ROLLCALL_CALLS_CALL_PLANE_H

#include "base/random.h"
#include "calls/call_bindings.h"
#include "calls/call_endings.h"
#include "calls/call_losses.h"
#include "calls/call_sync.h"
#include "calls/call_told.h"
#include "presence/presence_plane.h"
#include "routing/delivery.h"
#include "store/call_store.h"

enum { CALL_SIGNAL_BYTES_MAX = 32 * 1024 };

struct call_plane {
    struct call_store *store;
    struct presence_plane *presence; /* also for its configuration, clock, ledger and metrics */
    struct delivery *delivery;
    struct random *random;
    /* Returns whether this gateway still has that connection. */
    bool (*is_connected)(void *arg, struct slice user_id, const struct ulid *conn_id);
    void *arg;
    struct call_bindings bindings;
    struct call_losses losses;
    struct call_endings endings;
    struct call_told told;
    struct call_sync sync;
    int64_t renew_at_ms;
};

/* Initialises the plane's own parts; the owner sets those above. Returns false when out of memory. */
bool call_plane_init(struct call_plane *plane, uint64_t hash_seed);

/* No operation may be pending. The owner frees the store. */
void call_plane_free(struct call_plane *plane);

/* The result of a command. */
struct call_reply {
    const char *problem;     /* NULL: success */
    enum error_code code;    /* of the problem */
    const struct call *call; /* as it is now, on success; borrowed for the completion */
};

typedef void (*call_plane_done)(void *arg, const struct call_reply *reply);

/* Commands of a device. Arguments are borrowed until the function returns; `done` runs exactly once,
 * possibly before that, and before any other device is told. */

/* Rings `to`. `call_id` SLICE_NONE: an id is made. If `to` was calling this user at the same time, this
 * call request accepts that call, and the reply has that call with its id. */
void call_plane_request(struct call_plane *plane, const struct call_device *device, struct slice to,
                        struct slice call_id, call_plane_done done, void *arg);

/* Here the id may be SLICE_NONE: the call the user is in. */
void call_plane_accept(struct call_plane *plane, const struct call_device *device,
                       struct slice call_id, call_plane_done done, void *arg);
void call_plane_reject(struct call_plane *plane, const struct call_device *device,
                       struct slice call_id, call_plane_done done, void *arg);
void call_plane_end(struct call_plane *plane, const struct call_device *device,
                    struct slice call_id, call_plane_done done, void *arg);

/* Relays raw JSON to the other side. */
void call_plane_signal(struct call_plane *plane, const struct call_device *device,
                       struct slice call_id, struct slice data, call_plane_done done, void *arg);

/* Declares that the user is in a call that the server does not manage.
 * Succeeds without a change if the user is in an accepted call. */
void call_plane_declare_start(struct call_plane *plane, const struct call_device *device,
                              call_plane_done done, void *arg);

/* Ends the call the user is in. Succeeds if there is none. */
void call_plane_declare_end(struct call_plane *plane, const struct call_device *device,
                            call_plane_done done, void *arg);

/* Two users may no longer call each other: ends the call between them, if any, as if `user` had ended it. */
void call_plane_end_between(struct call_plane *plane, struct slice user, struct slice other);

/* A device leaves for good: ends its call and detaches its connection. */
void call_plane_leave(struct call_plane *plane, const struct call_device *device);

/* A device has connected here (and its lease is registered), or a connection has ended. */
void call_plane_attach(struct call_plane *plane, const struct call_device *device);
void call_plane_detach(struct call_plane *plane, struct slice user_id, const struct ulid *conn_id);

/* Renews the parties that this gateway holds, and ends calls whose time has run out, in a bounded pass: not while gateways
 * register again what a disturbed store may have lost (presence/resync.h), since parties are renewed first then. */
void call_plane_tick(struct call_plane *plane);

#endif
