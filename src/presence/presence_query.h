/*
 * Presence queries: read users' presence on behalf of a viewer. Settings and relations come from the ledger,
 * the privacy engine decides, then the state is read. Queries, snapshots and subscriptions all use this.
 *
 * `on_decided` (may be NULL) runs when the views are known and before the state is read: a subscriber sets
 * the views of its subscriptions there, so that no change falls in between. If the visibility of a user
 * changes while the ledger or the store is read, the query starts again and `on_decided` runs again, so
 * that no old setting wins. `done` runs exactly once, last; with `ok` false there are no results.
 *
 * While the state store is unavailable, or has come back without a record of the user, the presence is
 * returned as last known (last_known.h), or as unknown, and marked stale.
 *
 * When the ledger does not answer, cached profiles decide (cached_profiles.h). A query that sets views is
 * given up if one profile is missing, and every query if all are missing; then `on_undecided` (may be NULL)
 * runs instead of `on_decided`. Any other query shows a user without a cached profile as unknown and stale.
 */
#ifndef ROLLCALL_PRESENCE_PRESENCE_QUERY_H
#define ROLLCALL_PRESENCE_PRESENCE_QUERY_H

#include "presence/presence_plane.h"
#include "presence/visibility/privacy.h"

/* The viewer of a query by the application, which sees everything. */
#define PRESENCE_QUERY_UNFILTERED SLICE_NONE

struct presence_query_handler {
    void (*on_decided)(void *arg, const struct slice *users,
                       const struct privacy_decision *decisions, size_t count);
    void (*on_undecided)(void *arg, const struct slice *users, size_t count);
    void (*done)(void *arg, bool ok, const struct presence *presences, size_t count);
    void *arg;
};

void presence_query(struct presence_plane *plane, struct slice viewer, const struct slice *users,
                    size_t count, const struct presence_query_handler *handler);

/* Completes the store's record with the ledger's last seen and version: the ledger also has users whom the store has dropped
 * or lost. The version does not go below the one that viewers were told. */
struct presence presence_query_merge(const struct presence *state, const struct presence *ledger,
                                     int64_t told_version);

/* The visibility of this user changed: pending queries that will set views start again. */
void presence_query_outdate(struct presence_plane *plane, struct slice user_id);

#endif
