/* What is remembered of the space for contacts never exceeds what there is. */
#include "ledger/sqlite/sqlite_contact_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void space_is_used_up_and_unknown_then(void **state)
{
    (void)state;
    struct sqlite_contact_space *space = sqlite_contact_space_make(7);
    assert_int_equal(sqlite_contact_space_get(space, SLICE("alice")), 0);
    sqlite_contact_space_put(space, SLICE("alice"), 2);
    assert_int_equal(sqlite_contact_space_get(space, SLICE("alice")), 2);
    assert_int_equal(sqlite_contact_space_get(space, SLICE("bob")), 0);
    sqlite_contact_space_use(space, SLICE("alice"));
    sqlite_contact_space_use(space, SLICE("alice"));
    sqlite_contact_space_use(space, SLICE("alice"));
    assert_int_equal(sqlite_contact_space_get(space, SLICE("alice")), 0);
    sqlite_contact_space_put(space, SLICE("alice"), 5);
    sqlite_contact_space_forget(space);
    assert_int_equal(sqlite_contact_space_get(space, SLICE("alice")), 0);
    sqlite_contact_space_free(&space);
    assert_null(space);
}

static void more_users_than_slots_take_each_others_place(void **state)
{
    (void)state;
    struct sqlite_contact_space *space = sqlite_contact_space_make(7);
    size_t known = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 2 * SQLITE_CONTACT_SPACE_SLOTS; i++) {
            char user[16];
            struct slice id = {user, (size_t)snprintf(user, sizeof(user), "user-%d", i)};
            uint32_t left = sqlite_contact_space_get(space, id);
            assert_true(left == 0 || left == (uint32_t)i + 1);
            known += left != 0;
            sqlite_contact_space_put(space, id, (uint32_t)i + 1);
        }
    assert_true(known > 0 && known < SQLITE_CONTACT_SPACE_SLOTS);
    sqlite_contact_space_free(&space);
}

static void without_memory_nothing_is_known(void **state)
{
    (void)state;
    sqlite_contact_space_put(NULL, SLICE("alice"), 2);
    sqlite_contact_space_use(NULL, SLICE("alice"));
    sqlite_contact_space_forget(NULL);
    assert_int_equal(sqlite_contact_space_get(NULL, SLICE("alice")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(space_is_used_up_and_unknown_then),
        cmocka_unit_test(more_users_than_slots_take_each_others_place),
        cmocka_unit_test(without_memory_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
