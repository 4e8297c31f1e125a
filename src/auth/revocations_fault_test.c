/* Notes revocations while every allocation from some point on fails: what was noted is refused, what was not is
 * reported, and nothing leaks. */
#include "auth/revocations.h"
#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { USERS = 300, REVOKED_AT_S = 100 }; /* enough for the table to grow */

static struct slice name_user(char name[16], unsigned user)
{
    int len = snprintf(name, 16, "user-%u", user);
    return (struct slice){name, (size_t)len};
}

static size_t revoke_all(alloc_fault_start fail_at, size_t n)
{
    struct revocations revocations;
    bool noted[USERS];
    char name[16];
    fail_at(n);
    bool made = revocations_init(&revocations, 7);
    for (unsigned i = 0; made && i < USERS; i++)
        noted[i] = revocations_put(&revocations, name_user(name, i), REVOKED_AT_S);
    size_t failed = alloc_fault_off();
    for (unsigned i = 0; made && i < USERS; i++) {
        assert_int_equal(revocations_refuse(&revocations, name_user(name, i), REVOKED_AT_S),
                         noted[i]);
        assert_true(failed || noted[i]);
        assert_true(revocations_put(&revocations, name_user(name, i), REVOKED_AT_S));
        assert_true(revocations_refuse(&revocations, name_user(name, i), REVOKED_AT_S));
    }
    assert_true(made || failed);
    if (made)
        revocations_free(&revocations);
    return failed;
}

static void revocation_without_memory_is_reported_and_may_be_repeated(void **state)
{
    (void)state;
    assert_true(alloc_fault_sweep(alloc_fault_after, revoke_all) > USERS);
    assert_true(alloc_fault_sweep(alloc_fault_from, revoke_all) > USERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(revocation_without_memory_is_reported_and_may_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
