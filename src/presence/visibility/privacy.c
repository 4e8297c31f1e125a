#include "presence/visibility/privacy.h"

static bool privacy_setting_allows(enum ledger_visibility visibility, bool are_contacts)
{
    switch (visibility) {
    case LEDGER_VISIBLE_EVERYONE:
        return true;
    case LEDGER_VISIBLE_CONTACTS_ONLY:
        return are_contacts;
    case LEDGER_VISIBLE_NOBODY:
        break;
    }
    return false;
}

static struct privacy_decision privacy_decide_presence(struct slice viewer,
                                                       const struct ledger_profile *target)
{
    if (slice_equal(viewer, target->user))
        return (struct privacy_decision){PRIVACY_EVERYTHING, PRESENCE_REASON_NONE};
    if (target->blocked_by_target || target->settings.presence == LEDGER_VISIBLE_NOBODY)
        return (struct privacy_decision){PRIVACY_HIDDEN, PRESENCE_REASON_PRIVACY};
    bool are_contacts = target->are_contacts && !target->blocked_by_viewer;
    if (!privacy_setting_allows(target->settings.presence, are_contacts))
        return (struct privacy_decision){PRIVACY_HIDDEN, PRESENCE_REASON_NOT_CONTACTS};
    bool last_seen = privacy_setting_allows(target->settings.last_seen, are_contacts);
    return (struct privacy_decision){last_seen ? PRIVACY_EVERYTHING : PRIVACY_PRESENCE,
                                     PRESENCE_REASON_NONE};
}

struct privacy_decision privacy_decide(struct slice viewer, const struct ledger_profile *target)
{
    struct privacy_decision decision = privacy_decide_presence(viewer, target);
    decision.shows_typing = target->settings.presence != LEDGER_VISIBLE_NOBODY &&
                            !target->blocked_by_target && !target->blocked_by_viewer;
    return decision;
}

struct privacy_decision privacy_of_contact(const struct ledger_settings *settings)
{
    struct ledger_profile profile = {
        .user = SLICE("user"), .settings = *settings, .are_contacts = true};
    return privacy_decide(SLICE("contact"), &profile);
}

struct privacy_decision privacy_of_other(const struct ledger_settings *settings)
{
    struct ledger_profile profile = {.user = SLICE("user"), .settings = *settings};
    return privacy_decide(SLICE("other"), &profile);
}

bool privacy_allows_call(struct slice caller, const struct ledger_profile *target)
{
    return target->are_contacts && !target->blocked_by_viewer && !target->blocked_by_target &&
           !slice_equal(caller, target->user);
}

struct presence privacy_apply(const struct presence *presence, struct privacy_decision decision,
                              int64_t wall_ms)
{
    if (decision.view == PRIVACY_HIDDEN)
        return presence_hidden(presence->user_id, decision.reason);
    struct presence shown = *presence;
    if (decision.view == PRIVACY_EVERYTHING)
        return shown;
    /* The version shown is no less than that of any change the viewer was told, and no more than that of
     * any change to come. */
    int64_t lately = wall_ms - PRIVACY_LEFT_LATELY_MS;
    shown.last_seen_ms = TIME_NONE;
    if (shown.status == PRESENCE_OFFLINE && shown.version < lately)
        shown.version = lately;
    return shown;
}
