/* Tests the arguments of `rollcall repair`; ledger_faults.test.mjs tests the repair itself. */
#include "app/commands/repair_command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 8, OUTPUT_MAX = 4096, STATUS_USAGE = 2 };

static char output[OUTPUT_MAX]; /* standard output of the last run */

/* Runs the command with `arguments`, which NULL terminates, and keeps its output. */
static int run_repair_with(const char *const *arguments)
{
    char *argv[ARGUMENTS_MAX] = {(char *)"repair"};
    int argc = 1;
    for (; arguments[argc - 1]; argc++)
        argv[argc] = (char *)arguments[argc - 1];
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    int stdout_copy = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    optind = 0; /* restarts GNU getopt */
    int status = repair_command(argc, argv);
    fflush(stdout);
    dup2(stdout_copy, STDOUT_FILENO);
    close(stdout_copy);
    rewind(file);
    size_t len = fread(output, 1, sizeof(output) - 1, file);
    output[len] = '\0';
    fclose(file);
    return status;
}

#define RUN(...) run_repair_with((const char *const[]){__VA_ARGS__, NULL})

static void help_names_every_option(void **state)
{
    (void)state;
    assert_int_equal(RUN("--help"), 0);
    assert_non_null(strstr(output, "--ledger URL [--dry-run] CHAT\n"));
    assert_non_null(strstr(output, "\n  --ledger URL  "));
    assert_non_null(strstr(output, "\n  --dry-run     "));
    assert_non_null(strstr(output, "\n  --help        "));
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    assert_int_equal(RUN("chat"), STATUS_USAGE);
    assert_int_equal(RUN("--ledger", "sqlite:x"), STATUS_USAGE);
    assert_int_equal(RUN("--ledger", "sqlite:x", "one", "two"), STATUS_USAGE);
    assert_int_equal(RUN("--ledger", "sqlite:x", "--dry-runs", "chat"), STATUS_USAGE);
    assert_int_equal(RUN("--ledger", "sqlite:/nonexistent/x", "--dry-run", "chat"), 1);
    assert_string_equal(output, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_names_every_option),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
