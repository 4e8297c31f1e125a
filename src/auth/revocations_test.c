#include "auth/revocations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int set_up(void **state)
{
    static struct revocations revocations;
    assert_true(revocations_init(&revocations, 7));
    *state = &revocations;
    return 0;
}

static int tear_down(void **state)
{
    revocations_free(*state);
    return 0;
}

static void test_tokens_up_to_the_second_are_refused(void **state)
{
    struct revocations *revocations = *state;
    assert_false(revocations_refuse(revocations, SLICE("eve"), 0));
    assert_true(revocations_put(revocations, SLICE("eve"), 100));
    assert_true(revocations_refuse(revocations, SLICE("eve"), 99));
    assert_true(revocations_refuse(revocations, SLICE("eve"), 100));
    assert_false(revocations_refuse(revocations, SLICE("eve"), 101));
    assert_false(revocations_refuse(revocations, SLICE("ev"), 1));
    assert_false(revocations_refuse(revocations, SLICE("evee"), 1));
}

static void test_token_without_issue_time_is_refused(void **state)
{
    struct revocations *revocations = *state;
    revocations_put(revocations, SLICE("eve"), 100);
    assert_true(revocations_refuse(revocations, SLICE("eve"), 0));
}

static void test_later_revocation_wins_in_any_order(void **state)
{
    struct revocations *revocations = *state;
    revocations_put(revocations, SLICE("eve"), 100);
    revocations_put(revocations, SLICE("eve"), 50);
    assert_true(revocations_refuse(revocations, SLICE("eve"), 100));
    revocations_put(revocations, SLICE("eve"), 200);
    assert_true(revocations_refuse(revocations, SLICE("eve"), 200));
    assert_int_equal(revocations->users.size, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tokens_up_to_the_second_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_token_without_issue_time_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_later_revocation_wins_in_any_order, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
