/* The whole truth table: settings × relation, each row written out. */
#include "presence/visibility/privacy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const enum ledger_visibility EVERYONE = LEDGER_VISIBLE_EVERYONE;
static const enum ledger_visibility CONTACTS = LEDGER_VISIBLE_CONTACTS_ONLY;
static const enum ledger_visibility NOBODY = LEDGER_VISIBLE_NOBODY;

/* How the viewer stands to the target; the bits of a profile. */
enum {
    STRANGER = 0,
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

static void strangers_see_what_is_for_everyone(void **state)
{
    (void)state;
    expect(STRANGER, EVERYONE, EVERYONE, ALL);
    expect(STRANGER, EVERYONE, CONTACTS, STATUS);
    expect(STRANGER, EVERYONE, NOBODY, STATUS);
    expect(STRANGER, CONTACTS, EVERYONE, NO_CONTACT);
    expect(STRANGER, CONTACTS, CONTACTS, NO_CONTACT);
    expect(STRANGER, CONTACTS, NOBODY, NO_CONTACT);
    expect(STRANGER, NOBODY, EVERYONE, PRIVATE);
    expect(STRANGER, NOBODY, CONTACTS, PRIVATE);
    expect(STRANGER, NOBODY, NOBODY, PRIVATE);
}

static void contacts_see_what_is_for_contacts(void **state)
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

/* Whoever blocks becomes a stranger to the one they block, even if they were contacts. */
static void who_blocks_sees_as_a_stranger(void **state)
{
    (void)state;
    for (enum ledger_visibility presence = 0; presence < 3; presence++) {
        for (enum ledger_visibility last_seen = 0; last_seen < 3; last_seen++) {
            struct privacy_decision stranger = decide("viewer", presence, last_seen, STRANGER);
            expect(VIEWER_BLOCKS, presence, last_seen, stranger.view, stranger.reason);
            expect(VIEWER_BLOCKS | CONTACT, presence, last_seen, stranger.view, stranger.reason);
        }
    }
}

/* One who is blocked is told exactly what `nobody` tells, whatever else holds. */
static void who_is_blocked_cannot_tell_it_from_nobody(void **state)
{
    (void)state;
    struct privacy_decision nobody = decide("viewer", NOBODY, NOBODY, STRANGER);
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

static void a_viewer_without_a_name_is_a_stranger(void **state)
{
    (void)state;
    assert_int_equal(decide("", CONTACTS, EVERYONE, STRANGER).view, PRIVACY_HIDDEN);
    assert_int_equal(decide("", EVERYONE, EVERYONE, STRANGER).view, PRIVACY_EVERYTHING);
}

/* ---- what is shown ---- */

static const struct presence SEEN = {.user_id = {"target", 6},
                                     .status = PRESENCE_OFFLINE,
                                     .in_call = true,
                                     .stale = true,
                                     .last_seen_ms = 1700000000000,
                                     .version = 1700000000000};

enum { LATER_MS = 24 * 3600 * 1000 };

static void everything_is_shown_as_it_is(void **state)
{
    (void)state;
    struct presence shown =
        privacy_apply(&SEEN, (struct privacy_decision){ALL}, SEEN.version + LATER_MS);
    assert_int_equal(shown.status, SEEN.status);
    assert_int_equal(shown.last_seen_ms, SEEN.last_seen_ms);
    assert_int_equal(shown.version, SEEN.version);
    assert_true(shown.in_call && shown.stale);
}

static void last_seen_can_be_hidden_alone(void **state)
{
    (void)state;
    struct presence shown = privacy_apply(&SEEN, (struct privacy_decision){STATUS}, SEEN.version);
    assert_int_equal(shown.status, SEEN.status);
    assert_int_equal(shown.last_seen_ms, TIME_NONE);
    assert_int_equal(shown.version, SEEN.version);
    assert_true(shown.in_call);
}

/* A version is the time of a change. Of who has left for long it tells no more than that they have. */
static void where_last_seen_is_hidden_no_version_tells_it(void **state)
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

/* Nothing of what is hidden may be guessed: not even that something changed. */
static void what_is_hidden_shows_nothing_but_why(void **state)
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
        cmocka_unit_test(strangers_see_what_is_for_everyone),
        cmocka_unit_test(contacts_see_what_is_for_contacts),
        cmocka_unit_test(who_blocks_sees_as_a_stranger),
        cmocka_unit_test(who_is_blocked_cannot_tell_it_from_nobody),
        cmocka_unit_test(everybody_sees_themselves),
        cmocka_unit_test(a_viewer_without_a_name_is_a_stranger),
        cmocka_unit_test(everything_is_shown_as_it_is),
        cmocka_unit_test(last_seen_can_be_hidden_alone),
        cmocka_unit_test(where_last_seen_is_hidden_no_version_tells_it),
        cmocka_unit_test(what_is_hidden_shows_nothing_but_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
