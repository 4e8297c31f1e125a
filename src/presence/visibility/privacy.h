/*
 * Privacy: who may see what of whom. The one engine that every output asks.
 *
 * It decides from the target's settings and the relation between viewer and target; it keeps nothing.
 * A blocked viewer gets exactly what `nobody` shows, so that being blocked cannot be told from it; the
 * one who blocks sees what a stranger sees. Everybody sees themselves.
 */
#ifndef ROLLCALL_PRESENCE_VISIBILITY_PRIVACY_H
#define ROLLCALL_PRESENCE_VISIBILITY_PRIVACY_H

#include "ledger/ledger.h"
#include "protocol/presence.h"

/* What a viewer may see; also the view of a subscription (routing/router.h). */
enum privacy_view {
    PRIVACY_HIDDEN,   /* nothing: the presence is `unknown` */
    PRIVACY_PRESENCE, /* status and call, not when they were last seen */
    PRIVACY_EVERYTHING,
    PRIVACY_VIEWS
};

struct privacy_decision {
    enum privacy_view view;
    enum presence_reason reason; /* where hidden */
};

struct privacy_decision privacy_decide(struct slice viewer, const struct ledger_profile *target);

/* What any contact sees of a user with these settings, and what anybody else does who is not blocked. */
struct privacy_decision privacy_of_contact(const struct ledger_settings *settings);
struct privacy_decision privacy_of_stranger(const struct ledger_settings *settings);

/* Calls need a mutual contact, whatever is shown of presence. */
bool privacy_allows_call(struct slice caller, const struct ledger_profile *target);

/* Where last seen is hidden, who left longer ago than this shows a version of then: their own is the time they
 * left. Clocks of gateways that differ by less do not mix up versions by it. */
enum { PRIVACY_LEFT_LATELY_MS = 300000 };

/* The presence as this viewer may see it, now. */
struct presence privacy_apply(const struct presence *presence, struct privacy_decision decision,
                              int64_t wall_ms);

#endif
