#include "conformance/ledger_suite.h"

#include "conformance/ledger_harness.h"
#include "conformance/ledger_suite_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct ledger_suite {
    struct harness harness; /* first: the state that tests see */
    const struct ledger_suite_factory *factory;
    struct ledger *ledger;
};

static int set_up(void **state)
{
    const struct ledger_suite_factory *factory = *state;
    struct ledger_suite *suite = calloc(1, sizeof(*suite));
    assert_non_null(suite);
    suite->factory = factory;
    suite->ledger = factory->open(factory->context);
    harness_init(&suite->harness, suite->ledger);
    *state = suite;
    return 0;
}

static int tear_down(void **state)
{
    struct ledger_suite *suite = *state;
    ledger_close(&suite->ledger);
    assert_null(suite->ledger);
    harness_free(&suite->harness);
    suite->factory->clean(suite->factory->context);
    free(suite);
    return 0;
}

int ledger_suite_run(const struct ledger_suite_factory *factory)
{
#define TEST(name) {#name, ledger_suite_##name, set_up, tear_down, (void *)(uintptr_t)factory},
    const struct CMUnitTest tests[] = {LEDGER_SUITE_TESTS(TEST)};
#undef TEST
    print_message("ledger suite on %s\n", factory->name);
    return cmocka_run_group_tests_name("ledger_suite", tests, NULL, NULL);
}
