#include "app/process_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char text[PROCESS_ID_BYTES_MAX];

static void test_this_process_runs(void **state)
{
    (void)state;
    struct slice own = process_id_write(text);
    assert_true(own.len > 0);
    assert_false(process_id_is_gone(own));
}

/* A child writes its name and lives until it is told to end. It is gone even before it was waited for. */
static void test_a_child_is_gone_when_it_has_ended(void **state)
{
    (void)state;
    int names[2], orders[2];
    assert_int_equal(pipe(names), 0);
    assert_int_equal(pipe(orders), 0);
    pid_t child = fork();
    if (child == 0) {
        char own[PROCESS_ID_BYTES_MAX], order;
        struct slice name = process_id_write(own);
        close(orders[1]);
        _exit(write(names[1], name.data, name.len) == (ssize_t)name.len &&
              read(orders[0], &order, 1) == 0);
    }
    ssize_t len = read(names[0], text, sizeof(text));
    assert_true(len > 0);
    struct slice name = {text, (size_t)len};
    assert_false(process_id_is_gone(name));
    close(orders[1]);
    siginfo_t ended;
    assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
    assert_true(process_id_is_gone(name));
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(process_id_is_gone(name));
    close(names[0]), close(names[1]), close(orders[0]);
}

static void test_another_process_with_the_same_number_is_not_the_one_meant(void **state)
{
    (void)state;
    process_id_write(text);
    snprintf(strrchr(text, ':'), 8, ":1");
    assert_true(process_id_is_gone(slice_of(text)));
}

static void test_what_cannot_be_judged_counts_as_running(void **state)
{
    (void)state;
    static const char *const OTHERS[] = {"", "garbage",
                                         "00000000-0000-0000-0000-000000000000:4026531836:1:2"};
    for (size_t i = 0; i < sizeof(OTHERS) / sizeof(OTHERS[0]); i++)
        assert_false(process_id_is_gone(slice_of(OTHERS[i])));
    process_id_write(text);
    strrchr(text, ':')[0] = '\0';
    assert_false(process_id_is_gone(slice_of(text)));
    process_id_write(text);
    strcat(text, "x");
    assert_false(process_id_is_gone(slice_of(text)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_this_process_runs),
        cmocka_unit_test(test_a_child_is_gone_when_it_has_ended),
        cmocka_unit_test(test_another_process_with_the_same_number_is_not_the_one_meant),
        cmocka_unit_test(test_what_cannot_be_judged_counts_as_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
