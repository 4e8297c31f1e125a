#include "conformance/state_store_suite.h"

#include "conformance/state_store_suite_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int set_up_harness(void **state, bool with_grace)
{
    const struct state_store_suite_backend *backend = *state;
    struct harness *harness = malloc(sizeof(*harness));
    assert_non_null(harness);
    harness_start(harness, backend, with_grace ? backend->offline_grace_ms : 0);
    *state = harness;
    return 0;
}

static int set_up_without_grace(void **state)
{
    return set_up_harness(state, false);
}

static int set_up_with_grace(void **state)
{
    return set_up_harness(state, true);
}

static int tear_down(void **state)
{
    harness_stop(*state);
    free(*state);
    return 0;
}

int state_store_suite_run(const struct state_store_suite_backend *backend)
{
    void *initial = (void *)(uintptr_t)backend;
#define TEST(name) {#name, state_store_suite_##name, set_up_without_grace, tear_down, initial},
#define GRACE_TEST(name) {#name, state_store_suite_##name, set_up_with_grace, tear_down, initial},
    const struct CMUnitTest tests[] = {STATE_STORE_SUITE_TESTS(TEST)
                                           STATE_STORE_SUITE_GRACE_TESTS(GRACE_TEST)};
#undef GRACE_TEST
#undef TEST
    print_message("state store suite on %s\n", backend->name);
    return cmocka_run_group_tests_name("state_store_suite", tests, NULL, NULL);
}
