/* The complete truth table: settings × relation, one row each. */
#include "presence/visibility/privacy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const enum ledger_visibility EVERYONE = LEDGER_VISIBLE_EVERYONE;
static const enum ledger_visibility CONTACTS = LEDGER_VISIBLE_CONTACTS_ONLY;
static const enum ledger_visibility NOBODY = LEDGER_VISIBLE_NOBODY;

/* The relation of the viewer to the target; the bits of a profile. */
enum {
    NO_RELATION = 0,
    CONTACT = 1,
    VIEWER_BLOCKS = 2,
    TARGET_BLOCKS = 4,
    RELATIONS = 8,
};

static struct privacy_decision decide(const char *viewer, enum ledger_visibility presence,
                                      enum ledger_visibility last_seen, unsigned relation)
{
    struct ledger_profile target = {
        .user = SLICE("target"),
        .settings = {presence, last_seen},
        .are_contacts = relation & CONTACT,
        .blocked_by_viewer = relation & VIEWER_BLOCKS,
        .blocked_by_target = relation & TARGET_BLOCKS,
    };
    return privacy_decide(slice_of(viewer), &target);
}

#define ALL PRIVACY_EVERYTHING, PRESENCE_REASON_NONE
#define STATUS PRIVACY_PRESENCE, PRESENCE_REASON_NONE
#define PRIVATE PRIVACY_HIDDEN, PRESENCE_REASON_PRIVACY
#define NO_CONTACT PRIVACY_HIDDEN, PRESENCE_REASON_NOT_CONTACTS

static void expect(unsigned relation, enum ledger_visibility presence,
                   enum ledger_visibility last_seen, enum privacy_view view,
                   enum presence_reason reason)
{
    struct privacy_decision decision = decide("viewer", presence, last_seen, relation);
    if (decision.view != view || decision.reason != reason)
        fail_msg("relation %u, presence %d, last seen %d: view %d reason %d", relation, presence,
                 last_seen, decision.view, decision.reason);
}

static void users_without_a_relation_see_what_everyone_may(void **state)
{
    (void)state;
    expect(NO_RELATION, EVERYONE, EVERYONE, ALL);
    expect(NO_RELATION, EVERYONE, CONTACTS, STATUS);
    expect(NO_RELATION, EVERYONE, NOBODY, STATUS);
    expect(NO_RELATION, CONTACTS, EVERYONE, NO_CONTACT);
    expect(NO_RELATION, CONTACTS, CONTACTS, NO_CONTACT);
    expect(NO_RELATION, CONTACTS, NOBODY, NO_CONTACT);
    expect(NO_RELATION, NOBODY, EVERYONE, PRIVATE);
    expect(NO_RELATION, NOBODY, CONTACTS, PRIVATE);
    expect(NO_RELATION, NOBODY, NOBODY, PRIVATE);
}

static void contacts_see_what_contacts_may(void **state)
{
    (void)state;
    expect(CONTACT, EVERYONE, EVERYONE, ALL);
    expect(CONTACT, EVERYONE, CONTACTS, ALL);
    expect(CONTACT, EVERYONE, NOBODY, STATUS);
    expect(CONTACT, CONTACTS, EVERYONE, ALL);
    expect(CONTACT, CONTACTS, CONTACTS, ALL);
    expect(CONTACT, CONTACTS, NOBODY, STATUS);
    expect(CONTACT, NOBODY, EVERYONE, PRIVATE);
    expect(CONTACT, NOBODY, CONTACTS, PRIVATE);
    expect(CONTACT, NOBODY, NOBODY, PRIVATE);
}

/* A blocker loses the relation to the blocked user, even if they were contacts. */
static void a_blocker_sees_as_without_a_relation(void **state)
{
    (void)state;
    for (enum ledger_visibility presence = 0; presence < 3; presence++) {
        for (enum ledger_visibility last_seen = 0; last_seen < 3; last_seen++) {
            struct privacy_decision other = decide("viewer", presence, last_seen, NO_RELATION);
            expect(VIEWER_BLOCKS, presence, last_seen, other.view, other.reason);
            expect(VIEWER_BLOCKS | CONTACT, presence, last_seen, other.view, other.reason);
        }
    }
}

