/* Tests loading and printing with failing allocations: each run ends with a result and leaks
 * nothing. */
#include "config/config_testing.h"

#include "support/alloc_fault.h"

static const char *const assignments[] = {"peer.peers=a:1,b:2", "peer.secret=s"};
static char *const variables[] = {(char *)"ROLLCALL_GATEWAY__LISTEN=127.0.0.1:0",
                                  (char *)"ROLLCALL_BIN=rollcall", NULL};
static const struct config_inputs inputs = {.file = CONFIG_TESTING_FILE,
                                            .environment = variables,
                                            .assignments = assignments,
                                            .assignment_count = 2};

/* Loads with the n-th allocation failing, for every n. */
static void expect_every_failure_reported(const char *yaml, bool is_valid)
{
    size_t failed = 1;
    config_testing_write_file(yaml);
    for (size_t n = 1; failed > 0; n++) {
        struct config config;
        struct config_error error = {""};
        alloc_fault_after(n);
        bool is_loaded = config_load(&config, &inputs, &error);
        failed = alloc_fault_off();
        assert_int_equal(is_loaded, is_valid && failed == 0);
        if (!is_loaded)
            assert_true(error.text[0] != '\0');
        if (failed > 0 && is_valid)
            assert_non_null(strstr(error.text, "out of memory"));
        config_free(&config);
    }
}

static void load_without_memory_reports_it(void **state)
{
    (void)state;
    expect_every_failure_reported("gateway:\n  allowed_origins: [https://a.b, https://c.d]\n",
                                  true);
}

static void error_report_without_memory_reports_it(void **state)
{
    (void)state;
    expect_every_failure_reported("gateway:\n  wrokers: 1\n", false);
    expect_every_failure_reported("gateway:\n  workers: x\n", false);
    expect_every_failure_reported("gateway:\n  tls.key_file: x\n", false);
    expect_every_failure_reported("fanout.retry.max_backoff_ms: 1\n", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_without_memory_reports_it),
        cmocka_unit_test(error_report_without_memory_reports_it),
    };
    return cmocka_run_group_tests(tests, config_testing_begin, config_testing_end);
}
