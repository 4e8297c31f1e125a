/*
 * Presence subscriptions: an endpoint's standing wish to hear of a user, held to what privacy allows.
 *
 * A subscription is made hidden, gets its view when privacy has decided, and is reviewed whenever the
 * user's settings, contacts or blocks change: who loses sight is told `unknown` once and then nothing,
 * who gains it is told how things stand.
 */
#ifndef ROLLCALL_PRESENCE_SUBSCRIPTION_H
#define ROLLCALL_PRESENCE_SUBSCRIPTION_H

#include "presence/presence_plane.h"
#include "presence/privacy.h"

/* How many presence subscriptions the endpoint would hold with these added. */
size_t subscription_count_with(const struct endpoint *endpoint, const struct slice *users,
                               size_t count);

/* Subscribes to each, hidden until subscription_decide(). False when memory is short. */
bool subscription_add(struct presence_plane *plane, struct endpoint *endpoint,
                      const struct slice *users, size_t count);
void subscription_remove(struct presence_plane *plane, struct endpoint *endpoint,
                         const struct slice *users, size_t count);

/* Sets the views that privacy decided for this endpoint. */
void subscription_decide(struct presence_plane *plane, struct endpoint *endpoint,
                         const struct slice *users, const struct privacy_decision *decisions,
                         size_t count);

/* A change of a user's presence, to every local subscriber who may see it. */
void subscription_fan_out(struct presence_plane *plane, struct slice topic,
                          const struct presence_change *change);

/* What may be seen of this user is different: asks the ledger and sets every local view anew. */
void subscription_review(struct presence_plane *plane, struct slice user_id);

#endif
