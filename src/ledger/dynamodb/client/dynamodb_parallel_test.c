/* Tasks in parts: every part runs once, a bounded number at a time, and a failure ends the rest. */
#include "ledger/dynamodb/client/dynamodb_parallel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { PARTS = 100, PART_MS = 2, NO_PART = PARTS, TIME_LIMIT_MS = 60 * 1000 };

struct fixture {
    struct loop loop;
    struct fiber_pool *fibers;
    struct dynamodb_client client;
    struct ledger_client ledger_client;
    struct ledger_request *request;
    size_t count;
    size_t failing; /* the part that fails */
    unsigned runs[PARTS];
    unsigned running;
    unsigned running_max;
    bool has_failed;
    bool has_ended;
};

static void run_part(struct dynamodb_task *part, size_t at, void *arg)
{
    struct fixture *fixture = arg;
    fixture->runs[at]++;
    if (++fixture->running > fixture->running_max)
        fixture->running_max = fixture->running;
    dynamodb_client_wait(part, PART_MS);
    fixture->running--;
    part->failed = at == fixture->failing;
}

static void run_task(struct fiber *fiber, void *arg)
{
    struct fixture *fixture = arg;
    struct dynamodb_task task = {.client = &fixture->client,
                                 .fiber = fiber,
                                 .request = fixture->request,
                                 .deadline_ms = fixture->loop.clock.now_ms + TIME_LIMIT_MS};
    dynamodb_parallel(&task, fixture->count, run_part, fixture);
    fixture->has_failed = task.failed;
    fixture->has_ended = true;
    dynamodb_task_end(&task);
}

static void run_fixture(struct fixture *fixture, size_t count, size_t helpers_max)
{
    fixture->count = count;
    assert_true(loop_init(&fixture->loop));
    fixture->ledger_client.clock = &fixture->loop.clock;
    fixture->request = ledger_request_make(&fixture->ledger_client, LEDGER_SETTINGS_GET, NULL);
    fixture->fibers = fiber_pool_make(1);
    fixture->client.loop = &fixture->loop;
    fixture->client.helpers = helpers_max ? fiber_pool_make(helpers_max) : NULL;
    assert_true(fiber_start(fixture->fibers, run_task, fixture));
    while (!fixture->has_ended)
        loop_turn(&fixture->loop, PART_MS);
    assert_int_equal(fixture->running, 0);
    fiber_pool_free(&fixture->client.helpers);
    fiber_pool_free(&fixture->fibers);
    ledger_request_free(fixture->request);
    loop_free(&fixture->loop);
}

static void test_every_part_runs_once_and_a_bounded_number_at_a_time(void **state)
{
    struct fixture fixture = {.failing = NO_PART};
    (void)state;
    run_fixture(&fixture, PARTS, DYNAMODB_HELPERS_ALL_MAX);
    for (size_t i = 0; i < PARTS; i++)
        assert_int_equal(fixture.runs[i], 1);
    assert_int_equal(fixture.running_max, DYNAMODB_HELPERS_MAX);
    assert_false(fixture.has_failed);
}

static void test_parts_without_free_helpers_run_one_after_the_other(void **state)
{
    struct fixture without = {.failing = NO_PART}, with_one = {.failing = NO_PART};
    (void)state;
    run_fixture(&without, 5, 0);
    assert_int_equal(without.running_max, 1);
    assert_int_equal(without.runs[4], 1);
    run_fixture(&with_one, 5, 1);
    assert_int_equal(with_one.running_max, 2);
    assert_int_equal(with_one.runs[4], 1);
}

static void test_failure_of_a_part_ends_the_rest(void **state)
{
    struct fixture fixture = {.failing = 0};
    (void)state;
    run_fixture(&fixture, PARTS, DYNAMODB_HELPERS_ALL_MAX);
    assert_true(fixture.has_failed);
    assert_int_equal(fixture.runs[PARTS - 1], 0);
    assert_int_equal(fixture.running_max, DYNAMODB_HELPERS_MAX);
}

static void test_no_part_and_one_part_need_no_helper(void **state)
{
    struct fixture none = {.failing = NO_PART}, one = {.failing = NO_PART};
    (void)state;
    run_fixture(&none, 0, 1);
    assert_int_equal(none.running_max, 0);
    run_fixture(&one, 1, 1);
    assert_int_equal(one.runs[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_part_runs_once_and_a_bounded_number_at_a_time),
        cmocka_unit_test(test_parts_without_free_helpers_run_one_after_the_other),
        cmocka_unit_test(test_failure_of_a_part_ends_the_rest),
        cmocka_unit_test(test_no_part_and_one_part_need_no_helper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
