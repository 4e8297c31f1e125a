#include "fiber/fiber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT_MAX = 3 };

struct step_log {
    struct fiber *fiber;
    unsigned steps;
    unsigned steps_max;
};

static void count_steps(struct fiber *fiber, void *arg)
{
    struct step_log *log = arg;
    log->fiber = fiber;
    while (++log->steps < log->steps_max)
        fiber_suspend(fiber);
}

static void test_fiber_waits_until_it_is_resumed(void **state)
{
    (void)state;
    struct fiber_pool *pool = fiber_pool_make(COUNT_MAX);
    struct step_log log = {.steps_max = 3};
    assert_true(fiber_start(pool, count_steps, &log));
    assert_int_equal(log.steps, 1);
    fiber_resume(log.fiber);
    assert_int_equal(log.steps, 2);
    fiber_resume(log.fiber);
    assert_int_equal(log.steps, 3);
    fiber_pool_free(&pool);
    assert_null(pool);
}

static void test_pool_is_bounded_and_uses_fibers_again(void **state)
{
    (void)state;
    struct fiber_pool *pool = fiber_pool_make(COUNT_MAX);
    struct step_log logs[COUNT_MAX + 1] = {{0}};
    for (unsigned i = 0; i <= COUNT_MAX; i++) {
        logs[i].steps_max = 2;
        assert_int_equal(fiber_pool_has_free(pool), i < COUNT_MAX);
        assert_int_equal(fiber_start(pool, count_steps, &logs[i]), i < COUNT_MAX);
    }
    assert_int_equal(logs[COUNT_MAX].steps, 0);
    fiber_resume(logs[1].fiber);
    assert_true(fiber_start(pool, count_steps, &logs[COUNT_MAX]));
    assert_ptr_equal(logs[COUNT_MAX].fiber, logs[1].fiber);
    fiber_resume(logs[0].fiber);
    fiber_resume(logs[2].fiber);
    fiber_resume(logs[COUNT_MAX].fiber);
    fiber_pool_free(&pool);
}

/* Fills much of the stack before and after it waits, so that a wrong stack would show. */
static void fill_stack(struct fiber *fiber, void *arg)
{
    struct step_log *log = arg;
    char bytes[FIBER_STACK_BYTES / 4];
    log->fiber = fiber;
    memset(bytes, (int)log->steps_max, sizeof(bytes));
    fiber_suspend(fiber);
    for (size_t i = 0; i < sizeof(bytes); i++)
        log->steps += bytes[i] == (char)log->steps_max;
}

static void test_fibers_keep_their_own_stacks(void **state)
{
    (void)state;
    struct fiber_pool *pool = fiber_pool_make(COUNT_MAX);
    struct step_log logs[COUNT_MAX] = {{.steps_max = 1}, {.steps_max = 2}, {.steps_max = 3}};
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned i = 0; i < COUNT_MAX; i++)
            assert_true(fiber_start(pool, fill_stack, &logs[i]));
        for (unsigned i = COUNT_MAX; i-- > 0;)
            fiber_resume(logs[i].fiber);
    }
    for (unsigned i = 0; i < COUNT_MAX; i++)
        assert_int_equal(logs[i].steps, 50 * (FIBER_STACK_BYTES / 4));
    fiber_pool_free(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fiber_waits_until_it_is_resumed),
        cmocka_unit_test(test_pool_is_bounded_and_uses_fibers_again),
        cmocka_unit_test(test_fibers_keep_their_own_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
