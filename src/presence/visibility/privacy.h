/*
 * The privacy engine decides what a viewer may see of a target. Every output uses it.
 *
 * It decides from the target's settings and the relation between viewer and target; it keeps no state. A
 * blocked viewer gets exactly what the setting `nobody` shows, so that a block cannot be recognised; a user
 * who blocks somebody sees them as a user without a relation does. Everybody sees themselves.
 */
#ifndef ROLLCALL_PRESENCE_VISIBILITY_PRIVACY_H
#define ROLLCALL_PRESENCE_VISIBILITY_PRIVACY_H

#include "ledger/ledger.h"
#include "protocol/presence.h"

/* What a viewer may see; also the view of a subscription (routing/router.h). */
enum privacy_view {
    PRIVACY_HIDDEN,   /* nothing: the presence is `unknown` */
    PRIVACY_PRESENCE, /* status and call flag, but not last seen */
    PRIVACY_EVERYTHING,
    PRIVACY_VIEWS
};

struct privacy_decision {
    enum privacy_view view;
    enum presence_reason reason; /* if hidden */
    bool shows_typing;           /* in chats that both are members of, contacts or not */
};

struct privacy_decision privacy_decide(struct slice viewer, const struct ledger_profile *target);

/* What a contact sees of a user with these settings, and what a user without a relation sees. */
struct privacy_decision privacy_of_contact(const struct ledger_settings *settings);
struct privacy_decision privacy_of_other(const struct ledger_settings *settings);

/* Returns whether the caller may call the target: only contacts may, independently of presence settings. */
bool privacy_allows_call(struct slice caller, const struct ledger_profile *target);

/* Where last seen is hidden, a user who left longer ago than this is shown with a version of that age,
 * because the real version is the time they left. Clocks of gateways that differ by less cannot mix up
 * versions through it. */
enum { PRIVACY_LEFT_LATELY_MS = 300000 };

/* Returns the presence as this viewer may see it now. */
struct presence privacy_apply(const struct presence *presence, struct privacy_decision decision,
                              int64_t wall_ms);

#endif
