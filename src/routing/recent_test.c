#include "routing/recent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void noting_a_key_twice_reports_it_new_once(void **state)
{
    (void)state;
    struct recent *recent = NULL;
    assert_true(recent_note(&recent, 7));
    assert_false(recent_note(&recent, 7));
    assert_true(recent_note(&recent, 8));
    assert_false(recent_note(&recent, 7));
    recent_free(&recent);
    assert_null(recent);
}

static void full_record_drops_the_oldest_key(void **state)
{
    (void)state;
    struct recent *recent = NULL;
    for (uint64_t key = 1; key <= RECENT_MAX + 1; key++)
        assert_true(recent_note(&recent, key));
    for (uint64_t key = 2; key <= RECENT_MAX + 1; key++)
        assert_false(recent_note(&recent, key));
    assert_true(recent_note(&recent, 1));
    recent_free(&recent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noting_a_key_twice_reports_it_new_once),
        cmocka_unit_test(full_record_drops_the_oldest_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
