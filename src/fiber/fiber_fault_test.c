/* Fibers while memory runs out: what cannot be made is refused, and nothing runs. */
#include "fiber/fiber.h"

#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void count_run(struct fiber *fiber, void *arg)
{
    unsigned *runs = arg;
    (void)fiber;
    ++*runs;
}

static size_t make_and_start(alloc_fault_start fail_at, size_t n)
{
    unsigned runs = 0;
    bool started = false;
    fail_at(n);
    struct fiber_pool *pool = fiber_pool_make(1);
    if (pool)
        started = fiber_start(pool, count_run, &runs);
    size_t failed = alloc_fault_off();
    assert_int_equal(started, failed == 0);
    assert_int_equal(runs, started);
    fiber_pool_free(&pool);
    return failed;
}

static void test_fiber_without_memory_is_not_started(void **state)
{
    (void)state;
    alloc_fault_sweep(alloc_fault_after, make_and_start);
    alloc_fault_sweep(alloc_fault_from, make_and_start);
}

static void test_pool_works_again_when_memory_is_back(void **state)
{
    struct fiber_pool *pool = fiber_pool_make(1);
    unsigned runs = 0;
    (void)state;
    alloc_fault_from(1);
    assert_false(fiber_start(pool, count_run, &runs));
    assert_int_equal(alloc_fault_off(), 1);
    assert_true(fiber_pool_has_free(pool));
    assert_true(fiber_start(pool, count_run, &runs));
    assert_int_equal(runs, 1);
    fiber_pool_free(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fiber_without_memory_is_not_started),
        cmocka_unit_test(test_pool_works_again_when_memory_is_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
