/*
 * Presence subscriptions: an endpoint receives a user's presence changes, as far as privacy allows.
 *
 * A subscription is made without a view, gets one when privacy has decided, and is reviewed whenever the
 * user's settings, contacts or blocks change (visibility_review.h). Without a view it receives nothing. It
 * records what its holder was told (routing/router.h), so that no event is delivered twice or after a newer
 * one.
 */
#ifndef ROLLCALL_PRESENCE_SUBSCRIPTION_H
#define ROLLCALL_PRESENCE_SUBSCRIPTION_H

#include "presence/presence_plane.h"
#include "presence/visibility/privacy.h"

/* A view besides the privacy views: not decided yet, or unknown since a review failed. */
enum { SUBSCRIPTION_UNDECIDED = PRIVACY_VIEWS };

/* Returns the topic of a user's presence; NULL while nobody on this gateway subscribes to it. */
struct topic *subscription_topic(const struct presence_plane *plane, struct slice user_id);

/* Returns the endpoint's subscription to a user's presence, or NULL. */
struct subscription *subscription_find(const struct endpoint *endpoint, struct slice user_id);

/* Returns how many presence subscriptions the endpoint would hold with these added. */
size_t subscription_count_with(const struct endpoint *endpoint, const struct slice *users,
                               size_t count);

/* Subscribes to each user, without a view until subscription_decide(). Returns false when out of memory;
 * some may have been added then. */
bool subscription_add(struct presence_plane *plane, struct endpoint *endpoint,
                      const struct slice *users, size_t count);
void subscription_remove(struct presence_plane *plane, struct endpoint *endpoint,
                         const struct slice *users, size_t count);

/* Removes those of these subscriptions that have no view. */
void subscription_withdraw(struct presence_plane *plane, struct endpoint *endpoint,
                           const struct slice *users, size_t count);

/* Sets the views that privacy decided for this endpoint. */
void subscription_decide(struct endpoint *endpoint, const struct slice *users,
                         const struct privacy_decision *decisions, size_t count);

/* Notes what the holder of a hidden view was told as a contact, before a review widens the view. */
void subscription_note_pushed(struct subscription *held, const struct presence *presence);

/* Records what the endpoint was told in a snapshot. If it received a newer event before, the user is read
 * again (reread_queue.h). */
void subscription_told(struct presence_plane *plane, const struct endpoint *endpoint,
                       const struct presence *presences, size_t count);

/* Delivers a user's state to the local subscribers whose view a review has changed. */
void subscription_deliver_reviewed(struct presence_plane *plane, struct topic *topic,
                                   const struct presence_change *change);

/* Delivers a user's state to the local subscribers who may see it and do not have it. Returns how many. */
size_t subscription_deliver(struct presence_plane *plane, struct topic *topic,
                            const struct presence_change *change);

/* The same for a change that arrived on the topic of this name. */
void subscription_fan_out(struct presence_plane *plane, struct slice topic,
                          const struct presence_change *change);

#endif
