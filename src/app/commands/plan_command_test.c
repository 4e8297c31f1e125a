#include "app/commands/plan_command.h"

#include "plan/plan_costs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int run_plan(const char *first, const char *second, const char *third, const char *fourth)
{
    char *argv[] = {(char *)"plan", (char *)first,  (char *)second,
                    (char *)third,  (char *)fourth, NULL};
    int argc = 1;
    while (argv[argc])
        argc++;
    return plan_command(argc, argv);
}

static void command_refuses_wrong_arguments(void **state)
{
    (void)state;
    assert_int_equal(run_plan(NULL, NULL, NULL, NULL), 2);
    assert_int_equal(run_plan("--users", NULL, NULL, NULL), 2);
    assert_int_equal(run_plan("--users", "many", NULL, NULL), 2);
    assert_int_equal(run_plan("--user", "10", NULL, NULL), 2);
    assert_int_equal(run_plan("10", NULL, NULL, NULL), 2);
    assert_int_equal(run_plan("--users", "10", "--profile", "fast"), 2);
    assert_int_equal(run_plan("--users", "10", "--costs", "/nonexistent"), 1);
    assert_int_equal(run_plan("--help", NULL, NULL, NULL), 0);
}

static int run_with_costs(const char *text)
{
    char path[] = P_tmpdir "/rollcall-plan-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
    close(fd);
    int status = run_plan("--users", "10", "--costs", path);
    unlink(path);
    return status;
}

static void command_reads_costs_from_a_file(void **state)
{
    (void)state;
    assert_int_equal(run_with_costs(PLAN_COSTS_TEXT), 0);
    assert_int_equal(run_with_costs("{\"costs\":{\"edge_us_per_heartbeat\":1}}"),
                     1); /* most are missing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_refuses_wrong_arguments),
        cmocka_unit_test(command_reads_costs_from_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
