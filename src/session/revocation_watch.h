/*
 * Keeps a gateway's revocations (auth/revocations.h) as the ledger has them, and ends the sessions they concern.
 *
 *   start ──► all revocations are read, page by page ──► tokens are verified
 *   POST …/revoke ──► ledger ──► event on the bus ──► every gateway notes it and ends the user's sessions
 *   every REVOCATION_WATCH_READ_MS, and after a gap ──► the new ones are read: an event may be lost
 *
 * One per gateway, on its thread.
 */
#ifndef ROLLCALL_SESSION_REVOCATION_WATCH_H
#define ROLLCALL_SESSION_REVOCATION_WATCH_H

#include "auth/revocations.h"
#include "session/session_context.h"

/* How long a revocation whose event was lost may take to hold. */
enum { REVOCATION_WATCH_READ_MS = 2000 };

/* The topic of the events; it has no colon, so it names no user, chat or gateway. */
#define REVOCATION_WATCH_TOPIC SLICE("revocations")

struct revocation_watch {
    struct session_context *context;
    struct revocations revocations;
    uint64_t position; /* of the last one that was read */
    int64_t read_at_ms;
    bool reading;
    bool stopped;
};

/* Returns false when out of memory. */
bool revocation_watch_init(struct revocation_watch *watch, struct session_context *context,
                           uint64_t seed);
void revocation_watch_free(struct revocation_watch *watch);

/* Subscribes and starts to read. */
void revocation_watch_start(struct revocation_watch *watch);

/* Starts no more operations of the ledger. */
void revocation_watch_stop(struct revocation_watch *watch);

/* Call it about once a second. */
void revocation_watch_tick(struct revocation_watch *watch);

/* Events may have been missed: reads at the next tick. */
void revocation_watch_on_gap(struct revocation_watch *watch);

/* Receives an event of the topic. */
void revocation_watch_on_event(struct revocation_watch *watch, struct slice payload);

/* Tells all gateways, this one too, of a revocation that the ledger has stored. */
void revocation_watch_publish(const struct session_context *context, struct slice user_id,
                              int64_t revoked_at_s);

#endif
