/* Revocations when out of memory: the user's sessions end all the same, the gateway notes the revocation or may be told
 * of it again, and nothing leaks. */
#include "session/revocation_watch.h"

#include "support/alloc_fault.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct world world;

static size_t revoke_without_memory(alloc_fault_start fail_at, size_t n)
{
    enum { REVOKED_AT_S = 100, LATE_S = 2000000000 };
    struct slice event = SLICE("{\"user\":\"alice\",\"revoked_at\":2000000000}");
    struct revocation_watch watch;
    struct client alice;
    client_connect(&alice, &world, "alice");
    fail_at(n);
    bool made = revocation_watch_init(&watch, world.sessions, 7);
    if (made)
        revocation_watch_on_event(&watch, event);
    revocation_watch_publish(world.sessions, SLICE("nobody"), REVOKED_AT_S);
    size_t failed = alloc_fault_off();
    assert_true(made || failed);
    world_settle(&world);
    if (made) {
        assert_null(world_session(&world, "alice"));
        assert_true(revocations_refuse(&watch.revocations, SLICE("alice"), LATE_S) || failed);
        revocation_watch_on_event(&watch, event);
        assert_true(revocations_refuse(&watch.revocations, SLICE("alice"), LATE_S));
        revocation_watch_free(&watch);
    }
    client_hang_up(&alice);
    world_advance(&world, 100000);
    return failed;
}

static void revocation_without_memory_ends_sessions_and_may_be_repeated(void **state)
{
    (void)state;
    world_open(&world, WORLD_DEFAULTS);
    assert_true(alloc_fault_sweep(alloc_fault_after, revoke_without_memory) > 2);
    assert_true(alloc_fault_sweep(alloc_fault_from, revoke_without_memory) > 2);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(revocation_without_memory_ends_sessions_and_may_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
