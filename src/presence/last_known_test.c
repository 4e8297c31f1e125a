#include "presence/last_known.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct presence online(const char *user, int64_t version)
{
    return (struct presence){.user_id = slice_of(user),
                             .status = PRESENCE_ONLINE,
                             .last_seen_ms = TIME_NONE,
                             .version = version};
}

static void the_newest_version_wins_in_any_order(void **state)
{
    (void)state;
    struct last_known *known = last_known_make(1);
    struct presence found;
    assert_false(last_known_find(known, SLICE("alice"), &found));
    struct presence newer = online("alice", 7), older = online("alice", 6);
    newer.status = PRESENCE_OFFLINE;
    newer.last_seen_ms = 5;
    last_known_note(known, &newer);
    last_known_note(known, &older);
    assert_true(last_known_find(known, SLICE("alice"), &found));
    assert_int_equal(found.status, PRESENCE_OFFLINE);
    assert_int_equal(found.last_seen_ms, 5);
    assert_int_equal(found.version, 7);
    assert_true(slice_is(found.user_id, "alice"));
    assert_false(last_known_find(known, SLICE("bob"), &found));
    last_known_free(&known);
    assert_null(known);
}

static void an_unknown_presence_is_not_kept(void **state)
{
    (void)state;
    struct last_known *known = last_known_make(1);
    struct presence hidden = presence_hidden(SLICE("alice"), PRESENCE_REASON_PRIVACY);
    last_known_note(known, &hidden);
    assert_false(last_known_find(known, SLICE("alice"), &hidden));
    last_known_free(&known);
}

static void a_full_table_drops_the_oldest(void **state)
{
    (void)state;
    enum { USERS = 8 * LAST_KNOWN_USERS };
    struct last_known *known = last_known_make(1);
    char name[32];
    size_t kept = 0, late = 0;
    for (size_t i = 0; i < USERS; i++) {
        snprintf(name, sizeof(name), "user%zu", i);
        struct presence presence = online(name, 1);
        last_known_note(known, &presence);
    }
    for (size_t i = 0; i < USERS; i++) {
        struct presence found;
        snprintf(name, sizeof(name), "user%zu", i);
        if (!last_known_find(known, slice_of(name), &found))
            continue;
        kept++;
        late += i >= USERS / 2;
    }
    assert_int_equal(kept, LAST_KNOWN_USERS);
    assert_true(late > kept * 9 / 10);
    last_known_free(&known);
}

static void without_a_table_nothing_is_found(void **state)
{
    (void)state;
    struct presence presence = online("alice", 1);
    last_known_note(NULL, &presence);
    assert_false(last_known_find(NULL, SLICE("alice"), &presence));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_version_wins_in_any_order),
        cmocka_unit_test(an_unknown_presence_is_not_kept),
        cmocka_unit_test(a_full_table_drops_the_oldest),
        cmocka_unit_test(without_a_table_nothing_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
