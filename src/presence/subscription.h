/*
 * Presence subscriptions: an endpoint's standing wish to hear of a user, held to what privacy allows.
 *
 * A subscription is made without a view, gets one when privacy has decided, and is reviewed whenever the
 * user's settings, contacts or blocks change (review.h). Without a view it hears nothing. What its holder
 * knows stands in it (routing/router.h), so that an event is told once and nothing old after something new.
 */
#ifndef ROLLCALL_PRESENCE_SUBSCRIPTION_H
#define ROLLCALL_PRESENCE_SUBSCRIPTION_H

#include "presence/presence_plane.h"
#include "presence/visibility/privacy.h"

/* Beside the privacy views: not decided yet, or in doubt. */
enum { SUBSCRIPTION_UNDECIDED = PRIVACY_VIEWS };

/* The endpoint's subscription to a user's presence, or NULL. */
struct subscription *subscription_find(const struct endpoint *endpoint, struct slice user_id);

/* How many presence subscriptions the endpoint would hold with these added. */
size_t subscription_count_with(const struct endpoint *endpoint, const struct slice *users,
                               size_t count);

/* Subscribes to each, without a view until subscription_decide(). False when memory is short; some may
 * have been added then. */
bool subscription_add(struct presence_plane *plane, struct endpoint *endpoint,
                      const struct slice *users, size_t count);
void subscription_remove(struct presence_plane *plane, struct endpoint *endpoint,
                         const struct slice *users, size_t count);

/* Takes back those of these that never got a view. */
void subscription_withdraw(struct presence_plane *plane, struct endpoint *endpoint,
                           const struct slice *users, size_t count);

/* Sets the views that privacy decided for this endpoint. */
void subscription_decide(struct presence_plane *plane, struct endpoint *endpoint,
                         const struct slice *users, const struct privacy_decision *decisions,
                         size_t count);

/* The endpoint was told this, in a snapshot. Where an event that is newer than the snapshot came first, how
 * things stand is read once more. */
void subscription_told(struct presence_plane *plane, const struct endpoint *endpoint,
                       const struct presence *presences, size_t count);

/* How a user is, to those local subscribers whose view was set anew. */
void subscription_tell_due(struct presence_plane *plane, struct topic *topic,
                           const struct presence_change *change);

/* How a user is, to those local subscribers who may see it and to whom it is news. Returns how many. */
size_t subscription_tell(struct presence_plane *plane, struct topic *topic,
                         const struct presence_change *change);

/* A change of a user's presence, likewise. */
void subscription_fan_out(struct presence_plane *plane, struct slice topic,
                          const struct presence_change *change);

#endif