/* A blocked viewer is shown exactly what `nobody` shows, in any combination. */
static void a_block_looks_like_the_setting_nobody(void **state)
{
    (void)state;
    struct privacy_decision nobody = decide("viewer", NOBODY, NOBODY, NO_RELATION);
    for (unsigned relation = 0; relation < RELATIONS; relation++) {
        if (!(relation & TARGET_BLOCKS))
            continue;
        for (enum ledger_visibility presence = 0; presence < 3; presence++)
            for (enum ledger_visibility last_seen = 0; last_seen < 3; last_seen++)
                expect(relation, presence, last_seen, nobody.view, nobody.reason);
    }
}

static void everybody_sees_themselves(void **state)
{
    (void)state;
    for (unsigned relation = 0; relation < RELATIONS; relation++)
        for (enum ledger_visibility presence = 0; presence < 3; presence++)
            for (enum ledger_visibility last_seen = 0; last_seen < 3; last_seen++)
                assert_int_equal(decide("target", presence, last_seen, relation).view,
                                 PRIVACY_EVERYTHING);
}

static void an_empty_viewer_id_has_no_relation(void **state)
{
    (void)state;
    assert_int_equal(decide("", CONTACTS, EVERYONE, NO_RELATION).view, PRIVACY_HIDDEN);
    assert_int_equal(decide("", EVERYONE, EVERYONE, NO_RELATION).view, PRIVACY_EVERYTHING);
}

/* ---- what is shown ---- */

static const struct presence SEEN = {.user_id = {"target", 6},
                                     .status = PRESENCE_OFFLINE,
                                     .in_call = true,
                                     .stale = true,
                                     .last_seen_ms = 1700000000000,
                                     .version = 1700000000000};

enum { LATER_MS = 24 * 3600 * 1000 };

static void the_view_everything_changes_nothing(void **state)
{
    (void)state;
    struct presence shown =
        privacy_apply(&SEEN, (struct privacy_decision){ALL}, SEEN.version + LATER_MS);
    assert_int_equal(shown.status, SEEN.status);
    assert_int_equal(shown.last_seen_ms, SEEN.last_seen_ms);
    assert_int_equal(shown.version, SEEN.version);
    assert_true(shown.in_call && shown.stale);
}

static void last_seen_can_be_hidden_separately(void **state)
{
    (void)state;
    struct presence shown = privacy_apply(&SEEN, (struct privacy_decision){STATUS}, SEEN.version);
    assert_int_equal(shown.status, SEEN.status);
    assert_int_equal(shown.last_seen_ms, TIME_NONE);
    assert_int_equal(shown.version, SEEN.version);
    assert_true(shown.in_call);
}

/* A version is the time of a change, so an old one would reveal when the user left. */
static void a_version_does_not_reveal_hidden_last_seen(void **state)
{
    (void)state;
    struct privacy_decision decision = {STATUS};
    int64_t now_ms = SEEN.version + LATER_MS;
    struct presence shown = privacy_apply(&SEEN, decision, now_ms);
    assert_int_equal(shown.version, now_ms - PRIVACY_LEFT_LATELY_MS);
    struct presence earlier = SEEN;
    earlier.version -= LATER_MS;
    assert_int_equal(privacy_apply(&earlier, decision, now_ms).version, shown.version);
    struct presence here = SEEN;
    here.status = PRESENCE_ONLINE;
    assert_int_equal(privacy_apply(&here, decision, now_ms).version, SEEN.version);
}

/* A viewer must not even notice that there was a change. */
static void a_hidden_presence_shows_only_the_reason(void **state)
{
    (void)state;
    struct presence shown =
        privacy_apply(&SEEN, (struct privacy_decision){NO_CONTACT}, SEEN.version + LATER_MS);
    assert_true(slice_is(shown.user_id, "target"));
    assert_int_equal(shown.status, PRESENCE_UNKNOWN);
    assert_int_equal(shown.reason, PRESENCE_REASON_NOT_CONTACTS);
    assert_int_equal(shown.last_seen_ms, TIME_NONE);
    assert_int_equal(shown.version, 0);
    assert_false(shown.in_call || shown.stale);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_without_a_relation_see_what_everyone_may),
        cmocka_unit_test(contacts_see_what_contacts_may),
        cmocka_unit_test(a_blocker_sees_as_without_a_relation),
        cmocka_unit_test(a_block_looks_like_the_setting_nobody),
        cmocka_unit_test(everybody_sees_themselves),
        cmocka_unit_test(an_empty_viewer_id_has_no_relation),
        cmocka_unit_test(the_view_everything_changes_nothing),
        cmocka_unit_test(last_seen_can_be_hidden_separately),
        cmocka_unit_test(a_version_does_not_reveal_hidden_last_seen),
        cmocka_unit_test(a_hidden_presence_shows_only_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
