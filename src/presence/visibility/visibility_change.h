/*
 * Exposure: what may be seen of somebody has become different. The one door for every change of a
 * setting, a contact or a block, once it is committed; nothing else may change who sees whom.
 *
 * Each forgets what was cached and then brings everybody who was watching in line with what privacy
 * decides now: who loses sight is told `unknown` once and then nothing; who gains it is told how things
 * stand.
 *
 *   a setting    all subscribers (reviewed on their gateways), all contacts, all who have a chat open
 *   a relation   the two, each as a viewer of the other: decided here, pushed to their devices
 *
 * A block must not show: what the blocked is told is what they would be told by somebody who chose
 * `nobody` and then ended the contact, in that order. That is why the caller sends contact_removed when
 * `done` has run and not before.
 */
#ifndef ROLLCALL_PRESENCE_VISIBILITY_VISIBILITY_CHANGE_H
#define ROLLCALL_PRESENCE_VISIBILITY_VISIBILITY_CHANGE_H

#include "ledger/ledger.h"

#include <stdbool.h>

struct presence_plane;

enum visibility_cause {
    VISIBILITY_CONTACT_MADE,
    VISIBILITY_CONTACT_ENDED,
    VISIBILITY_BLOCKED, /* by the first of the two */
    VISIBILITY_UNBLOCKED,
    /* Any of these, which the ledger had already. Who made it may not have been answered and asks again,
     * and then nobody has heard of it: caches and the views of subscriptions are put right, and whoever
     * has no subscription is told nothing, as they may have been told before. */
    VISIBILITY_REPEATED
};

/* `done` runs once, when all that must be told is on its way, or cannot be told because a store does not
 * answer. Subscribers then see nothing until it does (review.h); who looks will see it. */
void visibility_change_of_relation(struct presence_plane *plane, enum visibility_cause cause,
                                   struct slice user_id, struct slice peer_id, bool were_contacts,
                                   void (*done)(void *arg), void *arg);

void visibility_change_of_settings(struct presence_plane *plane, struct slice user_id,
                                   const struct ledger_settings *before,
                                   const struct ledger_settings *after, void (*done)(void *arg),
                                   void *arg);

#endif
