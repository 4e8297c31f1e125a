/*
 * Looking at users' presence with a viewer's eyes: settings and relations from the ledger, the privacy
 * engine's decision, then the state. Behind queries, snapshots and subscriptions alike.
 *
 * `decided` (may be NULL) runs when the views are known and before the state is read: a subscriber sets
 * its subscriptions' views there, so that no change falls between. `done` runs once; with ok false the
 * ledger could not answer and nothing is known. While the state store is out of reach presences come
 * back as unknown and stale.
 */
#ifndef ROLLCALL_PRESENCE_LOOK_H
#define ROLLCALL_PRESENCE_LOOK_H

#include "presence/presence_plane.h"
#include "presence/privacy.h"

struct look_handler {
    void (*decided)(void *arg, const struct slice *users, const struct privacy_decision *decisions,
                    size_t count);
    void (*done)(void *arg, bool ok, const struct presence *presences, size_t count);
    void *arg;
};

void presence_look(struct presence_plane *plane, struct slice viewer, const struct slice *users,
                   size_t count, const struct look_handler *handler);

#endif
