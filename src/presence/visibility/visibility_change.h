/*
 * Visibility changes: every change of a setting, a contact or a block comes through here once it is
 * committed; nothing else may change a view.
 *
 * Each drops the cached social graphs and then sends all viewers what privacy decides now: viewers who lose
 * visibility are told `unknown` once and then nothing; viewers who gain it are told the current state.
 *
 *   a setting    all subscribers (reviewed on their gateways), all contacts, everybody with a chat open
 *   a relation   the two users, each as a viewer of the other: decided here and pushed to their devices
 *
 * A block must not be recognisable: the blocked user gets the same events as if the other user had chosen
 * `nobody` and then ended the contact, in that order. So the caller sends contact_removed only after `done`
 * has run.
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
    /* Any of these, repeated by a client that got no answer. Possibly no viewer was told the first time, so
     * caches and the views of subscriptions are corrected; users without a subscription are told nothing,
     * because they may have been told before. */
    VISIBILITY_REPEATED
};

/* Runs exactly once, when all events are on their way, or cannot be sent because a store does not answer.
 * Until it does, subscribers see nothing (visibility_review.h), and queries are correct. */
typedef void (*visibility_change_done)(void *arg);

void visibility_change_of_relation(struct presence_plane *plane, enum visibility_cause cause,
                                   struct slice user_id, struct slice other_id, bool were_contacts,
                                   visibility_change_done done, void *arg);

void visibility_change_of_settings(struct presence_plane *plane, struct slice user_id,
                                   const struct ledger_settings *before,
                                   const struct ledger_settings *after, visibility_change_done done,
                                   void *arg);

#endif
