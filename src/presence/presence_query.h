/*
 * Looking at users' presence with a viewer's eyes: settings and relations from the ledger, the privacy
 * engine's decision, then the state. Behind queries, snapshots and subscriptions alike.
 *
 * `decided` (may be NULL) runs when the views are known and before the state is read: a subscriber sets
 * its subscriptions' views there, so that no change falls between. If what may be seen changed while the
 * ledger was asked or the state was read, it is asked again, and `decided` runs again, so that no old setting
 * wins. `done` runs once, last; with ok false nothing is known. While the state store is out of reach, or has
 * come back and does not know of somebody yet, presences come back as they were last known (last_known.h), or
 * as unknown, and stale.
 *
 * When the ledger cannot answer, the cached graphs decide as far as they are known (recall.h). Of whom they
 * are not, nothing can be said: a look that is to set views is then given up, and so is one that knows of
 * nobody; `undecided` (may be NULL) runs instead of `decided`. A mere query shows such a user as unknown and
 * stale.
 */
#ifndef ROLLCALL_PRESENCE_PRESENCE_QUERY_H
#define ROLLCALL_PRESENCE_PRESENCE_QUERY_H

#include "presence/presence_plane.h"
#include "presence/visibility/privacy.h"

struct presence_query_handler {
    void (*decided)(void *arg, const struct slice *users, const struct privacy_decision *decisions,
                    size_t count);
    void (*undecided)(void *arg, const struct slice *users, size_t count);
    void (*done)(void *arg, bool ok, const struct presence *presences, size_t count);
    void *arg;
};

void presence_query(struct presence_plane *plane, struct slice viewer, const struct slice *users,
                    size_t count, const struct presence_query_handler *handler);

/* What may be seen of this user has changed: looks under way that will set views must ask again. */
void presence_query_outdate(struct presence_plane *plane, struct slice user_id);

#endif
